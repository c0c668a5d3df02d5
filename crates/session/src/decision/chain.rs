//! The audit chain: each record has the hash of the one before it, so a record that was changed,
//! taken away or put in between is found.
//!
//! A record is a line of JSON whose last member is its hash: SHA-256 of the line without that
//! member. It covers the text as it was written, so a later version that spells records
//! differently can still verify it, and so can `jq -c 'del(.hash)' | sha256sum`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::record::Record;

/// A place in the chain: a record's number and hash. The default is the place before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Link {
    pub seq: u64,
    pub hash: Hash,
}

/// Follows the chain, line by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    begin: Link,
    last: Link,
    /// The last line could not be read, so nobody knows its hash.
    lost: bool,
}

/// What was found to be whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Records up to here are gone by retention; the chain was followed from there.
    pub begin: Link,
    pub last: Link,
}

/// Where the chain is broken, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub seq: u64,
    pub why: Flaw,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// It is no record.
    Unreadable(String),
    /// Its text is not what its hash was made of.
    Changed,
    /// It is stored under this number, and says another one.
    Misnumbered,
    /// Records before it are missing.
    Gap,
    /// It does not follow the one before it.
    Detached,
    /// Records after it are missing: the chain went on to this number.
    CutOff { last: u64 },
    /// It is the last one, and not the one that was written last.
    Replaced,
}

/// The whole chain at once, from where retention has left it to the last record written. Says the
/// first flaw.
pub fn verify<'a>(
    begin: Link,
    lines: impl IntoIterator<Item = (u64, &'a str)>,
    last: Link,
) -> Result<Verified, Broken> {
    let mut chain = Chain::after(begin);
    for (seq, line) in lines {
        chain.take(seq, line)?;
    }
    chain.end(last)
}

impl Chain {
    pub fn after(begin: Link) -> Self {
        Self { begin, last: begin, lost: false }
    }

    /// The next line, stored under this number. After a flaw it goes on from there, so that one
    /// flaw is told once.
    pub fn take(&mut self, seq: u64, line: &str) -> Result<Record, Broken> {
        let before = std::mem::replace(&mut self.last.seq, seq);
        let was_lost = std::mem::replace(&mut self.lost, true);
        let broken = |why| Broken { seq, why };
        let (record, claimed) = Record::read(line).map_err(|why| broken(Flaw::Unreadable(why)))?;
        let known = std::mem::replace(&mut self.last.hash, record.hash);
        self.lost = false;
        if claimed != record.hash {
            return Err(broken(Flaw::Changed));
        }
        if record.seq != seq {
            return Err(broken(Flaw::Misnumbered));
        }
        if before.checked_add(1) != Some(seq) {
            return Err(broken(Flaw::Gap));
        }
        if !was_lost && record.prev != known {
            return Err(broken(Flaw::Detached));
        }
        Ok(record)
    }

    /// All lines were taken; `last` is what was written last.
    pub fn end(self, last: Link) -> Result<Verified, Broken> {
        let broken = |why| Err(Broken { seq: self.last.seq, why });
        if self.last.seq != last.seq {
            return broken(Flaw::CutOff { last: last.seq });
        }
        if !self.lost && self.last.hash != last.hash {
            return broken(Flaw::Replaced);
        }
        Ok(Verified { begin: self.begin, last })
    }
}

impl Verified {
    pub fn records(&self) -> u64 {
        self.last.seq.saturating_sub(self.begin.seq)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seq = self.seq;
        match &self.why {
            Flaw::Unreadable(why) => write!(f, "record {seq} cannot be read: {why}"),
            Flaw::Changed => write!(f, "record {seq} was changed after it was written"),
            Flaw::Misnumbered => write!(f, "record {seq} says that it has another number"),
            Flaw::Gap => write!(f, "records before {seq} are missing"),
            Flaw::Detached => write!(f, "record {seq} does not follow the one before it"),
            Flaw::CutOff { last } => write!(f, "records from {seq} to {last} do not fit together"),
            Flaw::Replaced => write!(f, "record {seq} is not the one that was written last"),
        }
    }
}

/// SHA-256, spelled in hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Hex digits.
    pub const LEN: usize = 64;

    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// From hex digits, as they are written: lower case.
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != Self::LEN {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

fn digit(sign: u8) -> Option<u8> {
    match sign {
        b'0'..=b'9' => Some(sign - b'0'),
        b'a'..=b'f' => Some(sign - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::read(&text).ok_or_else(|| serde::de::Error::custom("no hash"))
    }
}
