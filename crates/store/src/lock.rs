//! One process holds the journal. The lock is the kernel's, so it ends with the process however
//! that ends; the file's text only says whose it is.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::file::{beside, private};
use crate::{Error, Result};

/// Held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that is just being started has the file open, too, for a moment: to close ours
        // would leave it locked. What cannot be unlocked is unlocked with the process.
        let _ = self.file.unlock();
    }
}

impl Lock {
    pub fn take(journal: &Path) -> Result<Self> {
        let path = beside(journal, ".lock");
        let mut options = OpenOptions::new();
        // Not truncated: until the lock is ours, the text is somebody else's.
        options.read(true).write(true).create(true).truncate(false);
        let mut file =
            private(&mut options).open(&path).map_err(Error::io("cannot open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(&mut file, journal.to_owned())),
            Err(TryLockError::Error(error)) => return Err(Error::io("cannot lock", &path)(error)),
        }
        // On a full disk the lock holds all the same, without a name on it.
        if let Err(error) = sign(&mut file)
            && error.kind() != std::io::ErrorKind::StorageFull
        {
            return Err(Error::io("cannot write", &path)(error));
        }
        Ok(Self { file })
    }
}

fn sign(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

fn held(file: &mut File, path: PathBuf) -> Error {
    let mut text = String::new();
    match file.take(PID_TEXT_MAX).read_to_string(&mut text).ok().and(text.trim().parse().ok()) {
        Some(pid) => Error::HeldBy { path, pid },
        None => Error::Held { path },
    }
}

/// A pid and a newline, with room.
const PID_TEXT_MAX: u64 = 32;
