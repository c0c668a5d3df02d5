//! A file that only this user can read, and that is whole or not there.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use qd_host::bounded_file::{Links, read_regular_text};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::warn;

use crate::Error;

/// Longest file of our own in the state folder: keys, devices, what was told.
const PRIVATE_FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Debug, Clone)]
pub struct PrivateFile {
    path: PathBuf,
}

impl PrivateFile {
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// None if it is not there.
    pub fn read(&self) -> Result<Option<String>, Error> {
        match read_regular_text(&self.path, PRIVATE_FILE_BYTES_MAX, Links::Followed) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Notices { doing: "read", path: self.path.clone(), source }),
        }
    }

    /// What cannot be understood is as good as nothing, and stays beside it for whoever asks why.
    pub fn read_json<T: DeserializeOwned + Default>(&self) -> Result<T, Error> {
        let Some(text) = self.read()? else { return Ok(T::default()) };
        Ok(serde_json::from_str(&text).unwrap_or_else(|error| {
            let aside = self.path.with_extension("unreadable");
            warn!(%error, path = %self.path.display(), aside = %aside.display(), "begun anew");
            if let Err(error) = fs::rename(&self.path, &aside) {
                warn!(%error, "it could not be set aside");
            }
            T::default()
        }))
    }

    pub fn write_json(&self, value: &impl Serialize) -> Result<(), Error> {
        self.write(&serde_json::to_vec(value).expect("our own types are JSON"))
    }

    /// On disk, and only then under its name.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        let written = || {
            if let Some(folder) = self.path.parent() {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let fresh = self.path.with_extension("new");
            let mut options = fs::OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&fresh)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&fresh, &self.path)
        };
        let path = || self.path.clone();
        written().map_err(|source| Error::Notices { doing: "write", path: path(), source })
    }
}
