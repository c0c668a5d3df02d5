//! One session's turn: which prompts are open, what was said, and how it ends.

use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;

use super::error_notice::ErrorNotice;
use super::failure;
use super::rpc::RpcId;
use crate::excerpt::{self, LAST_MESSAGE_BYTES_MAX};

/// Most prompts that wait for their response: an agent with a queue takes a few.
const PROMPTS_MAX: usize = 16;

/// A message that was on its way when the turn ended says nothing about a new one.
const STRAGGLER_MS: u64 = 300;

/// After a batch the agent asks its model again, without a word. A moment later that is certain:
/// a turn that ends on the batch has said so by then.
const MODEL_ASKED_AGAIN_MS: u64 = 250;

#[derive(Debug, Default)]
pub struct Turn {
    /// Oldest first. The turn ends when the last one is answered.
    prompts: Vec<RpcId>,
    open: bool,
    ended_at: Option<Timestamp>,
    said: String,
    message: Option<String>,
    error: ErrorNotice,
    /// A model request was told since the last tool.
    llm_told: bool,
    /// Its last act was a refusal of ours.
    refused: bool,
    model_due: Option<Timestamp>,
}

impl Turn {
    /// A prompt was sent. True if it begins a turn, false if it waits in a queue or steers.
    pub fn prompted(&mut self, prompt: RpcId) -> bool {
        let begins = self.prompts.is_empty();
        if self.prompts.len() == PROMPTS_MAX {
            self.prompts.remove(0);
        }
        self.prompts.push(prompt);
        if begins {
            self.begin();
        }
        begins
    }

    fn begin(&mut self) {
        let (prompts, ended_at) = (std::mem::take(&mut self.prompts), self.ended_at);
        *self = Self { prompts, ended_at, open: true, ..Self::default() };
    }

    /// A prompt was answered, and with it all before it. True if none is left: the turn is over.
    pub fn answered(&mut self, prompt: &RpcId) -> bool {
        if let Some(at) = self.prompts.iter().position(|open| open == prompt) {
            self.prompts.drain(..=at);
        }
        self.prompts.is_empty()
    }

    pub fn close(&mut self, at: Timestamp) {
        self.prompts.clear();
        self.open = false;
        self.ended_at = Some(at);
        self.model_due = None;
    }

    /// A sign of work; false if it only straggles behind the turn it belonged to.
    pub fn works(&mut self, at: Timestamp) -> bool {
        let straggles = self.ended_at.is_some_and(|ended| at.ms_since(ended) < STRAGGLER_MS);
        if !self.open && straggles {
            return false;
        }
        if !self.open {
            // The prompt was lost on the way to us.
            self.begin();
        }
        self.model_due = None;
        true
    }

    /// Text of the agent. True if the model had not been known to answer.
    pub fn say(&mut self, text: &str, message: Option<&str>) -> bool {
        if self.message.as_deref() != message {
            self.said.clear();
            self.message = message.map(str::to_owned);
        }
        self.error.hear(text);
        self.said.push_str(text);
        if self.said.len() > 2 * LAST_MESSAGE_BYTES_MAX {
            self.said = excerpt::tail(&self.said, LAST_MESSAGE_BYTES_MAX).to_owned();
        }
        self.think()
    }

    /// The model answers. True if that is new.
    pub fn think(&mut self) -> bool {
        self.refused = false;
        !std::mem::replace(&mut self.llm_told, true)
    }

    /// A tool is at work or asked for: what was said before it was not the last message.
    pub fn act(&mut self) {
        self.said.clear();
        self.error.clear();
        self.llm_told = false;
        self.refused = false;
        self.model_due = None;
    }

    pub fn refuse(&mut self) {
        self.said.clear();
        self.error.clear();
        self.refused = true;
    }

    pub fn batch_ended(&mut self, at: Timestamp) {
        if self.open {
            self.model_due = Some(at.plus_ms(MODEL_ASKED_AGAIN_MS));
        }
    }

    pub fn model_due(&self) -> Option<Timestamp> {
        self.model_due
    }

    /// True if the model is now known to be asked again.
    pub fn model_asked(&mut self, now: Timestamp) -> bool {
        self.model_due.take_if(|due| *due <= now).is_some()
    }

    /// How the turn ended, by the protocol's stop reason. `end_turn` says that the loop ended, also
    /// when it ended because we refused, or because its model could not be asked.
    pub fn end(&self, reason: Option<&str>) -> Fact {
        let completed = |cut_off: bool| Fact::TurnCompleted {
            last_message: excerpt::last_message(&self.said).or_else(|| cut_off.then(|| "".into())),
            background: None,
            cut_off,
        };
        match reason {
            Some("cancelled") => Fact::Interrupted,
            Some("max_tokens") => completed(true),
            Some(reason @ ("max_turn_requests" | "refusal" | "error")) => {
                Fact::TurnFailed { failure: failure::of_reason(reason) }
            }
            Some(_) | None if self.refused => Fact::Interrupted,
            Some(_) | None => match self.error.failure() {
                Some(failure) => Fact::TurnFailed { failure },
                None => completed(false),
            },
        }
    }
}
