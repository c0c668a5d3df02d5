//! Who reads the lines of a session file: each client's `usage.rs` has one.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Reading, Standing};

/// Reads one file's lines in their order.
pub trait FileReader: Debug + Send + Sync {
    /// Only lines in which this stands need to be read; all, where there is none.
    fn mark(&self) -> Option<&'static [u8]> {
        None
    }

    /// One line that holds the mark, without its end.
    fn read<'a>(&mut self, line: &'a [u8]) -> Reading<'a>;

    /// What the next reader must know; none where lines stand for themselves.
    fn memory(&self) -> Option<String>;

    /// What the file says beside its responses, and of which session where its lines tell. `None`
    /// where it says nothing.
    fn standing(&self) -> Option<(Option<&str>, &Standing)> {
        None
    }
}

/// A reader that goes on from where one with this memory stopped; a fresh one where there is none.
pub(crate) fn remembered<T: Default + DeserializeOwned>(memory: Option<&str>) -> T {
    memory.and_then(|memory| serde_json::from_str(memory).ok()).unwrap_or_default()
}

/// A reader's memory of itself.
pub(crate) fn spelled(reader: &impl Serialize) -> String {
    serde_json::to_string(reader).expect("texts and numbers can be spelled")
}
