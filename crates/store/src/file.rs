//! The journal's files: made private, and set aside when damaged, never deleted.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::limits::DAMAGED_FILES_MAX;
use crate::{Error, Result};

/// A journal that could not be read, and where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    pub path: PathBuf,
    pub reason: String,
}

/// `journal.db` and `.lock` give `journal.db.lock`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Prompts and commands are nobody else's business.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Makes the folder where there is none.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    let folder = folder(path);
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder).map_err(Error::io("cannot create", folder))
}

/// Makes an empty file where there is none; SQLite gives its other files the same mode. True if
/// it was not there.
pub(crate) fn make_file(path: &Path) -> Result<bool> {
    match private(OpenOptions::new().write(true).create_new(true)).open(path) {
        Ok(_) => {
            sync(folder(path))?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::io("cannot create", path)(error)),
    }
}

/// Gives a damaged journal a name that says so: the first free of `journal.db.damaged-1` … .
///
/// Its write-ahead log goes first: left behind, it would be replayed into the new journal.
pub(crate) fn set_aside(path: &Path) -> Result<PathBuf> {
    let aside = (1..=DAMAGED_FILES_MAX)
        .map(|nth| beside(path, &format!(".damaged-{nth}")))
        .find(|aside| PARTS.iter().all(|part| !beside(aside, part).exists()))
        .ok_or(Error::TooManyDamaged { path: path.to_owned(), count: DAMAGED_FILES_MAX })?;
    move_parts(path, &aside)?;
    sync(folder(path))?;
    Ok(aside)
}

/// Gives a file that somebody put in a journal's place a name that says so. It is not ours: when
/// there are too many, the last one goes for it.
pub(crate) fn set_aside_replacement(path: &Path) -> Result<()> {
    let names = (1..=DAMAGED_FILES_MAX).map(|nth| beside(path, &format!(".replaced-{nth}")));
    let mut names: Vec<PathBuf> = names.collect();
    let last = names.pop().expect("there are some");
    let aside = names.into_iter().find(|aside| !aside.exists()).unwrap_or(last);
    move_parts(path, &aside)?;
    sync(folder(path))
}

fn move_parts(path: &Path, aside: &Path) -> Result<()> {
    for part in PARTS {
        let (from, to) = (beside(path, part), beside(aside, part));
        match fs::rename(&from, &to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("cannot set aside", &from)(error)),
        }
    }
    Ok(())
}

/// A new name beside the journal is on disk once this is done.
pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    sync(folder(path))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A new name is on disk once its folder is.
fn sync(folder: &Path) -> Result<()> {
    let opened = File::open(folder).map_err(Error::io("cannot open", folder))?;
    opened.sync_all().map_err(Error::io("cannot sync", folder))
}

/// What one database consists of, in the order it is set aside.
const PARTS: [&str; 3] = ["-wal", "-shm", ""];
