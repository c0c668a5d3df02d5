//! The frames that forwarders left on disk while nobody listened.
//!
//! One file is one frame, `<id>-<bytes>-<session>.frame`; a forwarder writes it as `.part` and
//! renames it, so a half one keeps the other name. Names sort by time. What is no frame goes to
//! `aside/`. When the spool is full, forwarders remove what newer hooks of the same session
//! supersede: a file may be gone when it is looked at.
//!
//! Invariant: a file is removed only after its frame was taken, and no symbolic link is followed
//! below the spool's own name.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use qd_hook_wire::{FrameId, HEADER_BYTES_MAX};
use qd_hook_wire::{LOSSES_MAX, PAYLOAD_BYTES_MAX};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::frame::Frame;
use super::known_ids::{Admission, KnownIds};
use super::parser::FrameParser;
use crate::Error;

/// Files looked at in one listing of the spool, oldest first; the rest waits for the next listing.
/// Forwarders leave up to 64 MiB there, which is some 16,000 files.
const SPOOL_LISTING_MAX: usize = 4_096;

/// Frames of one batch from the spool: what one group commit takes.
pub const BATCH_FRAMES_MAX: usize = 256;

/// Payload bytes after which a batch is full, so that draining never needs more memory than
/// this and one frame.
pub const BATCH_BYTES_MAX: usize = 4 << 20;

/// Age after which a half-written file has no writer any more. A forwarder lives for about a
/// quarter of a second, and its disk may be slow.
const PART_STALE_MS: u64 = 10_000;

/// How coarse the clock of a file system may be: two changes of a folder within that time may bear
/// the same stamp. Linux stamps with the timer's tick, ten milliseconds at most.
const FOLDER_CLOCK_MS: u64 = 20;

/// Files kept that are no frames. They are evidence of a fault, not data: the oldest goes first
/// and is counted.
pub const ASIDE_FILES_MAX: usize = 64;

/// The spool's folder, opened once.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    folder: OwnedFd,
    aside: OwnedFd,
    /// When it was last written to, as of the last listing; none if that was too short a time
    /// before for the file system's clock to tell the next write from it.
    listed: Cell<Option<Written>>,
}

/// Seconds and nanoseconds of a folder's last change.
type Written = (i64, u64);

/// What one look at the spool gave. To be journaled, then [`Spool::settle`]d.
#[derive(Debug, Default)]
#[must_use = "its files stay until the batch is settled"]
pub struct Batch {
    /// New frames, oldest first; all in flight in the [`KnownIds`] given.
    pub frames: Vec<Frame>,
    /// What was no frame.
    pub set_aside: Vec<SetAside>,
    /// Old files in `aside/` that had to go for newer ones.
    pub aside_dropped: usize,
    /// Files that were passed over because their frames are in flight from elsewhere: the spool
    /// has to be looked at again when those are settled.
    pub in_flight: usize,
    /// The names of `frames`.
    files: Vec<Name>,
}

/// A file that was no frame, and why.
#[derive(Debug)]
pub struct SetAside {
    pub file: String,
    pub why: Error,
}

/// Frames that forwarders could neither deliver nor keep, since the spool was made. The counts
/// mean "at least" when they add up to [`LOSSES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// The spool was full, and a newer one of the same session was in it.
    pub superseded: u64,
    /// The spool was full, and nothing could go for it.
    pub full: u64,
    /// It could not be written: no space, no permission, a broken disk.
    pub unwritable: u64,
}

impl Losses {
    /// What was lost beyond what these say.
    pub fn since(self, told: Self) -> Self {
        Self {
            superseded: self.superseded.saturating_sub(told.superseded),
            full: self.full.saturating_sub(told.full),
            unwritable: self.unwritable.saturating_sub(told.unwritable),
        }
    }

    pub fn count(self) -> u64 {
        self.superseded + self.full + self.unwritable
    }
}

