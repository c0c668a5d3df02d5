//! A walk through a folder of the workspace: what Git would look at, in the order of names.
//!
//! Each folder is opened from the one above it and no link is followed, so that nothing that
//! happens meanwhile leads the walk out.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

use super::answer::Trouble;
use super::limits::{IGNORE_FILE_BYTES_MAX, WALK_DEPTH_MAX, WALK_ENTRIES_MAX};
use super::pace::Pace;
use super::workspace::Workspace;

/// One thing that a walk comes to.
#[derive(Debug)]
pub(super) struct Found<'a> {
    /// Seen from the workspace's root.
    pub path: &'a Path,
    pub kind: FileType,
    /// How many folders below the one that is walked through.
    pub depth: usize,
    folder: BorrowedFd<'a>,
}

/// Whether a walk went through everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walked {
    All,
    /// It had seen enough, or had looked at too much.
    Partly,
}

pub(super) enum Next {
    Go,
    /// Not into this folder.
    Skip,
    Stop,
}

impl Found<'_> {
    /// The file; none if it is gone, or another thing by now.
    pub fn open(&self) -> Option<File> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(self.folder, self.path.file_name()?, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_plain.then(|| File::from(file))
    }
}

/// A folder that is still to be gone through. It is opened when it is its turn: a folder may have
/// more of them than a process may have descriptors.
struct Ahead {
    above: Arc<OwnedFd>,
    name: Vec<u8>,
    path: PathBuf,
    depth: usize,
    ignored: Option<Arc<Ignored>>,
}

/// What a folder's `.gitignore` says, and those above it.
struct Ignored {
    rules: Gitignore,
    above: Option<Arc<Ignored>>,
}

/// Goes through a folder: its own files and folders, then what lies below each of them.
pub(super) fn walk(
    workspace: &Workspace,
    start: &Path,
    pace: &Pace,
    mut visit: impl FnMut(&Found<'_>) -> Next,
) -> Result<Walked, Trouble> {
    let start = workspace.resolved(start)?;
    let at = if start.as_os_str().is_empty() { Path::new(".") } else { &start };
    let above = Arc::new(workspace.folder(at)?);
    let ignored = ignored_above(workspace, &start);
    let mut ahead = vec![Ahead { above, name: b".".to_vec(), path: start, depth: 0, ignored }];
    let mut seen = 0;
    while let Some(Ahead { above, name, path: place, depth, ignored }) = ahead.pop() {
        // It may have been removed, be another user's, or a link by now.
        let Some(folder) = subfolder(&above, &name).map(Arc::new) else { continue };
        let Ok(names) = names(&folder) else { continue };
        let ignored = ignored_by(folder.as_fd(), ".gitignore", &place, ignored);
        let mut below = Vec::new();
        for (name, kind) in names {
            pace.look()?;
            seen += 1;
            if seen > WALK_ENTRIES_MAX {
                return Ok(Walked::Partly);
            }
            let path = place.join(OsStr::from_bytes(&name));
            let is_folder = kind == FileType::Directory;
            if workspace.is_private(&path) {
                continue;
            }
            if name == b".git" || is_ignored(ignored.as_deref(), &path, is_folder) {
                continue;
            }
            match visit(&Found { path: &path, kind, depth, folder: folder.as_fd() }) {
                Next::Stop => return Ok(Walked::Partly),
                Next::Go if is_folder && depth + 1 < WALK_DEPTH_MAX => {
                    let (above, ignored) = (folder.clone(), ignored.clone());
                    below.push(Ahead { above, name, path, depth: depth + 1, ignored });
                }
                Next::Go | Next::Skip => {}
            }
        }
        ahead.extend(below.into_iter().rev());
    }
    Ok(Walked::All)
}

fn names(folder: &OwnedFd) -> rustix::io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let found = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            kind = found.map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode));
        }
        names.push((name.to_vec(), kind));
        if names.len() > WALK_ENTRIES_MAX {
            break;
        }
    }
    names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    Ok(names)
}

fn subfolder(folder: &OwnedFd, name: &[u8]) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty()).ok()
}

/// What the folders above the start say.
fn ignored_above(workspace: &Workspace, start: &Path) -> Option<Arc<Ignored>> {
    let mut ignored = ignored_by(workspace.root(), ".git/info/exclude", Path::new(""), None);
    let mut way = PathBuf::new();
    for part in start.components() {
        let at = if way.as_os_str().is_empty() { Path::new(".") } else { &way };
        let Ok(folder) = workspace.folder(at) else { return ignored };
        ignored = ignored_by(folder.as_fd(), ".gitignore", &way, ignored);
        way.push(part);
    }
    ignored
}

/// What one such file says, on top of those above it.
fn ignored_by(
    folder: BorrowedFd<'_>,
    name: &str,
    path: &Path,
    above: Option<Arc<Ignored>>,
) -> Option<Arc<Ignored>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, name, flags, Mode::empty()) else { return above };
    let mut text = String::new();
    let read = File::from(file).take(IGNORE_FILE_BYTES_MAX).read_to_string(&mut text);
    if read.is_err() {
        return above;
    }
    let mut builder = GitignoreBuilder::new(Path::new("/").join(path));
    for line in text.lines() {
        // A line that makes no sense ignores nothing, as with Git.
        let _ = builder.add_line(None, line);
    }
    match builder.build() {
        Ok(rules) => Some(Arc::new(Ignored { rules, above })),
        Err(_) => above,
    }
}

/// The nearest folder that has a word about it decides.
fn is_ignored(mut ignored: Option<&Ignored>, path: &Path, is_folder: bool) -> bool {
    let path = Path::new("/").join(path);
    while let Some(rules) = ignored {
        let matched = rules.rules.matched(&path, is_folder);
        if !matched.is_none() {
            return matched.is_ignore();
        }
        ignored = rules.above.as_deref();
    }
    false
}
