//! What is known of Kilo's own approvals: it prints a complete ask also for what it then allows.
//!
//! Nothing in the line tells the two apart, so an ask is under review for a while. How long depends
//! on what the stream has shown: whether anybody can answer at all, what became of earlier asks
//! alike, and what kind of tool it is.

use std::collections::BTreeMap;

use super::wire::{Client, Details, Message, Word};
use crate::excerpt::brief;

/// Silence after which an ask that the policy may well allow is a person's business after all.
/// Allowed reads took up to 2.3 s to show their result.
const PATIENCE_UNKNOWN_MS: u64 = 2_500;

/// The same for what is asked about unless the operator switched that off: writes, commands, the
/// browser. An allowed command shows its first output within this time.
const PATIENCE_CHANGE_MS: u64 = 400;

/// Most kinds of asks whose outcome is remembered. Kilo has some thirty tools; the rest are first
/// words of commands.
const KINDS_MAX: usize = 128;

#[derive(Debug, Default)]
pub struct Policy {
    /// Started with `--auto`: it allows everything itself and reads no answers.
    pub unattended: bool,
    outcomes: BTreeMap<String, Outcome>,
}

/// What became of the last ask of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Answered,
    Allowed,
}

impl Policy {
    /// How long the ask stays under review; `None` if no person will ever be asked.
    pub fn patience_ms(&self, message: &Message, details: &Details) -> Option<u64> {
        if message.client == Client::Cline {
            return Some(0);
        }
        if self.unattended {
            return None;
        }
        Some(match self.outcomes.get(&kind(message, details)) {
            Some(Outcome::Answered) => 0,
            Some(Outcome::Allowed) => PATIENCE_UNKNOWN_MS,
            None if changes_something(message, details) => PATIENCE_CHANGE_MS,
            None => PATIENCE_UNKNOWN_MS,
        })
    }

    pub fn learn(&mut self, kind: String, outcome: Outcome) {
        if self.outcomes.len() >= KINDS_MAX && !self.outcomes.contains_key(&kind) {
            self.outcomes.pop_first();
        }
        self.outcomes.insert(kind, outcome);
    }
}

/// What is allowed or asked about alike: a tool; a command by its first word.
pub fn kind(message: &Message, details: &Details) -> String {
    match &message.word {
        Word::Ask(ask) if ask == "tool" => {
            brief(details.tool.as_deref().unwrap_or_default(), 100).to_string()
        }
        Word::Ask(ask) if ask == "command" => {
            let command = message.text.as_deref().unwrap_or_default();
            format!("$ {}", brief(command.split_whitespace().next().unwrap_or_default(), 100))
        }
        Word::Ask(word) | Word::Say(word) => word.clone(),
    }
}

fn changes_something(message: &Message, details: &Details) -> bool {
    if message.protected || details.is_outside_workspace == Some(true) {
        return true;
    }
    match &message.word {
        Word::Ask(ask) if ask == "tool" => matches!(
            details.tool.as_deref(),
            Some(
                "editedExistingFile"
                    | "appliedDiff"
                    | "newFileCreated"
                    | "searchAndReplace"
                    | "insertContent"
                    | "generateImage"
                    | "imageGenerated"
                    | "deleteFile"
                    | "batchDiffs"
            )
        ),
        Word::Ask(ask) => matches!(ask.as_str(), "command" | "browser_action_launch"),
        Word::Say(_) => false,
    }
}