impl Spool {
    /// Opens the folder, and makes it where it is missing, for this user only.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source: io::Error| spool_error("open", path, source);
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(path).map_err(failed)?;
        let folder = open_folder(CWD, path).map_err(|errno| failed(errno.into()))?;
        let found = rustix::fs::fstat(&folder).map_err(|errno| failed(errno.into()))?;
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Error::SpoolForeign { path: path.to_owned() });
        }
        if found.st_mode & 0o077 != 0 {
            rustix::fs::fchmod(&folder, Mode::RWXU).map_err(|errno| failed(errno.into()))?;
        }
        let aside = match rustix::fs::mkdirat(&folder, ASIDE, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => open_folder(&folder, Path::new(ASIDE)),
            Err(errno) => Err(errno),
        };
        let aside = aside.map_err(|errno| failed(errno.into()))?;
        Ok(Self { path: path.to_owned(), folder, aside, listed: Cell::new(None) })
    }

    /// Whether something may have been put in or taken out since the last batch was asked for.
    /// Costs one system call: whoever takes a frame from the socket can ask whether an older one
    /// of the same agent lies here.
    pub fn may_have_changed(&self) -> bool {
        self.listed.get().is_none_or(|listed| self.written() != Some(listed))
    }

    fn written(&self) -> Option<Written> {
        let found = rustix::fs::fstat(&self.folder).ok()?;
        Some((found.st_mtime, found.st_mtime_nsec))
    }

    /// The oldest frames that nobody took yet. An empty batch means that nothing is left but what
    /// is in flight. Each batch is settled or abandoned before the next.
    pub fn next_batch(&self, now_ms: u64, known: &mut KnownIds) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        match self.fill(&mut batch, now_ms, known) {
            Ok(()) => Ok(batch),
            Err(error) => {
                self.abandon(batch, known);
                Err(error)
            }
        }
    }

    fn fill(&self, batch: &mut Batch, now_ms: u64, known: &mut KnownIds) -> Result<(), Error> {
        let (mut bytes, mut duplicates) = (0, Vec::new());
        for name in self.listing(now_ms)? {
            if batch.files.len() >= BATCH_FRAMES_MAX || bytes >= BATCH_BYTES_MAX {
                break;
            }
            match known.admit(name.id) {
                Admission::New => {}
                Admission::InFlight => {
                    batch.in_flight += 1;
                    continue;
                }
                Admission::Taken => {
                    duplicates.push(name);
                    continue;
                }
                Admission::Full => {
                    batch.in_flight += 1;
                    break;
                }
            }
            match self.read(&name) {
                Ok(Some(frame)) => {
                    bytes += frame.payload.len();
                    batch.frames.push(frame);
                    batch.files.push(name);
                }
                Ok(None) => known.abandon(name.id),
                Err(why) => {
                    known.abandon(name.id);
                    if is_our_shortage(&why) {
                        return Err(why);
                    }
                    batch.aside_dropped += self.set_aside(&name)?;
                    batch.set_aside.push(SetAside { file: name.file(), why });
                }
            }
        }
        // Nobody needs to wait for these: the journal has had them for long.
        self.remove(&duplicates)
    }

    /// The journal holds the batch: its files go, and its ids are known.
    pub fn settle(&self, batch: Batch, known: &mut KnownIds) -> Result<(), Error> {
        batch.frames.iter().for_each(|frame| known.settle(frame.id));
        self.remove(&batch.files)
    }

    /// The journal could not take the batch: all stays as it was.
    pub fn abandon(&self, batch: Batch, known: &mut KnownIds) {
        batch.frames.iter().for_each(|frame| known.abandon(frame.id));
    }

    /// How much was lost since the spool was made. The count only grows; to report it once,
    /// remember what was reported.
    pub fn losses(&self) -> Result<Losses, Error> {
        let failed = |source| spool_error("read the losses of", &self.path, source);
        let file = match open_file(&self.folder, LOST) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Losses::default()),
            Err(errno) => return Err(failed(errno.into())),
        };
        let mut marks = Vec::new();
        file.take(LOSSES_MAX).read_to_end(&mut marks).map_err(failed)?;
        let count = |kind: u8| marks.iter().filter(|mark| **mark == kind).count() as u64;
        let (superseded, full) = (count(LOST_SUPERSEDED), count(LOST_FULL));
        Ok(Losses { superseded, full, unwritable: marks.len() as u64 - superseded - full })
    }

    /// The names of frames, oldest first, and of parts that nobody writes any more.
    fn listing(&self, now_ms: u64) -> Result<BTreeSet<Name>, Error> {
        let failed = |errno: Errno| spool_error("list", &self.path, errno.into());
        let mut names = BTreeSet::new();
        let written = self.written().filter(|(seconds, nanos)| {
            let ms = seconds.cast_unsigned().saturating_mul(1_000) + nanos / 1_000_000;
            now_ms.saturating_sub(ms) >= FOLDER_CLOCK_MS
        });
        self.listed.set(written);
        for entry in Dir::read_from(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Some(name) = entry.file_name().to_str().ok().and_then(Name::parse) else {
                continue;
            };
            if name.part && name.id.at_ms().abs_diff(now_ms) < PART_STALE_MS {
                continue;
            }
            names.insert(name);
            if names.len() > SPOOL_LISTING_MAX {
                names.pop_last();
            }
        }
        Ok(names)
    }

    /// The frame in a file, or `None` where the file is gone: a part that its writer finished.
    fn read(&self, name: &Name) -> Result<Option<Frame>, Error> {
        let failed = |source| spool_error("read", &self.path, source);
        let file = match open_file(&self.folder, name.file().as_str()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(Error::NotAFile { name: name.file() }),
            Err(errno) => return Err(failed(errno.into())),
        };
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::NotAFile { name: name.file() });
        }
        let mut bytes = Vec::new();
        let frame_bytes_max = (HEADER_BYTES_MAX + PAYLOAD_BYTES_MAX) as u64;
        file.take(frame_bytes_max + 1).read_to_end(&mut bytes).map_err(failed)?;
        only_frame(&bytes, name.id).map(Some)
    }

    /// Moves what is no frame out of the way; says how many older ones had to go.
    fn set_aside(&self, name: &Name) -> Result<usize, Error> {
        let failed = |errno: Errno| spool_error("set a file aside in", &self.path, errno.into());
        let file = name.file();
        match rustix::fs::renameat(&self.folder, file.as_str(), &self.aside, file.as_str()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let mut kept = BTreeSet::new();
        for entry in Dir::read_from(&self.aside).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            kept.extend(entry.file_name().to_str().ok().and_then(Name::parse));
        }
        let surplus = kept.len().saturating_sub(ASIDE_FILES_MAX);
        for oldest in kept.iter().take(surplus) {
            remove_entry(&self.aside, &oldest.file()).map_err(failed)?;
        }
        Ok(surplus)
    }

    fn remove(&self, names: &[Name]) -> Result<(), Error> {
        let failed = |errno: Errno| spool_error("remove a frame from", &self.path, errno.into());
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            remove_entry(&self.folder, &name.file()).map_err(failed)?;
        }
        // Or a power cut brings them back when their ids are long forgotten.
        rustix::fs::fsync(&self.folder).map_err(failed)
    }
}

