//! The folder that a session works in. Every path is resolved by the kernel below it, so that no
//! `..`, no link and no race leads out.
//!
//! A file with a second name outside cannot be told from others. It is never written through:
//! writing puts a new file in its place (`writing.rs`).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use qd_host::private_places::PrivatePlaces;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;

use super::answer::Trouble;

#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    /// Without links.
    path: PathBuf,
    /// As it was given.
    spelled: PathBuf,
    /// Private places in it, seen from the root.
    closed: Vec<PathBuf>,
}

impl Workspace {
    pub fn open(spelled: &Path) -> io::Result<Self> {
        Self::open_without(spelled, &PrivatePlaces::default())
    }

    /// A workspace in which nothing of the private places is to be seen.
    pub fn open_without(spelled: &Path, private: &PrivatePlaces) -> io::Result<Self> {
        let path = spelled.canonicalize()?;
        if let Some(place) = private.around(&path) {
            return Err(io::Error::other(format!(
                "{} holds settings of Quarterdeck or of an agent; choose another folder",
                place.display()
            )));
        }
        if path.to_str().is_none() {
            return Err(io::Error::other("its path is no text"));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&path, flags, Mode::empty())?;
        let closed = private.below(&path);
        Ok(Self { root, path, spelled: spelled.to_owned(), closed })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// A path of the model's, seen from the root. Models like to give whole paths; whether one leads
    /// out is not decided here.
    pub fn relative(&self, given: &str) -> Result<PathBuf, Trouble> {
        if given.is_empty() || given.contains('\0') {
            return Err(Trouble::mistake("the path is empty"));
        }
        let given = Path::new(given);
        if given.is_relative() {
            return Ok(given.to_owned());
        }
        let below =
            [&self.path, &self.spelled].into_iter().find_map(|root| given.strip_prefix(root).ok());
        let below = below.ok_or_else(|| outside(given))?;
        Ok(if below.as_os_str().is_empty() { PathBuf::from(".") } else { below.to_owned() })
    }

    /// A file to be read. Nothing but a plain file: a pipe would never end.
    pub fn file(&self, path: &Path) -> Result<File, Trouble> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.opened(path, flags)?;
        let kind =
            FileType::from_raw_mode(fstat(&file).map_err(|errno| told(path, errno))?.st_mode);
        match kind == FileType::RegularFile {
            true => Ok(File::from(file)),
            false if kind == FileType::Directory => Err(Trouble::mistake(format!(
                "{} is a folder; list_files shows it",
                path.display()
            ))),
            false => Err(Trouble::mistake(format!("{} is no plain file", path.display()))),
        }
    }

