//! Folders that commands have filled, taken away.
//!
//! A command may leave a tree of any size and depth there. It is moved aside at once and removed
//! on a thread of its own, without recursion: what lies deeper than one folder is moved up first.
//! A tree of a hundred thousand levels would take all stack, or all descriptors, of whoever went
//! down into it.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat,
};
use rustix::io::{Errno, Result};
use tracing::warn;

use super::limits::{ASIDE_MAX, REMOVED_AT_ONCE};

/// How the names of folders begin that were moved aside.
const ASIDE: &str = "discarded-";

/// Takes a folder away: it is gone under its name when this returns. What a killed daemon had moved
/// aside beside it goes with it.
pub fn discard(folder: &Path) {
    let Some(parent) = folder.parent() else { return };
    match renameat(CWD, folder, CWD, parent.join(format!("{ASIDE}{}", unique()))) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => warn!(%error, folder = %folder.display(), "temporary files are left over"),
    }
    let is_aside = |name: &std::ffi::OsStr| name.to_str().is_some_and(|it| it.starts_with(ASIDE));
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let aside = entries.filter(|entry| is_aside(&entry.file_name())).map(|entry| entry.path());
    let aside: Vec<PathBuf> = aside.take(ASIDE_MAX).collect();
    let removing = thread::Builder::new().name("qd-discard".to_owned()).spawn(move || {
        for folder in aside {
            // Two threads may be at it; whoever finds nothing any more is content.
            if let Err(error) = remove(&folder)
                && error != Errno::NOENT
            {
                warn!(%error, folder = %folder.display(), "temporary files are left over");
            }
        }
    });
    if let Err(error) = removing {
        warn!(%error, "temporary files are left over");
    }
}

/// Removes a folder and all that is below it.
fn remove(folder: &Path) -> Result<()> {
    let root = opened(CWD, folder)?;
    loop {
        let found = some_entries(&root)?;
        if found.is_empty() {
            return unlinkat(CWD, folder, AtFlags::REMOVEDIR);
        }
        for (name, is_folder) in found {
            match is_folder {
                true => empty_into(&root, &name)?,
                false => unlinked(&root, &name, AtFlags::empty())?,
            }
        }
    }
}

/// Empties a folder of the root, whose own folders become folders of the root.
fn empty_into(root: &OwnedFd, name: &CString) -> Result<()> {
    let folder = match opened(root, name) {
        Err(Errno::NOENT) => return Ok(()),
        folder => folder?,
    };
    loop {
        let found = some_entries(&folder)?;
        if found.is_empty() {
            return unlinked(root, name, AtFlags::REMOVEDIR);
        }
        for (below, is_folder) in found {
            if !is_folder {
                unlinked(&folder, &below, AtFlags::empty())?;
                continue;
            }
            // To be moved a folder has to be writable itself.
            let _ = chmodat(&folder, &below, Mode::RWXU, AtFlags::empty());
            match renameat(&folder, &below, root, format!("moved-{}", unique())) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn unlinked(folder: &OwnedFd, name: &CString, flags: AtFlags) -> Result<()> {
    match unlinkat(folder, name, flags) {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

/// A few entries of a folder, and which of them are folders.
fn some_entries(folder: &OwnedFd) -> Result<Vec<(CString, bool)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            kind = stat.map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode));
        }
        found.push((name.to_owned(), kind == FileType::Directory));
        if found.len() == REMOVED_AT_ONCE {
            break;
        }
    }
    Ok(found)
}

/// A folder to be emptied, whatever rights a command has left it.
fn opened(above: impl AsFd, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(above.as_fd(), name, flags | OFlags::PATH, Mode::empty())?;
    let _ = chmodat(above.as_fd(), name, Mode::RWXU, AtFlags::empty());
    drop(folder);
    openat(above.as_fd(), name, flags, Mode::empty())
}

/// A name that nothing had before, also not in the daemon before this one.
fn unique() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    format!("{}-{}-{number}", std::process::id(), now.map_or(0, |since| since.as_nanos()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::mkdirat;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("qd-scratch-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("tree")).expect("a folder");
        folder
    }

    #[test]
    fn a_tree_that_would_take_the_stack_is_removed() {
        let base = folder("deep");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut at = opened(CWD, &base.join("tree")).expect("opened");
        for _ in 0..30_000 {
            mkdirat(&at, "a", Mode::RWXU).expect("made");
            at = openat(&at, "a", flags, Mode::empty()).expect("opened");
        }
        // A thread with as little stack as can be had.
        let tree = base.join("tree");
        let small = thread::Builder::new().stack_size(128 << 10);
        small.spawn(move || remove(&tree)).expect("begun").join().expect("ended").expect("removed");
        fs::remove_dir(&base).expect("nothing is left");
    }

    #[test]
    fn a_link_is_removed_and_not_followed_and_rights_do_not_matter() {
        let base = folder("odd");
        let (tree, kept) = (base.join("tree"), base.join("kept"));
        fs::create_dir_all(tree.join("a/b/closed/c")).expect("folders");
        fs::create_dir_all(&kept).expect("a folder");
        fs::write(kept.join("file"), "mine").expect("written");
        symlink(&kept, tree.join("a/b/link")).expect("linked");
        symlink(&kept, tree.join("link")).expect("linked");
        for index in 0..2 * REMOVED_AT_ONCE {
            fs::write(tree.join(format!("a/file-{index}")), "x").expect("written");
        }
        let none = fs::Permissions::from_mode(0o0);
        fs::set_permissions(tree.join("a/b/closed"), none).expect("closed");
        remove(&tree).expect("removed");
        assert!(!tree.exists());
        assert_eq!(fs::read_to_string(kept.join("file")).expect("there"), "mine");
        fs::remove_dir_all(&base).expect("removed");
    }
}
