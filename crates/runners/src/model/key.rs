//! A key that no log, error or debug output ever shows.

use std::fmt;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use qd_host::bounded_file::{Links, open_regular};

use super::EndpointError;

/// Longest key of a model endpoint; the longest, a token of a cloud, has some two thousand bytes.
const KEY_BYTES_MAX: usize = 8 << 10;

#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// `origin` is where it stands, for the error: a variable or a file.
    pub fn new(text: &str, origin: &str) -> Result<Self, EndpointError> {
        let text = text.trim();
        let is_key = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        match is_key && text.len() <= KEY_BYTES_MAX {
            true => Ok(Self(text.to_owned())),
            false => Err(EndpointError::KeyOdd { origin: origin.to_owned() }),
        }
    }

    /// A file that only we can read. A key that others could have read is refused, so that the
    /// operator learns of it.
    pub fn read(path: &Path) -> Result<Self, EndpointError> {
        let failed = |source: io::Error| EndpointError::KeyFile { path: path.to_owned(), source };
        let (file, about) = open_regular(path, Links::Followed).map_err(failed)?;
        if about.uid() != rustix::process::geteuid().as_raw() {
            return Err(EndpointError::KeyForeign { path: path.to_owned() });
        }
        let mode = about.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(EndpointError::KeyOpen { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        let bytes_max = KEY_BYTES_MAX as u64 + 2;
        file.take(bytes_max).read_to_string(&mut text).map_err(failed)?;
        Self::new(&text, &path.display().to_string())
    }

    /// For the header that carries it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}