    pub fn folder(&self, path: &Path) -> Result<OwnedFd, Trouble> {
        self.opened(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Where a file or folder really lies, seen from the root: without links and `..`.
    pub fn resolved(&self, path: &Path) -> Result<PathBuf, Trouble> {
        let found = self.opened(path, PLACE)?;
        self.below(path, &found)
    }

    pub(super) fn opened(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Trouble> {
        let opened = beneath(self.root(), path, flags | OFlags::CLOEXEC);
        let opened = opened.map_err(|errno| told(path, errno))?;
        // Wherever links led it: what is open now is what is looked at.
        if !self.closed.is_empty() {
            self.below(path, &opened)?;
        }
        Ok(opened)
    }

    /// Refuses what lies in a private place, by its real name seen from the root.
    pub(super) fn refuse_private(&self, real: &Path) -> Result<(), Trouble> {
        match self.is_private(real) {
            true => Err(Trouble::refused(format!(
                "{} holds settings of Quarterdeck or of an agent, which no session reaches",
                real.display()
            ))),
            false => Ok(()),
        }
    }

    pub(super) fn is_private(&self, real: &Path) -> bool {
        self.closed.iter().any(|closed| lies_in(real, closed))
    }

    /// Where something that is open lies, seen from the root.
    fn below(&self, path: &Path, opened: &OwnedFd) -> Result<PathBuf, Trouble> {
        let real = place_of(opened).map_err(|errno| told(path, errno))?;
        let below = real.strip_prefix(&self.path).map_err(|_| outside(path))?;
        self.refuse_private(below)?;
        Ok(below.to_owned())
    }
}

/// What the operator should know of a folder before a session of ours works there.
pub(super) fn caution(folder: &Path, private: &PrivatePlaces) -> Option<String> {
    let there = private_places_in(folder, private)?;
    Some(format!(
        "This folder contains settings of Quarterdeck or of agents ({there}). Tools and commands \
         can't read or change them. Commands also can't list, add or rename files in the folders \
         that lead to them. Choose a project folder to avoid this."
    ))
}

/// The private places that are there in a folder, shortly; none if there are none.
pub fn private_places_in(folder: &Path, private: &PrivatePlaces) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mut there = private.below(&folder);
    there.retain(|place| folder.join(place).symlink_metadata().is_ok());
    let first = there.first()?;
    let more = match there.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{}{more}", first.display()))
}

/// Some file systems know one file by its name in capitals, too.
fn lies_in(path: &Path, folder: &Path) -> bool {
    let mut parts = path.iter();
    folder.iter().all(|name| parts.next().is_some_and(|part| part.eq_ignore_ascii_case(name)))
}

/// What the model is told, or the operator if it was an attempt to leave.
pub(super) fn told(path: &Path, errno: Errno) -> Trouble {
    let path_shown = path.display();
    match errno {
        Errno::XDEV => outside(path),
        Errno::LOOP => Trouble::refused(format!("{path_shown} is a link that is not followed")),
        Errno::NOENT => Trouble::mistake(format!("{path_shown} does not exist")),
        Errno::NOTDIR => Trouble::mistake(format!("a part of {path_shown} is no folder")),
        Errno::ACCESS | Errno::PERM => Trouble::mistake(format!("{path_shown}: permission denied")),
        errno => Trouble::mistake(format!("{path_shown}: {errno}")),
    }
}

fn outside(path: &Path) -> Trouble {
    Trouble::refused(format!("{} lies outside the workspace", path.display()))
}

/// A file of Git's own, which file tools do not write: hooks and settings there would run as the
/// operator.
pub(super) fn is_of_git(path: &Path) -> bool {
    path.components()
        .any(|part| matches!(part, Component::Normal(name) if name.eq_ignore_ascii_case(".git")))
}

#[cfg(target_os = "linux")]
const PLACE: OFlags = OFlags::PATH;

#[cfg(not(target_os = "linux"))]
const PLACE: OFlags = OFlags::RDONLY;

#[cfg(target_os = "linux")]
fn place_of(found: &OwnedFd) -> Result<PathBuf, Errno> {
    use std::os::fd::AsRawFd;

    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    std::fs::read_link(link).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

#[cfg(not(target_os = "linux"))]
fn place_of(found: &OwnedFd) -> Result<PathBuf, Errno> {
    use std::os::unix::ffi::OsStringExt;

    let path = rustix::fs::getpath(found)?.into_bytes();
    Ok(PathBuf::from(std::ffi::OsString::from_vec(path)))
}

/// Opens what lies below a folder, or says `XDEV`.
#[cfg(target_os = "linux")]
fn beneath(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    use super::limits::RESOLVE_TRIES;

    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..RESOLVE_TRIES {
        match openat2(root, path, flags, Mode::empty(), resolve) {
            // Somebody renamed a folder on the way while `..` was resolved.
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

/// Without the kernel's help no link is followed at all.
#[cfg(not(target_os = "linux"))]
fn beneath(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::openat;

    let mut parts: Vec<&std::ffi::OsStr> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop().ok_or(Errno::XDEV)?),
            Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let last = parts.pop();
    let mut folder = openat(root, ".", step, Mode::empty())?;
    for name in parts {
        folder = openat(&folder, name, step, Mode::empty())?;
    }
    match last {
        Some(name) => openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty()),
        None => openat(&folder, ".", flags, Mode::empty()),
    }
}
