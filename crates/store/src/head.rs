//! How far the journal has come, written beside it, and what was found missing by that.
//!
//! A journal that was taken away, or that an older copy replaced, is whole and does not say so
//! itself. The head is written after what it tells of is on disk, so it is never ahead of its own
//! journal: a journal that is behind its head is not the one that was written.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use qd_host::bounded_file::{Links, read_regular};
use qd_session::decision::{Hash, Link};

use crate::file::{self, beside, private};
use crate::{Error, Result};

/// The last number given, and the last record of the chain of decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    pub entries: u64,
    pub last: Link,
}

/// What a journal once held and holds no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// When it was noticed, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Entries that are missing.
    pub entries: u64,
    /// Records of decisions that are missing or are others than those that were written.
    pub records: u64,
    /// Where the journal lies that was damaged; empty where it was taken away or replaced.
    pub set_aside: String,
}

impl Head {
    /// None where there is none: the journal is older than heads, or there never was one.
    pub fn read(journal: &Path) -> Result<Option<Self>> {
        let path = beside(journal, HEAD);
        let Some(text) = read_text(&path)? else { return Ok(None) };
        let head = Self::parse(text.trim_end());
        head.map(Some).ok_or_else(|| Error::Damaged(format!("{} cannot be read", path.display())))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ').map(|word| word.split_once('='));
        let mut word = |name: &str| {
            words.next().flatten().filter(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let entries = word("entries")?.parse().ok()?;
        let seq = word("records")?.parse().ok()?;
        Some(Self { entries, last: Link { seq, hash: Hash::read(word("hash")?)? } })
    }

    /// Puts it in the place of the old one. `Durable` also survives a power cut.
    pub(crate) fn write(&self, journal: &Path, durability: Durability) -> Result<()> {
        let (part, path) = (beside(journal, ".head-part"), beside(journal, HEAD));
        let Self { entries, last } = self;
        let line = format!("entries={entries} records={} hash={}\n", last.seq, last.hash);
        let written = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file = private(options.write(true).create(true).truncate(true)).open(&part)?;
            file.write_all(line.as_bytes())?;
            if durability == Durability::Durable {
                file.sync_all()?;
            }
            fs::rename(&part, &path)
        };
        written().map_err(Error::io("cannot write", &path))
    }

    /// What this head says was there and `found` has not. `hash_of` gives the hash of a record
    /// that is kept.
    pub(crate) fn missing(
        &self,
        found: &Self,
        hash_of: impl FnOnce(u64) -> Option<Hash>,
    ) -> Option<(u64, u64)> {
        let entries = self.entries.saturating_sub(found.entries);
        let records = match self.last.seq.checked_sub(found.last.seq) {
            Some(0) => u64::from(self.last.hash != found.last.hash),
            Some(behind) => behind,
            // Retention may have dropped it; what is kept must be what was written.
            None => {
                let other = self.last.seq > 0
                    && hash_of(self.last.seq).is_some_and(|hash| hash != self.last.hash);
                if other { self.last.seq } else { 0 }
            }
        };
        (entries > 0 || records > 0).then_some((entries, records))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Durable,
    Cheap,
}

impl Gap {
    pub(crate) fn now(entries: u64, records: u64, set_aside: String) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { at_ms, entries, records, set_aside }
    }

    /// Every gap that was found in this journal, oldest first; they are told until somebody
    /// removes the file.
    pub fn all(journal: &Path) -> Result<Vec<Self>> {
        let path = beside(journal, GAPS);
        let text = read_text(&path)?.unwrap_or_default();
        Ok(text.lines().filter_map(Self::parse).collect())
    }

    /// The file that lists them.
    pub fn list(journal: &Path) -> std::path::PathBuf {
        beside(journal, GAPS)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let mut number = || words.next()?.parse().ok();
        let (at_ms, entries, records) = (number()?, number()?, number()?);
        Some(Self { at_ms, entries, records, set_aside: words.next().unwrap_or("").to_owned() })
    }

    /// Adds it to the list, on disk before anything else is written to the new journal.
    pub(crate) fn note(&self, journal: &Path) -> Result<()> {
        let path = beside(journal, GAPS);
        let Self { at_ms, entries, records, set_aside } = self;
        let noted = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file = private(options.append(true).create(true)).open(&path)?;
            if file.metadata()?.len() < TEXT_BYTES_MAX / 2 {
                file.write_all(format!("{at_ms} {entries} {records} {set_aside}\n").as_bytes())?;
            }
            file.sync_all()
        };
        noted().map_err(Error::io("cannot write", &path))?;
        file::sync_folder(journal)
    }
}

/// A small file of ours; none where there is none.
fn read_text(path: &Path) -> Result<Option<String>> {
    match read_regular(path, TEXT_BYTES_MAX, Links::Refused) {
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("cannot read", path)(error)),
    }
}

const HEAD: &str = ".head";

const GAPS: &str = ".gaps";

/// Hundreds of gaps, each a line with a path.
const TEXT_BYTES_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn head(entries: u64, seq: u64, hash: u8) -> Head {
        let hash = Hash::read(&format!("{hash:02x}").repeat(32)).expect("a hash");
        Head { entries, last: Link { seq, hash } }
    }

    #[test]
    fn a_journal_that_is_behind_or_another_one_is_told() {
        let check = |found: Head, expected| {
            assert_eq!(head(9, 4, 1).missing(&found, |_| Some(head(0, 4, 2).last.hash)), expected);
        };
        check(head(9, 4, 1), None);
        check(head(20, 4, 1), None);
        check(head(3, 4, 1), Some((6, 0)));
        check(head(0, 0, 0), Some((9, 4)));
        check(head(9, 1, 7), Some((0, 3)));
        check(head(9, 4, 7), Some((0, 1)));
        check(head(20, 8, 7), Some((0, 4)));
        assert_eq!(head(9, 4, 1).missing(&head(20, 8, 7), |_| None), None, "retention dropped it");
    }
}
