//! What a driven session carries beside its machine: how it was asked for, what was said in it,
//! what ran, what waits for the operator, what it used.
//!
//! Pure, folded from the same entries as the machine, so after a crash it says what the machine
//! says. Invariant: in the conversation every call of an answer has exactly one output before the
//! next thing that is said to the model.

mod conversation;
mod frozen;
mod notes;
mod waiting;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::conversation::{Conversation, Message};
pub use self::frozen::{Called, Frozen, Unkeepable, Used};
pub use self::notes::{Note, Notes, shortened};
pub use self::waiting::Waiting;
use crate::machine::{Action, AgentError, Change, ErrorCode, Event, Output, Shown, State};
use crate::moment::Timestamp;
use crate::monitor::Open;
use crate::policy::Preset;

/// How a driven session was asked for. Does not change while it lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Brief {
    /// The folder it works in.
    pub workspace: Arc<str>,
    /// In its provider's words; none for the harness's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Whom to ask for answers, as the configuration names it; none for an agent that knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// What happens where no rule says anything.
    pub preset: Preset,
    /// What it is told as soon as it can hear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<str>>,
    /// It is the conversation of its folder, which whoever names the folder goes on with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_chat: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Logbook {
    brief: Brief,
    /// The operator wants to be asked nothing.
    #[serde(default)]
    yolo: bool,
    #[serde(default)]
    conversation: Conversation,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<Waiting>,
    /// None in snapshots that are older than it.
    #[serde(default)]
    notes: Notes,
    #[serde(default)]
    used: Used,
}

impl Logbook {
    pub fn new(brief: Brief) -> Self {
        Self {
            yolo: brief.preset == Preset::Yolo,
            brief,
            conversation: Conversation::default(),
            waiting: Vec::new(),
            notes: Notes::default(),
            used: Used::default(),
        }
    }

    /// What the machine made of an event, the answer that came frozen with it, and where it is now.
    pub(crate) fn note(
        &mut self,
        at: Timestamp,
        event: &Event,
        frozen: Option<&Frozen>,
        outputs: &[Output],
        state: &State,
    ) {
        if outputs.iter().any(is_refusal) {
            return;
        }
        if let Event::StreamCompleted { turn, text, .. } = event
            && !outputs.is_empty()
        {
            self.conversation.answered(at, turn, text.as_ref(), frozen);
        }
        if let Some(frozen) = frozen {
            self.used.add(&frozen.used);
        }
        if let Event::YoloSwitched { on } = event {
            self.yolo = *on;
        }
        for output in outputs {
            match output {
                Output::Do(Action::SendToHarness { outputs, text, .. }) => {
                    self.conversation.said(at, outputs, text.as_ref());
                }
                Output::Do(Action::RequestApproval { call }) => {
                    self.ask(Waiting::permission(at, call));
                }
                Output::Do(Action::RequestInput { call }) => self.ask(Waiting::question(at, call)),
                Output::Show(shown) => {
                    let conversation = &self.conversation;
                    self.notes
                        .take(shown, state, event.came_out(), |call| conversation.has_call(call));
                }
                Output::Do(_) => {}
            }
        }
        self.waiting.retain(|waiting| waiting.is_open_in(state));
    }

    /// What the operator should read, and nobody did.
    pub(crate) fn trouble(&mut self, shown: &Shown) {
        self.notes.add(shown);
    }

    fn ask(&mut self, asked: Waiting) {
        self.waiting.retain(|waiting| waiting.request() != asked.request());
        self.waiting.push(asked);
    }

    pub fn brief(&self) -> &Brief {
        &self.brief
    }

    /// The preset that the operator chose, or switched to.
    pub fn preset(&self) -> Preset {
        match (self.yolo, self.brief.preset) {
            (true, _) => Preset::Yolo,
            // Whoever switches it off wants to be asked again.
            (false, Preset::Yolo) => Preset::Careful,
            (false, preset) => preset,
        }
    }

    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// What ran in it, what went wrong, and where it was held; the newest.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// What the session waits for a person for, in the order it was asked.
    pub fn open_requests(&self) -> impl Iterator<Item = Open<'_>> {
        self.waiting.iter().map(Waiting::open)
    }

    pub fn used(&self) -> &Used {
        &self.used
    }
}

/// A refused event says so and does nothing else.
fn is_refusal(output: &Output) -> bool {
    matches!(output, Output::Show(shown) if matches!(
        &shown.change,
        Change::SessionError(AgentError {
            code: ErrorCode::StateTransitionInvalid | ErrorCode::SessionNotFound,
            ..
        })
    ))
}
