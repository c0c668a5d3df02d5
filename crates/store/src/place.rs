//! Whether the journal still lies where it was opened, and how it is written anew where it does
//! not: deleted, moved or replaced, alone or with its log.
//!
//! Whoever has a file open still has all of it. So a journal that was taken away is copied from
//! the open one, whole and under another name, and takes its place only then.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use crate::file::{self, beside};
use crate::{Error, Result};

/// The files of an open journal, by what they are.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    parts: [Option<Identity>; PARTS.len()],
}

type Identity = (u64, u64);

impl Place {
    /// As it is now. A part that is not there yet is known once it is.
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), parts: PARTS.map(|part| identity(&beside(path, part))) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether every part is the one that was opened.
    pub fn stands(&mut self) -> bool {
        let now = PARTS.map(|part| identity(&beside(&self.path, part)));
        let stands = self.parts.iter().zip(&now).all(|(was, is)| was.is_none() || was == is);
        if stands {
            self.parts = now;
        }
        stands
    }

    /// Whether the lock is the one that was taken.
    pub fn is_locked(&self) -> bool {
        let lock = PARTS.len() - 1;
        identity(&beside(&self.path, PARTS[lock])) == self.parts[lock]
    }

    /// Copies what the connection sees beside the journal's place.
    pub fn write_anew(&self, connection: &Connection) -> Result<()> {
        let (part, anew) = (beside(&self.path, ".anew-part"), beside(&self.path, ANEW));
        file::make_folder(&self.path)?;
        remove(&part)?;
        file::make_file(&part)?;
        let name = part.to_str().ok_or(io::ErrorKind::InvalidFilename.into());
        let name = name.map_err(Error::io("cannot write", &part))?;
        connection.execute("VACUUM INTO ?1", params![name])?;
        let synced = File::open(&part).and_then(|file| file.sync_all());
        synced.map_err(Error::io("cannot sync", &part))?;
        fs::rename(&part, &anew).map_err(Error::io("cannot rename", &part))?;
        file::sync_folder(&self.path)
    }

    /// Clears the place of what is no longer the journal. What somebody else put there is kept
    /// under another name; our own file is in the copy.
    pub fn clear(&self) -> Result<()> {
        let found = identity(&self.path);
        if found.is_some() && found != self.parts[0] {
            file::set_aside_replacement(&self.path)?;
        }
        ["-wal", "-shm"].iter().try_for_each(|part| remove(&beside(&self.path, part)))
    }
}

/// Lets a journal that was written anew take its place; also at the start after a crash between
/// the two. True if there was one.
pub(crate) fn take_place(path: &Path) -> Result<bool> {
    let anew = beside(path, ANEW);
    if identity(&anew).is_none() {
        return Ok(false);
    }
    ["-wal", "-shm"].iter().try_for_each(|part| remove(&beside(path, part)))?;
    fs::rename(&anew, path).map_err(Error::io("cannot rename", &anew))?;
    file::sync_folder(path)?;
    Ok(true)
}

fn identity(path: &Path) -> Option<Identity> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("cannot remove", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The database first, the lock last.
const PARTS: [&str; 4] = ["", "-wal", "-shm", ".lock"];

const ANEW: &str = ".anew";
