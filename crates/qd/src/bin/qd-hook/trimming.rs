//! Making room in a full spool: what a newer hook of the same session supersedes goes, the oldest
//! first, and is counted. The last of a session never goes.
//!
//! Several may do this at once: each file is removed, and counted, by one of them.

use std::os::fd::OwnedFd;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use crate::limits::{PART_STALE_NS, SPOOL_BYTES_LOW};
use crate::message::Message;
use crate::spool::{FrameName, Loss, Tally, for_each_name, on_disk};

/// Removes superseded frames until the spool is well within its bound again.
pub fn trim(folder: &OwnedFd) -> Result<(), Errno> {
    let mut files = listing(folder)?;
    let mut bytes: u64 = files.iter().map(|file| on_disk(file.name.bytes)).sum();
    let mut tally = Tally::open(folder);
    let stale = |file: &Listed| file.name.is_part && age_ns(file) > PART_STALE_NS;
    for half in files.extract_if(.., |file| stale(file)) {
        if remove(folder, &half) {
            tally.count(Loss::Unwritable);
        }
        bytes = bytes.saturating_sub(on_disk(half.name.bytes));
    }
    for old in superseded(files) {
        if bytes <= SPOOL_BYTES_LOW {
            break;
        }
        if remove(folder, &old) {
            tally.count(Loss::Superseded);
        }
        bytes = bytes.saturating_sub(on_disk(old.name.bytes));
    }
    Ok(())
}

/// Removes what this frame supersedes, but for the newest: that stays until the frame is there.
pub fn drop_superseded_by(folder: &OwnedFd, message: &Message) -> Result<(), Errno> {
    let mut files = listing(folder)?;
    files.retain(|file| file.name.session_key == Some(message.session_key));
    let mut tally = Tally::open(folder);
    for old in superseded(files) {
        if remove(folder, &old) {
            tally.count(Loss::Superseded);
        }
    }
    Ok(())
}

struct Listed {
    name: FrameName,
    file: Box<[u8]>,
}

fn listing(folder: &OwnedFd) -> Result<Vec<Listed>, Errno> {
    let mut files = Vec::new();
    for_each_name(folder, |file| {
        files.extend(FrameName::parse(file).map(|name| Listed { name, file: file.into() }));
    })?;
    Ok(files)
}

/// All but the last of each session, oldest first. A frame that names no session is the last of
/// its own; one that is not written whole supersedes nothing.
fn superseded(mut files: Vec<Listed>) -> Vec<Listed> {
    files.retain(|file| !file.name.is_part && file.name.session_key.is_some());
    files.sort_unstable_by_key(|file| (file.name.session_key, file.name.id));
    let keys: Vec<_> = files.iter().map(|file| file.name.session_key).collect();
    let mut nth = 0;
    files.retain(|_| {
        nth += 1;
        keys.get(nth) == Some(&keys[nth - 1])
    });
    files.sort_unstable_by_key(|file| file.name.id);
    files
}

/// An id begins with its time.
fn age_ns(file: &Listed) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    (now as u64).saturating_sub((file.name.id >> 64) as u64)
}

/// Whether it was we who removed it.
fn remove(folder: &OwnedFd, listed: &Listed) -> bool {
    unlinkat(folder, &*listed.file, AtFlags::empty()).is_ok()
}