/// The name of a file in the spool. Sorts by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    id: FrameId,
    part: bool,
    /// The file's length and its session's number as its writer announced them, kept as text: they
    /// are only for writers.
    rest: String,
}

impl Name {
    fn parse(file: &str) -> Option<Self> {
        let (stem, part) = match file.strip_suffix(".frame") {
            Some(stem) => (stem, false),
            None => (file.strip_suffix(".part")?, true),
        };
        let (id, rest) = stem.split_once('-')?;
        // Older forwarders name no session.
        let (bytes, session) = rest.split_once('-').unwrap_or((rest, "0"));
        let number = (1..=20).contains(&bytes.len()) && bytes.bytes().all(|b| b.is_ascii_digit());
        let key = (1..=16).contains(&session.len())
            && session.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        (number && key).then_some(())?;
        Some(Self { id: FrameId::parse(id)?, part, rest: rest.to_owned() })
    }

    fn file(&self) -> String {
        let ending = if self.part { "part" } else { "frame" };
        format!("{}-{}.{ending}", self.id, self.rest)
    }
}

/// Reads a file that must hold one frame and nothing else.
fn only_frame(bytes: &[u8], id: FrameId) -> Result<Frame, Error> {
    let mut parser = FrameParser::default();
    let mut rest = bytes;
    let Some(frame) = parser.next_frame(&mut rest) else {
        return Err(parser.finish().err().unwrap_or(Error::FrameHalf { bytes: 0 }));
    };
    let frame = frame?;
    if !rest.is_empty() {
        return Err(Error::FrameFollowed);
    }
    if frame.id != id {
        return Err(Error::FrameMisnamed);
    }
    Ok(frame)
}

/// The file may be whole; it is we who cannot open anything now.
fn is_our_shortage(why: &Error) -> bool {
    let Error::Spool { source, .. } = why else { return false };
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    shortages.iter().any(|errno| source.raw_os_error() == Some(errno.raw_os_error()))
}

fn open_folder(at: impl std::os::fd::AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, path, flags, Mode::empty())
}

/// Opens for reading without following a link and without waiting for a pipe's other end.
fn open_file(folder: &OwnedFd, name: &str) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty()).map(File::from)
}

/// Unlinks a file, or a folder that somebody put in its place and left empty.
fn remove_entry(folder: &OwnedFd, name: &str) -> Result<(), Errno> {
    let is_folder = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory);
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match rustix::fs::unlinkat(folder, name, flags) {
        // What somebody else put into such a folder is not ours to remove.
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn spool_error(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Spool { doing, path: path.to_owned(), source }
}

/// Where files go that are no frames.
const ASIDE: &str = "aside";

/// One byte for each lost frame.
const LOST: &str = "lost";

/// The byte of a frame that found the spool full; any other byte is one that could not be written.
const LOST_FULL: u8 = b'f';

/// The byte of a frame that went for newer ones.
const LOST_SUPERSEDED: u8 = b's';
