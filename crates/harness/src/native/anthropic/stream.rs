//! The events of an answer, as Anthropic Messages stream them.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::id::TurnId;
use serde_json::Value;

use crate::excerpt::head;
use crate::native::answer_draft::{AnswerDraft, Place};
use crate::native::failure::{Cause, Failure, of_error};
use crate::native::limits::NAME_BYTES_MAX;
use crate::native::{Piece, ServerSentEvent, StopReason, Usage};
use crate::usage::Tokens;

#[derive(Debug)]
pub(in crate::native) struct Reader {
    draft: AnswerDraft,
    places: BTreeMap<u64, Place>,
    request_id: Option<Arc<str>>,
    usage: Usage,
    stop: Option<StopReason>,
}

impl Reader {
    pub(in crate::native) fn new(turn: TurnId, request_id: Option<Arc<str>>) -> Self {
        Self {
            draft: AnswerDraft::new(turn),
            places: BTreeMap::new(),
            request_id,
            usage: Usage::default(),
            stop: None,
        }
    }

    pub(in crate::native) fn take(
        &mut self,
        event: &ServerSentEvent,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        let data: Value = serde_json::from_str(&event.data)
            .map_err(|_| Failure::of(Cause::Garbled).saying(&event.data))?;
        match data["type"].as_str().unwrap_or(&event.name) {
            "message_start" => self.start(&data["message"], pieces),
            "content_block_start" => self.start_block(&data, pieces),
            "content_block_delta" => self.grow_block(&data, pieces),
            "message_delta" => {
                if let Some(reason) = data["delta"]["stop_reason"].as_str() {
                    self.stop = Some(stop_reason(reason));
                }
                self.count(&data["usage"], pieces);
                Ok(())
            }
            "message_stop" => {
                let asked_for = self.draft.has_calls();
                let natural = if asked_for { StopReason::Calls } else { StopReason::Done };
                let reason = self.stop.unwrap_or(natural);
                let message = self.draft.freeze(reason)?;
                pieces.push(Piece::End { reason, message, usage: self.usage });
                Ok(())
            }
            "error" => Err(of_error(None, &data)),
            // `ping`, the end of a block, and what may be added to the protocol.
            _ => Ok(()),
        }
    }

    /// The stream is over without `message_stop`.
    pub(in crate::native) fn end(&mut self) -> Piece {
        Piece::Failed(Failure::of(Cause::Dropped))
    }

    fn start(&mut self, message: &Value, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let model = message["model"].as_str().map(|model| head(model, NAME_BYTES_MAX).into());
        pieces.push(Piece::Metadata { model, request_id: self.request_id.clone() });
        self.count(&message["usage"], pieces);
        Ok(())
    }

    fn start_block(&mut self, data: &Value, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let block = &data["content_block"];
        let text = |field: &str| block[field].as_str().unwrap_or_default();
        let draft = &mut self.draft;
        let (place, begun_with) = match text("type") {
            "text" => (draft.begin_text()?, text("text").to_owned()),
            "thinking" => {
                let place = draft.begin_thinking()?;
                draft.sign(place, text("signature"))?;
                (place, text("thinking").to_owned())
            }
            "redacted_thinking" => (draft.begin_redacted(text("data"))?, String::new()),
            "tool_use" => {
                let place = draft.begin_call(text("id"), text("name"))?;
                // Anthropic begins with `{}`; some gateways give all of it here.
                let input = &block["input"];
                let is_whole = input.as_object().is_some_and(|input| !input.is_empty());
                (place, if is_whole { input.to_string() } else { String::new() })
            }
            _ => (draft.begin_unknown()?, String::new()),
        };
        pieces.extend(draft.grow(place, &begun_with)?);
        self.places.insert(index(data)?, place);
        Ok(())
    }

    fn grow_block(&mut self, data: &Value, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let unknown = || Failure::of(Cause::Garbled).saying("more of a block that was not begun");
        let place = *self.places.get(&index(data)?).ok_or_else(unknown)?;
        let delta = &data["delta"];
        let text = |field: &str| delta[field].as_str().unwrap_or_default();
        let more = match text("type") {
            "text_delta" => text("text"),
            "thinking_delta" => text("thinking"),
            "input_json_delta" => text("partial_json"),
            "signature_delta" => return self.draft.sign(place, text("signature")),
            // Citations and what may be added.
            _ => return Ok(()),
        };
        if !more.is_empty() {
            pieces.extend(self.draft.grow(place, more)?);
        }
        Ok(())
    }

    /// Counts are of the whole answer so far; one that is missing has not changed.
    fn count(&mut self, usage: &Value, pieces: &mut Vec<Piece>) {
        let Tokens { input, output, cache_write, cache_write_1h, cache_read } =
            &mut self.usage.tokens;
        let written = &usage["cache_creation"];
        let told = [
            (input, &usage["input_tokens"]),
            (output, &usage["output_tokens"]),
            (cache_read, &usage["cache_read_input_tokens"]),
        ];
        let before = self.usage.reasoning;
        for (count, told) in told {
            *count = told.as_u64().unwrap_or(*count);
        }
        let long = written["ephemeral_1h_input_tokens"].as_u64();
        *cache_write_1h = long.unwrap_or(*cache_write_1h);
        if let Some(all) = usage["cache_creation_input_tokens"].as_u64() {
            *cache_write = all.saturating_sub(*cache_write_1h);
        }
        let thought = &usage["output_tokens_details"]["thinking_tokens"];
        self.usage.reasoning = thought.as_u64().unwrap_or(before);
        if usage.is_object() {
            pieces.push(Piece::Usage(self.usage));
        }
    }
}

fn index(data: &Value) -> Result<u64, Failure> {
    let index = data["index"].as_u64();
    index.ok_or_else(|| Failure::of(Cause::Garbled).saying("a block without its number"))
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "tool_use" => StopReason::Calls,
        "max_tokens" => StopReason::Length,
        "model_context_window_exceeded" => StopReason::ContextFull,
        "refusal" => StopReason::Refused,
        // `end_turn`, `stop_sequence`, and what may be added.
        _ => StopReason::Done,
    }
}
