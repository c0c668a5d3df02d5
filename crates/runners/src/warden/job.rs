//! What a warden is asked for, and what it tells.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::confine::Confinement;
use super::limits::{JOB_BYTES_MAX, PIECE_BYTES_MAX};

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Program and arguments; no shell reads them.
    pub argv: Vec<String>,
    pub folder: PathBuf,
    /// All that it gets.
    pub environment: BTreeMap<String, String>,
    pub input: Input,
    pub said: Said,
    pub timeout_ms: Option<u64>,
    /// None: it may do whatever we may.
    pub confinement: Option<Confinement>,
}

/// What the program reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    Nothing,
    Text(String),
    /// Whatever follows the job on the warden's own input, as it is.
    Following,
    /// What follows the job in pieces, each behind its length in four bytes. An empty one closes
    /// the program's input, and the program lives on: its lifeline is not cut by that.
    Pieces,
}

/// Which of the program's outputs are handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// Both, in the order in which they were written.
    All,
    /// Standard output alone: it is a protocol. Of the other the end is kept for the report.
    OutputOnly,
}

/// What a warden tells, a line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum News {
    /// The program runs: its own number, and when it started in the system's own unit.
    Started {
        pid: u32,
        start: u64,
    },
    Ended(Report),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub ending: Ending,
    pub enforced: Enforced,
    /// The end of what it wrote to its standard error, where that was not handed on.
    pub last_words: String,
}

/// How the program ended. All that it had started is gone by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    Exited(i32),
    Killed {
        signal: i32,
    },
    TimedOut,
    /// We let go of it.
    Canceled,
    /// There is no such program, or it is none.
    NotFound(String),
    /// The machine could not start it, or could not confine it.
    NotStarted(String),
}

/// How much of a confinement the kernel enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Enforced {
    /// Nothing was asked for.
    Unconfined,
    Fully,
    /// An older kernel: some rights cannot be taken away.
    Partly,
    /// No Landlock: files are not confined.
    SocketsOnly,
    Nothing,
}

/// A part of what a program reads, for [`Input::Pieces`].
pub(crate) fn pieces(text: &[u8]) -> Vec<u8> {
    let piece = |part: &[u8]| [&(part.len() as u32).to_be_bytes()[..], part].concat();
    text.chunks(PIECE_BYTES_MAX).flat_map(piece).collect()
}

/// Closes the input.
pub(crate) const LAST_PIECE: [u8; 4] = 0_u32.to_be_bytes();

impl Enforced {
    /// What a confined program can do there that it should not; none where it is as it should be.
    pub fn missing(self) -> Option<&'static str> {
        match self {
            Self::Fully | Self::Unconfined => None,
            Self::Partly => Some(
                "this kernel is older than Linux 6.12: commands of driven sessions are confined, \
                 but can truncate files or signal processes outside",
            ),
            Self::SocketsOnly => Some(
                "this kernel has no Landlock: commands of driven sessions can reach every file \
                 and process that you can",
            ),
            Self::Nothing => Some("this system cannot confine commands of driven sessions"),
        }
    }
}

impl Report {
    /// Of a program that never ran.
    pub(super) fn of_none(ending: Ending) -> Self {
        Self { ending, enforced: Enforced::Unconfined, last_words: String::new() }
    }
}

impl Job {
    /// As it goes to a warden: its length in eight bytes, then JSON.
    pub(crate) fn framed(&self) -> io::Result<Vec<u8>> {
        let text = serde_json::to_vec(self)?;
        if text.len() > JOB_BYTES_MAX {
            return Err(io::Error::other(format!(
                "the job has {} bytes, more than {JOB_BYTES_MAX}",
                text.len()
            )));
        }
        let mut frame = (text.len() as u64).to_be_bytes().to_vec();
        frame.extend(text);
        Ok(frame)
    }

    /// Reads not a byte more: what follows may be the program's.
    pub(super) fn received(from: &mut impl Read) -> io::Result<Self> {
        let mut len = [0; 8];
        from.read_exact(&mut len)?;
        let len = usize::try_from(u64::from_be_bytes(len)).map_err(io::Error::other)?;
        if len > JOB_BYTES_MAX {
            return Err(io::Error::other("the job is too long"));
        }
        let mut text = vec![0; len];
        from.read_exact(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }
}
