//! Files of the workspace changed: each whole and at once, or not at all.
//!
//! What is written goes into a new file beside the old one, which takes its place. A reader sees one
//! or the other; a full disk leaves the old one; a second name of the old one keeps its bytes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fchmod, fchown, fstat, mkdirat, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::answer::Trouble;
use super::limits::EDIT_BYTES_MAX;
use super::read_file::whole;
use super::workspace::{Workspace, is_of_git, told};

/// The name of a file: the folder that holds it, and what is there now.
#[derive(Debug)]
pub(super) struct Place {
    /// As the model spells it.
    pub path: PathBuf,
    folder: OwnedFd,
    name: OsString,
    now: Option<Stat>,
}

/// A file as it is, to be changed.
#[derive(Debug)]
pub(super) struct Existing {
    pub place: Place,
    pub bytes: Vec<u8>,
}

impl Place {
    /// Where a file is, or would be; the folders that are missing are made.
    pub fn of(workspace: &Workspace, given: &str) -> Result<Self, Trouble> {
        let path = workspace.relative(given)?;
        match workspace.resolved(&path) {
            Ok(real) => Self::at(workspace, path, &real),
            Err(Trouble::NoResult(why)) => Err(Trouble::NoResult(why)),
            Err(Trouble::Mistake(why)) => {
                refuse_git(&path)?;
                workspace.refuse_private(&made_at(workspace, &path))?;
                let name = path.file_name().ok_or(Trouble::Mistake(why))?.to_owned();
                let parent = path.parent().unwrap_or(Path::new(""));
                // Its folder may be there under another name.
                if let Ok(real) = workspace.resolved(parent) {
                    refuse_git(&real.join(&name))?;
                }
                let folder = made_folder(workspace, parent)?;
                Self { folder, name, now: None, path }.seen()
            }
        }
    }

    /// What exists, under its real name.
    fn at(workspace: &Workspace, path: PathBuf, real: &Path) -> Result<Self, Trouble> {
        refuse_git(real)?;
        let name = real.file_name().map(OsStr::to_owned);
        let name =
            name.ok_or_else(|| Trouble::mistake(format!("{} is a folder", path.display())))?;
        let parent = real.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = workspace.folder(parent.unwrap_or(Path::new(".")))?;
        Self { folder, name, now: None, path }.seen()
    }

    /// With what is there now: a plain file or nothing.
    fn seen(mut self) -> Result<Self, Trouble> {
        self.now = self.look()?;
        let kind = self.now.map(|now| FileType::from_raw_mode(now.st_mode));
        match kind {
            None | Some(FileType::RegularFile) => Ok(self),
            Some(FileType::Directory) => {
                Err(Trouble::mistake(format!("{} is a folder", self.path.display())))
            }
            Some(FileType::Symlink) => Err(Trouble::refused(format!(
                "{} is a link that leads nowhere",
                self.path.display()
            ))),
            Some(_) => Err(Trouble::mistake(format!("{} is no plain file", self.path.display()))),
        }
    }

