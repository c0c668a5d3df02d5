//! Who reads the lines of a session file, by its client.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Reading, Standing};
use crate::{Harness, claude_code, codex, gemini_cli};

/// Reads one file's lines in their order.
#[derive(Debug)]
pub enum FileReader {
    ClaudeCode(Box<claude_code::usage::Transcript>),
    Codex(Box<codex::usage::Rollout>),
    GeminiCli(Box<gemini_cli::usage::ChatFile>),
}

impl FileReader {
    /// For a file from its beginning, or from where a reader with this memory stopped. None for a
    /// client whose files do not tell.
    pub fn resume(harness: Harness, memory: Option<&str>) -> Option<Self> {
        match harness {
            Harness::ClaudeCode => Some(Self::ClaudeCode(remembered(memory))),
            Harness::Codex => Some(Self::Codex(remembered(memory))),
            Harness::GeminiCli => Some(Self::GeminiCli(remembered(memory))),
            Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp
            | Harness::Native => None,
        }
    }

    /// Only lines in which this stands need to be read; all, where there is none.
    pub fn mark(&self) -> Option<&'static [u8]> {
        match self {
            Self::ClaudeCode(_) => Some(claude_code::usage::MARK),
            Self::Codex(_) | Self::GeminiCli(_) => None,
        }
    }

    /// One line that holds the mark, without its end.
    pub fn read<'a>(&mut self, line: &'a [u8]) -> Reading<'a> {
        match self {
            Self::ClaudeCode(transcript) => transcript.read(line),
            Self::Codex(rollout) => rollout.read(line),
            Self::GeminiCli(chat) => chat.read(line),
        }
    }

    /// What the next reader must know; none where lines stand for themselves.
    pub fn memory(&self) -> Option<String> {
        match self {
            Self::ClaudeCode(transcript) if transcript.is_empty() => None,
            Self::ClaudeCode(transcript) => Some(spelled(transcript)),
            Self::Codex(rollout) => Some(spelled(rollout)),
            Self::GeminiCli(chat) => Some(spelled(chat)),
        }
    }

    /// What the file says beside its responses, and of which session where its lines tell.
    pub fn standing(&self) -> Option<(Option<&str>, &Standing)> {
        let told = match self {
            Self::ClaudeCode(transcript) => transcript.standing(),
            Self::Codex(rollout) => rollout.standing(),
            Self::GeminiCli(_) => return None,
        };
        (!told.1.is_empty()).then_some(told)
    }
}

fn remembered<T: Default + DeserializeOwned>(memory: Option<&str>) -> Box<T> {
    memory.and_then(|memory| serde_json::from_str(memory).ok()).unwrap_or_default()
}

fn spelled(reader: &impl Serialize) -> String {
    serde_json::to_string(reader).expect("texts and numbers can be spelled")
}
