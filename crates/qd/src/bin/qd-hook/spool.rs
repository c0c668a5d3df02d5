//! The spool: a folder with one file for each frame that the daemon did not take.
//!
//! A frame is written under one name and renamed to another, so that the daemon never meets a
//! half one under the right name, and hooks that run at the same time do not wait for each other.
//! A file's name has its length and its session, so that a listing is enough to know how full the
//! folder is and which frames newer ones supersede. Those go when it is full ([`trimming`]): what
//! was said last of each session stays. No symbolic link is followed below the folder's own name.

use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use qd_hook_wire::LOSSES_MAX;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::limits::{BLOCK_BYTES, SPOOL_BYTES_FULL, SPOOL_BYTES_MAX};
use crate::message::Message;
use crate::trimming;

/// Writes the frame. One that cannot be kept is counted where that is possible.
pub fn keep(path: &Path, message: &Message) -> Option<Kept> {
    let parent = if path.exists() { None } else { path.parent().map(Path::to_owned) };
    let folder = open_or_make(path).ok()?;
    match write(&folder, message) {
        Ok((file, fill)) => Some(Kept { file, folder, parent, fill }),
        Err(loss) => {
            Tally::open(&folder).count(loss);
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
    fill: Fill,
}

impl Kept {
    /// Slow. If it fails the frame is as safe as this disk makes it, and there is nobody to tell.
    pub fn settle(&self) {
        let _ = self.file.sync_all();
        let _ = rustix::fs::fsync(&self.folder);
        if let Some(Ok(parent)) = self.parent.as_deref().map(open) {
            let _ = rustix::fs::fsync(parent);
        }
        if self.fill == Fill::Over {
            // What cannot be listed or removed now is tried again by the next hook.
            let _ = trimming::trim(&self.folder);
        }
    }
}

/// Why a frame is not in the spool; also the byte that counts it.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Loss {
    Full = b'f',
    Unwritable = b'w',
    /// A newer one of its session was there, and the spool was full.
    Superseded = b's',
}

/// How full the spool is with one more frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Within,
    /// Superseded frames have to go.
    Over,
    /// It can take nothing more of sessions that it does not know.
    Full,
}

fn write(folder: &OwnedFd, message: &Message) -> Result<(File, Fill), Loss> {
    let (fill, is_known) = fill(folder, message).map_err(|_| Loss::Unwritable)?;
    if fill == Fill::Full && !is_known {
        return Err(Loss::Full);
    }
    let over = if fill == Fill::Within { Fill::Within } else { Fill::Over };
    let file = put(folder, message).or_else(|_| {
        // On a full disk what this frame supersedes is the room that it needs.
        trimming::drop_superseded_by(folder, message)?;
        put(folder, message)
    });
    file.map(|file| (file, over)).map_err(|_| Loss::Unwritable)
}

fn put(folder: &OwnedFd, message: &Message) -> Result<File, Errno> {
    let stem = format!("{}-{}-{:016x}", message.id, message.spooled().len(), message.session_key);
    let (part, frame) = (format!("{stem}.part"), format!("{stem}.frame"));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, part.as_str(), flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(file?);
    let written = file.write_all(message.spooled()).map_err(|_| Errno::IO);
    let written =
        written.and_then(|()| rustix::fs::renameat(folder, part.as_str(), folder, frame.as_str()));
    if let Err(errno) = written {
        let _ = rustix::fs::unlinkat(folder, part.as_str(), AtFlags::empty());
        return Err(errno);
    }
    Ok(file)
}

/// How full it is with this frame, and whether an older one of its session is there. Hooks that
/// run at the same moment may each see the last free place; the overshoot is theirs.
fn fill(folder: &OwnedFd, message: &Message) -> Result<(Fill, bool), Errno> {
    let (mut bytes, mut is_known) = (on_disk(message.spooled().len() as u64), false);
    for_each_name(folder, |name| {
        if let Some(name) = FrameName::parse(name) {
            bytes = bytes.saturating_add(on_disk(name.bytes));
            is_known |= name.session_key == Some(message.session_key);
        }
    })?;
    let fill = if bytes <= SPOOL_BYTES_MAX {
        Fill::Within
    } else if bytes <= SPOOL_BYTES_FULL {
        Fill::Over
    } else {
        Fill::Full
    };
    Ok((fill, is_known))
}

/// What a file of that length takes of the disk.
pub fn on_disk(bytes: u64) -> u64 {
    bytes.max(1).checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX)
}

/// What `<id>-<length>-<session>.frame` says. Older forwarders name no session.
pub struct FrameName {
    pub id: u128,
    pub bytes: u64,
    pub session_key: Option<u64>,
    pub is_part: bool,
}

impl FrameName {
    pub fn parse(name: &[u8]) -> Option<Self> {
        let (stem, ending) = std::str::from_utf8(name).ok()?.rsplit_once('.')?;
        let is_part = ending == "part";
        if !is_part && ending != "frame" {
            return None;
        }
        let mut words = stem.split('-');
        let id = u128::from_str_radix(words.next()?, 16).ok()?;
        let bytes = words.next()?.parse().ok()?;
        let session_key = words.next().and_then(|key| u64::from_str_radix(key, 16).ok());
        Some(Self { id, bytes, session_key, is_part })
    }
}

/// In large pieces and without a copy of each name: a spool may be long, and an agent waits.
#[cfg(target_os = "linux")]
pub fn for_each_name(folder: &OwnedFd, mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
    rustix::fs::seek(folder, rustix::fs::SeekFrom::Start(0))?;
    let mut piece = [const { std::mem::MaybeUninit::uninit() }; LISTING_PIECE_BYTES];
    let mut entries = rustix::fs::RawDir::new(folder, &mut piece);
    while let Some(entry) = entries.next() {
        each(entry?.file_name().to_bytes());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub fn for_each_name(folder: &OwnedFd, mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        each(entry?.file_name().to_bytes());
    }
    Ok(())
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
pub struct Tally(Option<File>);

impl Tally {
    pub fn open(folder: &OwnedFd) -> Self {
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let rights = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(folder, LOST, flags | OFlags::NONBLOCK, rights);
        let file = file.ok().map(File::from);
        Self(file.filter(|file| file.metadata().is_ok_and(|found| found.is_file())))
    }

    pub fn count(&mut self, loss: Loss) {
        let Some(file) = &mut self.0 else { return };
        if file.metadata().is_ok_and(|found| found.len() < LOSSES_MAX) {
            // On a disk without a free byte there is nowhere to count.
            let _ = file.write(&[loss as u8]);
        }
    }
}

const LOST: &str = "lost";

/// Some hundred names; more makes the kernel no faster.
#[cfg(target_os = "linux")]
const LISTING_PIECE_BYTES: usize = 32 << 10;
