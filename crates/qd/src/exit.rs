//! How a command ends when it did not do what was asked. The codes are part of the interface and
//! stand in the README.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    NoDaemon,
    NoSession(String),
    /// What was waited for did not happen in time.
    TimedOut,
    /// So many things are bad.
    Unwell(usize),
    /// So many flaws are in the records of decisions.
    Broken(usize),
}

impl Exit {
    /// 1 is every other error, 2 a mistake in the command line.
    pub fn code(&self) -> u8 {
        match self {
            Self::NoDaemon => 3,
            Self::NoSession(_) => 4,
            Self::TimedOut => 5,
            Self::Unwell(_) => 1,
            Self::Broken(_) => 6,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDaemon => f.write_str("no daemon runs here; start one with `qd`"),
            Self::NoSession(message) => f.write_str(message),
            Self::Unwell(1) => f.write_str("one thing is bad"),
            Self::Unwell(count) => write!(f, "{count} things are bad"),
            Self::Broken(1) => {
                f.write_str("the records of decisions are not whole: one thing is wrong")
            }
            Self::Broken(count) => {
                write!(f, "the records of decisions are not whole: {count} things are wrong")
            }
            Self::TimedOut => f.write_str("it did not happen in time"),
        }
    }
}

impl std::error::Error for Exit {}