    fn look(&self) -> Result<Option<Stat>, Trouble> {
        match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(told(&self.path, errno)),
        }
    }

    pub fn exists(&self) -> bool {
        self.now.is_some()
    }

    /// Which file it is, however it is spelled.
    pub fn key(&self) -> Result<(u64, u64, OsString), Trouble> {
        let folder = fstat(&self.folder).map_err(|errno| told(&self.path, errno))?;
        Ok((folder.st_dev, folder.st_ino, self.name.clone()))
    }

    /// Puts a file with these bytes there, with the rights of the one that was.
    pub fn put(&self, bytes: &[u8]) -> Result<(), Trouble> {
        let temporary = self.beside();
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // For a new file the operator's own mask decides.
        let file = openat(&self.folder, &temporary, flags, Mode::from_raw_mode(0o666))
            .map_err(|errno| self.unwritten(errno))?;
        let done = self.filled(file, bytes).and_then(|()| {
            self.unchanged()?;
            renameat(&self.folder, &temporary, &self.folder, &self.name)
                .map_err(|errno| self.unwritten(errno))
        });
        if done.is_err() {
            let _ = unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        done
    }

    pub fn remove(&self) -> Result<(), Trouble> {
        self.unchanged()?;
        unlinkat(&self.folder, &self.name, AtFlags::empty()).map_err(|errno| self.unwritten(errno))
    }

    fn filled(&self, file: OwnedFd, bytes: &[u8]) -> Result<(), Trouble> {
        if let Some(now) = self.now {
            // Only who may give files away can keep another's.
            let _ = fchown(
                file.as_fd(),
                Some(Uid::from_raw(now.st_uid)),
                Some(Gid::from_raw(now.st_gid)),
            );
            fchmod(&file, Mode::from_raw_mode(now.st_mode))
                .map_err(|errno| self.unwritten(errno))?;
        }
        let mut file = File::from(file);
        file.write_all(bytes)
            .map_err(|error| Trouble::mistake(format!("{}: {error}", self.path.display())))
    }

    /// Nobody has put another file there since we looked.
    fn unchanged(&self) -> Result<(), Trouble> {
        let mark = |stat: &Stat| {
            (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec)
        };
        match self.look()?.as_ref().map(mark) == self.now.as_ref().map(mark) {
            true => Ok(()),
            false => Err(Trouble::mistake(format!(
                "{} was changed by somebody else meanwhile; read it again",
                self.path.display()
            ))),
        }
    }

    /// A name that nobody has, beside the file's.
    fn beside(&self) -> OsString {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        OsString::from(format!(".qd-{}-{number}.tmp", std::process::id()))
    }

    fn unwritten(&self, errno: Errno) -> Trouble {
        Trouble::mistake(format!("{} cannot be written: {errno}", self.path.display()))
    }
}

impl Existing {
    pub fn read(workspace: &Workspace, given: &str) -> Result<Self, Trouble> {
        let path = workspace.relative(given)?;
        let file = workspace.file(&path)?;
        let found = fstat(&file).map_err(|errno| told(&path, errno))?;
        let place = Place::at(workspace, path.clone(), &workspace.resolved(&path)?)?;
        let is_same =
            place.now.is_some_and(|now| (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino));
        if !is_same {
            return Err(Trouble::mistake(format!("{given} was moved meanwhile; read it again")));
        }
        let bytes = whole(file, EDIT_BYTES_MAX)
            .map_err(|error| Trouble::mistake(format!("{given} cannot be read: {error}")))?
            .ok_or_else(|| {
                Trouble::mistake(format!("{given} has more than {EDIT_BYTES_MAX} bytes"))
            })?;
        Ok(Self { place, bytes })
    }
}

fn refuse_git(path: &Path) -> Result<(), Trouble> {
    match is_of_git(path) {
        true => Err(Trouble::refused(format!(
            "{} is Git's own; the git tools change it",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Where a path that is not there would be: below the last folder on its way that is.
fn made_at(workspace: &Workspace, path: &Path) -> PathBuf {
    let there = |above: &&Path| workspace.resolved(above).is_ok();
    let Some(above) = path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty()).find(there)
    else {
        return path.to_owned();
    };
    let rest = path.strip_prefix(above).unwrap_or(path);
    workspace.resolved(above).map_or_else(|_| path.to_owned(), |real| real.join(rest))
}

/// Makes the folders that are missing, one below the other, none of them through a link.
fn made_folder(workspace: &Workspace, path: &Path) -> Result<OwnedFd, Trouble> {
    let mut missing = Vec::new();
    let mut existing = path;
    let mut folder = loop {
        let at = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
        match workspace.folder(at) {
            Ok(folder) => break folder,
            Err(Trouble::Mistake(_)) if !existing.as_os_str().is_empty() => {
                match existing.components().next_back() {
                    Some(Component::Normal(name)) => missing.push(name),
                    _ => return Err(told(path, Errno::NOENT)),
                }
                existing = existing.parent().unwrap_or(Path::new(""));
            }
            Err(trouble) => return Err(trouble),
        }
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    while let Some(name) = missing.pop() {
        match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(told(path, errno)),
        }
        folder = openat(&folder, name, flags, Mode::empty()).map_err(|errno| told(path, errno))?;
    }
    Ok(folder)
}
