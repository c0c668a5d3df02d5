//! What was shown of a driven session and is worth telling later: its runs as they are now, what
//! went wrong, and the turns that its state took beside the usual round.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{CallId, HookRunId, RunId};
use crate::json_size::spelled_len;
use crate::limits::{NOTE_ARGUMENTS_BYTES_MAX, NOTE_FIELDS_MAX, NOTE_TEXT_CHARS_MAX, NOTES_MAX};
use crate::machine::{Change, Reason, Shown, State};

/// The newest, in the order they began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Notes {
    notes: Vec<Note>,
}

/// A change as whoever follows the session got it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    #[serde(flatten)]
    pub shown: Shown,
    /// Of a call that no answer of the conversation holds: an agent made it that runs its own
    /// tools. What is long in them is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// What came out of such a call, where its agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
}

impl Notes {
    pub fn all(&self) -> &[Note] {
        &self.notes
    }

    /// `came_out` is what the event says of a call of an agent that runs its own tools;
    /// `is_answered` says whether an answer of the conversation holds a call.
    pub(super) fn take(
        &mut self,
        shown: &Shown,
        state: &State,
        came_out: Option<(&CallId, &Arc<str>)>,
        is_answered: impl Fn(&CallId) -> bool,
    ) {
        if !is_worth_telling(&shown.change) {
            return;
        }
        let output = came_out.and_then(|(call, output)| match &shown.change {
            Change::ToolLifecycle(told) if told.call_id == *call => Some(output.clone()),
            Change::ToolLifecycle(_)
            | Change::HookLifecycle(_)
            | Change::StateChanged(_)
            | Change::SessionError(_) => None,
        });
        if let Some(note) = self.same_run(&shown.change) {
            note.shown = shown.clone();
            note.output = output;
            return;
        }
        let arguments = match &shown.change {
            Change::ToolLifecycle(told) if !is_answered(&told.call_id) => {
                let mut runs = state.batch().into_iter().flat_map(|batch| batch.runs());
                let run = runs.find(|run| run.call.call_id == told.call_id);
                run.map(|run| shortened(&run.call.arguments))
            }
            Change::ToolLifecycle(_)
            | Change::HookLifecycle(_)
            | Change::StateChanged(_)
            | Change::SessionError(_) => None,
        };
        self.push(Note { shown: shown.clone(), arguments, output });
    }

    /// A change that is of no run.
    pub(super) fn add(&mut self, shown: &Shown) {
        self.push(Note { shown: shown.clone(), arguments: None, output: None });
    }

    fn push(&mut self, note: Note) {
        if self.notes.len() == NOTES_MAX {
            self.notes.remove(0);
        }
        self.notes.push(note);
    }

    fn same_run(&mut self, change: &Change) -> Option<&mut Note> {
        let name = run_of(change)?;
        self.notes.iter_mut().rev().find(|note| run_of(&note.shown.change) == Some(name))
    }
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum RunName<'a> {
    Tool(&'a RunId),
    Hook(&'a HookRunId),
}

fn run_of(change: &Change) -> Option<RunName<'_>> {
    match change {
        Change::ToolLifecycle(told) => Some(RunName::Tool(&told.run_id)),
        Change::HookLifecycle(told) => Some(RunName::Hook(&told.run_id)),
        Change::StateChanged(_) | Change::SessionError(_) => None,
    }
}

/// The usual round of model, tools and hooks is told by what was said and ran.
fn is_worth_telling(change: &Change) -> bool {
    match change {
        Change::ToolLifecycle(_) | Change::HookLifecycle(_) | Change::SessionError(_) => true,
        Change::StateChanged(changed) => match changed.reason {
            Reason::StopRequested
            | Reason::HarnessExited
            | Reason::RetryDue
            | Reason::RetryRequested
            | Reason::Paused
            | Reason::Resumed
            | Reason::RetriesExhausted
            | Reason::TimedOut
            | Reason::Interrupted => true,
            Reason::UserInput
            | Reason::StreamCompleted
            | Reason::ToolsRequested
            | Reason::ToolsCompleted
            | Reason::HooksCompleted
            | Reason::Spawned
            | Reason::HarnessReady
            | Reason::ApprovalRequired
            | Reason::ApprovalDecided
            | Reason::InputRequired
            | Reason::InputGiven
            | Reason::HooksSkipped
            | Reason::Failed => false,
        },
    }
}

/// Arguments as they are shown: whole where they are short; else their first texts, cut.
pub fn shortened(arguments: &Value) -> Value {
    if spelled_len(arguments) <= NOTE_ARGUMENTS_BYTES_MAX {
        return arguments.clone();
    }
    let Value::Object(fields) = arguments else { return Value::Null };
    let cut = |text: &str| text.chars().take(NOTE_TEXT_CHARS_MAX).collect::<String>();
    let texts = fields.iter().filter_map(|(name, value)| {
        let text = cut(value.as_str()?);
        Some((cut(name), Value::String(text)))
    });
    Value::Object(texts.take(NOTE_FIELDS_MAX).collect::<Map<_, _>>())
}
