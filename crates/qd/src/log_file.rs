//! The log of a daemon in the background. It is that daemon's standard error, and it is short at all
//! times: when it gets too long it is put aside, and the one before that goes.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Stat, fstat, ftruncate};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr};

/// There are two at most, and neither is longer than this and a line.
const LOG_BYTES_MAX: u64 = 8 << 20;

#[derive(Debug, Clone)]
pub struct LogFile {
    path: PathBuf,
    /// Held while a line is written, so that the file is not changed below it.
    turn: Arc<Mutex<()>>,
}

impl LogFile {
    pub fn at(path: PathBuf) -> Self {
        Self { path, turn: Arc::default() }
    }

    /// The file for a daemon that is about to start.
    pub fn open(&self) -> io::Result<File> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        match fs::metadata(&self.path) {
            Ok(found) if found.len() > LOG_BYTES_MAX => self.put_aside()?,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.append()
    }

    fn append(&self) -> io::Result<File> {
        File::options().append(true).create(true).mode(0o600).open(&self.path)
    }

    fn put_aside(&self) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_extension("log.old"))
    }

    /// Looks at what is really written to: other parts of the program write there, too.
    fn keep_short(&self) {
        let Ok(found) = fstat(stderr()) else { return };
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        if !is_file || u64::try_from(found.st_size).is_ok_and(|len| len <= LOG_BYTES_MAX) {
            return;
        }
        if self.begin_anew(&found).is_err() {
            // A disk that takes no new file: the old lines go instead. If that fails as well nothing
            // more can be done, and nobody can be told.
            let _ = ftruncate(stderr(), 0);
        }
    }

    fn begin_anew(&self, present: &Stat) -> io::Result<()> {
        // Somebody may have moved or removed it while we wrote.
        let is_there = fs::metadata(&self.path)
            .is_ok_and(|there| (there.dev(), there.ino()) == (present.st_dev, present.st_ino));
        if is_there {
            self.put_aside()?;
        }
        let fresh = self.append()?;
        dup2_stderr(&fresh)?;
        Ok(dup2_stdout(&fresh)?)
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let written = io::stderr().write(line);
        self.keep_short();
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
