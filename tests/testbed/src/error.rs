//! What can go wrong in a test, said so that the failed test explains itself.

use std::time::Duration;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `seen` is the screen, the lines or the requests as they were when we gave up.
    #[error("waited {waited:?} for {what}; what was seen:\n{seen}")]
    TimedOut { what: String, waited: Duration, seen: String },

    #[error("{client} ended ({ending}) before {what}; what was seen:\n{seen}")]
    Ended { client: String, ending: String, what: String, seen: String },

    #[error("{program} is not installed: run `cargo xtask clients`")]
    NotInstalled { program: String },

    #[error("{what} was answered with HTTP {status}: {body}")]
    Refused { what: String, status: u16, body: String },

    #[error("{what} said something that is not HTTP: {detail}")]
    NotHttp { what: String, detail: String },

    #[error("the terminal: {0}")]
    Terminal(String),

    #[error("cannot {what}: {source}")]
    Io { what: String, source: std::io::Error },
}

/// Says what was being done when the system refused.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl Into<String>) -> Result<T>;
}

impl<T> Doing<T> for std::io::Result<T> {
    fn doing(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::Io { what: what.into(), source })
    }
}
