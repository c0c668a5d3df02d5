//! Files that were read lately: they are looked at now and then, whatever the kernel tells.
//!
//! Not every change has an event: the file may be a link to one elsewhere or lie on a network's
//! disk, and a read that failed for want of descriptors is not announced again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use qd_session::moment::Timestamp;

/// Between two looks at the files of sessions that work, whatever the kernel told of them: a link
/// to a file elsewhere, a network's disk or a read that failed has no event. Looking costs a few
/// microseconds a file.
const LOOK_AGAIN_EVERY: Duration = Duration::from_secs(5);

/// How long after its last line a file is looked at so: a model or a command seldom takes longer.
pub const LOOK_AGAIN_FOR_MS: u64 = 10 * 60 * 1_000;

/// Files looked at so; those read longest ago go first.
const LOOK_AGAIN_FILES_MAX: usize = 256;

#[derive(Debug)]
pub struct Lively {
    /// When each last had something new.
    files: BTreeMap<Arc<Path>, Timestamp>,
    looked_at: Instant,
}

impl Lively {
    pub fn new() -> Self {
        Self { files: BTreeMap::new(), looked_at: Instant::now() }
    }

    /// A file was there to be read.
    pub fn met(&mut self, path: &Arc<Path>, at: Timestamp) {
        if !self.files.contains_key(path) {
            self.had_news(path, at);
        }
    }

    /// Something new was read of it.
    pub fn had_news(&mut self, path: &Arc<Path>, at: Timestamp) {
        if self.files.is_empty() {
            self.looked_at = Instant::now();
        }
        if self.files.len() >= LOOK_AGAIN_FILES_MAX && !self.files.contains_key(path) {
            let oldest = self.files.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                self.files.remove(&oldest);
            }
        }
        self.files.insert(path.clone(), at);
    }

    pub fn forget(&mut self, path: &Path) {
        self.files.remove(path);
    }

    /// When they are to be looked at; never while there are none.
    pub fn next_look(&self) -> Option<Duration> {
        let wanted = !self.files.is_empty();
        wanted.then(|| LOOK_AGAIN_EVERY.saturating_sub(self.looked_at.elapsed()))
    }

    /// Those to look at, if it is time. What has been silent for long is left to the kernel.
    pub fn take_due(&mut self, now: Timestamp) -> Option<impl Iterator<Item = &Arc<Path>>> {
        if self.next_look().is_none_or(|due| !due.is_zero()) {
            return None;
        }
        self.looked_at = Instant::now();
        self.files.retain(|_, at| now.ms_since(*at) <= LOOK_AGAIN_FOR_MS);
        Some(self.files.keys())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(number: usize) -> Arc<Path> {
        Path::new(&format!("/s/{number}.jsonl")).into()
    }

    #[test]
    fn of_too_many_the_one_that_was_silent_longest_goes() {
        let mut lively = Lively::new();
        assert_eq!(lively.next_look(), None);
        for number in 0..=LOOK_AGAIN_FILES_MAX {
            lively.had_news(&path(number), Timestamp(number as u64));
        }
        assert_eq!(lively.files.len(), LOOK_AGAIN_FILES_MAX);
        assert!(!lively.files.contains_key(&path(0)));
    }

    #[test]
    fn a_file_that_is_only_met_again_is_left_in_the_end() {
        let mut lively = Lively::new();
        lively.met(&path(1), Timestamp(0));
        lively.met(&path(1), Timestamp(LOOK_AGAIN_FOR_MS));
        lively.had_news(&path(2), Timestamp(LOOK_AGAIN_FOR_MS));
        let Some(long_ago) = lively.looked_at.checked_sub(LOOK_AGAIN_EVERY) else { return };
        lively.looked_at = long_ago;
        let due = lively.take_due(Timestamp(LOOK_AGAIN_FOR_MS + 1)).map(|due| due.count());
        assert_eq!(due, Some(1));
        assert!(lively.take_due(Timestamp(LOOK_AGAIN_FOR_MS + 1)).is_none(), "not at once again");
    }
}
