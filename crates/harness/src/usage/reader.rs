//! Who reads the lines of a session file, by its client.

use super::Reading;
use crate::{Harness, claude_code};

/// Reads one file's lines in their order.
#[derive(Debug)]
pub enum FileReader {
    ClaudeCode,
}

impl FileReader {
    /// For a file from its beginning, or from where a reader with this memory stopped. None for a
    /// client whose files do not tell.
    pub fn resume(harness: Harness, _memory: Option<&str>) -> Option<Self> {
        match harness {
            Harness::ClaudeCode => Some(Self::ClaudeCode),
            Harness::Codex
            | Harness::GeminiCli
            | Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp => None,
        }
    }

    /// Only lines in which this stands need to be read; all, where there is none.
    pub fn mark(&self) -> Option<&'static [u8]> {
        match self {
            Self::ClaudeCode => Some(claude_code::usage::MARK),
        }
    }

    /// One line that holds the mark, without its end.
    pub fn read<'a>(&mut self, line: &'a [u8]) -> Reading<'a> {
        match self {
            Self::ClaudeCode => claude_code::usage::read_marked(line),
        }
    }

    /// What the next reader must know; none where lines stand for themselves.
    pub fn memory(&self) -> Option<String> {
        match self {
            Self::ClaudeCode => None,
        }
    }
}
