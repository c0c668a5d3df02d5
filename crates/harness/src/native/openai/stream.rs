//! The chunks of an answer, as chat completions stream them.

use std::sync::Arc;

use qd_session::id::TurnId;
use serde_json::Value;

use super::calls::CallPlaces;
use crate::excerpt::head;
use crate::native::answer_draft::{AnswerDraft, Place};
use crate::native::failure::{Cause, Failure, of_error};
use crate::native::limits::NAME_BYTES_MAX;
use crate::native::{Piece, ServerSentEvent, StopReason, Usage};
use crate::usage::Tokens;

#[derive(Debug)]
pub(in crate::native) struct Reader {
    draft: AnswerDraft,
    text: Option<Place>,
    thinking: Option<Place>,
    calls: CallPlaces,
    request_id: Option<Arc<str>>,
    began: bool,
    usage: Usage,
    stop: Option<StopReason>,
}

impl Reader {
    pub(in crate::native) fn new(turn: TurnId, request_id: Option<Arc<str>>) -> Self {
        Self {
            draft: AnswerDraft::new(turn),
            text: None,
            thinking: None,
            calls: CallPlaces::default(),
            request_id,
            began: false,
            usage: Usage::default(),
            stop: None,
        }
    }

    pub(in crate::native) fn take(
        &mut self,
        event: &ServerSentEvent,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        if event.data.trim() == "[DONE]" {
            pieces.push(self.finished(self.stop.unwrap_or(StopReason::Done))?);
            return Ok(());
        }
        let data: Value = serde_json::from_str(&event.data)
            .map_err(|_| Failure::of(Cause::Garbled).saying(&event.data))?;
        if data.get("error").is_some_and(|error| !error.is_null()) || event.name == "error" {
            return Err(of_error(None, &data));
        }
        if !self.began {
            self.began = true;
            let model = data["model"].as_str().map(|model| head(model, NAME_BYTES_MAX).into());
            pieces.push(Piece::Metadata { model, request_id: self.request_id.clone() });
        }
        let choice = &data["choices"][0];
        // Whoever does not stream gives the whole message in place of a part.
        let part = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        self.grow(part, pieces)?;
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.stop = Some(stop_reason(reason)?);
        }
        for usage in [&choice["usage"], &data["x_groq"]["usage"], &data["usage"]] {
            self.count(usage, pieces);
        }
        Ok(())
    }

    /// The stream is over. Many leave out `[DONE]`; a reason to stop is enough.
    pub(in crate::native) fn end(&mut self) -> Piece {
        let Some(reason) = self.stop else { return Piece::Failed(Failure::of(Cause::Dropped)) };
        self.finished(reason).unwrap_or_else(Piece::Failed)
    }

    fn finished(&self, reason: StopReason) -> Result<Piece, Failure> {
        // Some say `stop` and mean their calls.
        let reason = match reason {
            StopReason::Done | StopReason::Calls if self.draft.has_calls() => StopReason::Calls,
            StopReason::Calls => StopReason::Done,
            StopReason::Done
            | StopReason::Length
            | StopReason::ContextFull
            | StopReason::Refused => reason,
        };
        let message = self.draft.freeze(reason)?;
        Ok(Piece::End { reason, message, usage: self.usage })
    }

    fn grow(&mut self, part: &Value, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let thought = ["reasoning_content", "reasoning"]
            .iter()
            .filter_map(|field| part[field].as_str())
            .find(|thought| !thought.is_empty());
        if let Some(thought) = thought {
            let place = match self.thinking {
                Some(place) => place,
                None => *self.thinking.insert(self.draft.begin_thinking()?),
            };
            pieces.extend(self.draft.grow(place, thought)?);
        }
        let refusal = part["refusal"].as_str().unwrap_or_default();
        if !refusal.is_empty() {
            self.stop = Some(StopReason::Refused);
        }
        for said in [text_of(&part["content"]).as_str(), refusal] {
            if !said.is_empty() {
                let place = match self.text {
                    Some(place) => place,
                    None => *self.text.insert(self.draft.begin_text()?),
                };
                pieces.extend(self.draft.grow(place, said)?);
            }
        }
        self.calls.take(part, &mut self.draft, pieces)
    }

    /// Cached tokens are within the prompt's; ours are disjoint.
    fn count(&mut self, usage: &Value, pieces: &mut Vec<Piece>) {
        if !usage.is_object() {
            return;
        }
        let count = |value: &Value| value.as_u64();
        let prompt = count(&usage["prompt_tokens"]).unwrap_or_default();
        let cache_read = count(&usage["prompt_tokens_details"]["cached_tokens"])
            .or_else(|| count(&usage["prompt_cache_hit_tokens"]))
            .unwrap_or_default();
        self.usage = Usage {
            tokens: Tokens {
                input: prompt.saturating_sub(cache_read),
                output: count(&usage["completion_tokens"]).unwrap_or_default(),
                cache_read,
                ..Tokens::default()
            },
            reasoning: count(&usage["completion_tokens_details"]["reasoning_tokens"])
                .unwrap_or_default(),
        };
        pieces.push(Piece::Usage(self.usage));
    }
}

/// A text, or a list of parts with texts in them.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn stop_reason(reason: &str) -> Result<StopReason, Failure> {
    match reason {
        "tool_calls" | "function_call" | "tool_use" => Ok(StopReason::Calls),
        "length" | "max_tokens" => Ok(StopReason::Length),
        "model_length" | "model_context_window_exceeded" => Ok(StopReason::ContextFull),
        "content_filter" | "refusal" | "safety" | "sensitive" => Ok(StopReason::Refused),
        "insufficient_system_resource" => Err(Failure::of(Cause::Overloaded)),
        "error" | "abort" | "network_error" => {
            Err(Failure::of(Cause::ServerError).saying("the answer broke off"))
        }
        // `stop`, `eos`, `end_turn`, and whatever else they say at the end.
        _ => Ok(StopReason::Done),
    }
}
