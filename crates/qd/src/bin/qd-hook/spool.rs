//! The spool: a folder with one file for each frame that the daemon did not take.
//!
//! A frame is written under one name and renamed to another, so that the daemon never meets a
//! half one under the right name, and hooks that run at the same time do not wait for each other.
//! A file's name has its length, so that a listing is enough to know how full the folder is.
//! No symbolic link is followed below the folder's own name.

use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::limits::{LOSSES_MAX, SPOOL_BYTES_MAX, SPOOL_FRAMES_MAX};
use crate::message::Message;

/// Writes the frame. One that cannot be kept is counted where that is possible.
pub fn keep(path: &Path, message: &Message) -> Option<Kept> {
    let parent = if path.exists() { None } else { path.parent().map(Path::to_owned) };
    let folder = open_or_make(path).ok()?;
    match write(&folder, message) {
        Ok(file) => Some(Kept { file, folder, parent }),
        Err(loss) => {
            count(&folder, loss);
            None
        }
    }
}

/// A frame in the spool that a power cut could still take away.
pub struct Kept {
    file: File,
    folder: OwnedFd,
    /// Where the folder is new.
    parent: Option<PathBuf>,
}

impl Kept {
    /// Slow. If it fails the frame is as safe as this disk makes it, and there is nobody to tell.
    pub fn sync(&self) {
        let _ = self.file.sync_all();
        let _ = rustix::fs::fsync(&self.folder);
        if let Some(Ok(parent)) = self.parent.as_deref().map(open) {
            let _ = rustix::fs::fsync(parent);
        }
    }
}

/// Why a frame could not be kept; also the byte that counts it.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Loss {
    Full = b'f',
    Unwritable = b'w',
}

fn write(folder: &OwnedFd, message: &Message) -> Result<File, Loss> {
    let bytes = message.spooled();
    if !has_room(folder, bytes.len()).map_err(|_| Loss::Unwritable)? {
        return Err(Loss::Full);
    }
    let part = format!("{}-{}.part", message.id, bytes.len());
    let frame = format!("{}-{}.frame", message.id, bytes.len());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, part.as_str(), flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(file.map_err(|_| Loss::Unwritable)?);
    let written = file.write_all(bytes).and_then(|()| {
        rustix::fs::renameat(folder, part.as_str(), folder, frame.as_str())?;
        Ok(())
    });
    if written.is_err() {
        let _ = rustix::fs::unlinkat(folder, part.as_str(), AtFlags::empty());
        return Err(Loss::Unwritable);
    }
    Ok(file)
}

/// Hooks that run at the same moment may each see the last free place; the overshoot is theirs.
fn has_room(folder: &OwnedFd, frame_len: usize) -> Result<bool, Errno> {
    let (mut files, mut bytes) = (0, frame_len as u64);
    for_each_name(folder, |name| {
        files += 1;
        bytes = bytes.saturating_add(announced_len(name));
    })?;
    // The folder itself, its parent, `aside` and `lost` are no frames.
    Ok(files < SPOOL_FRAMES_MAX + 4 && bytes <= SPOOL_BYTES_MAX)
}

/// In large pieces and without a copy of each name: a spool may be long, and an agent waits.
#[cfg(target_os = "linux")]
fn for_each_name(folder: &OwnedFd, mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
    let mut piece = [const { std::mem::MaybeUninit::uninit() }; LISTING_PIECE_BYTES];
    let mut entries = rustix::fs::RawDir::new(folder, &mut piece);
    while let Some(entry) = entries.next() {
        each(entry?.file_name().to_bytes());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn for_each_name(folder: &OwnedFd, mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        each(entry?.file_name().to_bytes());
    }
    Ok(())
}

/// The length in a name such as `<id>-<length>.frame`; nothing for other names.
fn announced_len(name: &[u8]) -> u64 {
    let len = std::str::from_utf8(name).ok().and_then(|name| {
        let (stem, _) = name.rsplit_once('.')?;
        stem.rsplit_once('-')?.1.parse().ok()
    });
    len.unwrap_or(0)
}

fn open_or_make(path: &Path) -> Result<OwnedFd, Errno> {
    let folder = match open(path) {
        Err(Errno::NOENT) => {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(|_| Errno::NOENT)?;
            open(path)?
        }
        other => other?,
    };
    let found = rustix::fs::fstat(&folder)?;
    if found.st_uid != rustix::process::geteuid().as_raw() {
        // Another user's daemon could not read what we write.
        return Err(Errno::PERM);
    }
    if found.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&folder, Mode::RWXU)?;
    }
    Ok(folder)
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

/// One byte for each lost frame: no lock, no reading, and never more than the daemon reads.
fn count(folder: &OwnedFd, loss: Loss) {
    let flags =
        OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, LOST, flags | OFlags::NONBLOCK, Mode::RUSR | Mode::WUSR);
    let Ok(mut file) = file.map(File::from) else { return };
    if file.metadata().is_ok_and(|found| found.is_file() && found.len() < LOSSES_MAX) {
        // On a disk without a free byte there is nowhere to count.
        let _ = file.write(&[loss as u8]);
    }
}

const LOST: &str = "lost";

/// Some hundred names; more makes the kernel no faster.
#[cfg(target_os = "linux")]
const LISTING_PIECE_BYTES: usize = 32 << 10;
