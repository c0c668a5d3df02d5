//! Bytes of an answer in, pieces out, whichever provider speaks.

use std::sync::Arc;

use qd_session::id::TurnId;

use super::failure::{Cause, Failure};
use super::limits::BEGINNING_BYTES_MAX;
use super::{Piece, Provider, ServerSentEvent, SseDecoder, anthropic, openai};

/// Reads one answer. The pieces are the same however the bytes were cut; exactly one of them, the
/// last, is [`Piece::End`] or [`Piece::Failed`], once [`StreamReader::end`] was called.
#[derive(Debug)]
pub struct StreamReader {
    decoder: SseDecoder,
    language: Language,
    is_over: bool,
    /// An event has come; until then the beginning is kept.
    is_stream: bool,
    beginning: Vec<u8>,
    request_id: Option<Arc<str>>,
}

#[derive(Debug)]
enum Language {
    Anthropic(anthropic::Reader),
    OpenAi(openai::Reader),
}

impl StreamReader {
    /// `turn` names calls that the provider did not name; `request_id` is the response's.
    pub fn new(provider: Provider, turn: TurnId, request_id: Option<Arc<str>>) -> Self {
        let language = match provider {
            Provider::Anthropic => {
                Language::Anthropic(anthropic::Reader::new(turn, request_id.clone()))
            }
            Provider::OpenAi => Language::OpenAi(openai::Reader::new(turn, request_id.clone())),
        };
        Self {
            decoder: SseDecoder::default(),
            language,
            is_over: false,
            is_stream: false,
            beginning: Vec::new(),
            request_id,
        }
    }

    pub fn take(&mut self, bytes: &[u8]) -> Vec<Piece> {
        if self.is_over {
            return Vec::new();
        }
        if !self.is_stream {
            let room = BEGINNING_BYTES_MAX.saturating_sub(self.beginning.len());
            self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        let mut events = Vec::new();
        let decoded = self.decoder.take(bytes, &mut events);
        let mut pieces = Vec::new();
        for event in &events {
            self.take_event(event, &mut pieces);
        }
        if decoded.is_err() && !self.is_over {
            let failure = Failure::of(Cause::TooLong).saying("one event has no end");
            pieces.push(self.failed(failure));
        }
        pieces
    }

    /// The body has ended.
    pub fn end(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if self.is_over {
            return pieces;
        }
        // Half an event is what a dropped connection leaves.
        let is_whole = |event: &ServerSentEvent| {
            event.data.trim() == "[DONE]"
                || serde_json::from_str::<serde::de::IgnoredAny>(&event.data).is_ok()
        };
        if let Some(event) = self.decoder.finish().filter(is_whole) {
            self.take_event(&event, &mut pieces);
        }
        if !self.is_over {
            let last = if self.is_stream || self.beginning.is_empty() {
                match &mut self.language {
                    Language::Anthropic(reader) => reader.end(),
                    Language::OpenAi(reader) => reader.end(),
                }
            } else {
                let beginning = String::from_utf8_lossy(&self.beginning).into_owned();
                Piece::Failed(Failure::of(Cause::NotAStream).saying(&beginning))
            };
            let last = match last {
                Piece::Failed(failure) => self.failed(failure),
                Piece::Metadata { .. }
                | Piece::Text { .. }
                | Piece::Thinking { .. }
                | Piece::CallArguments { .. }
                | Piece::Usage(_)
                | Piece::End { .. } => last,
            };
            self.is_over = true;
            pieces.push(last);
        }
        pieces
    }

    /// Something outside the stream went wrong: the connection, or patience.
    pub fn fail(&mut self, failure: Failure) -> Option<Piece> {
        (!self.is_over).then(|| self.failed(failure))
    }

    fn take_event(&mut self, event: &ServerSentEvent, pieces: &mut Vec<Piece>) {
        if self.is_over {
            return;
        }
        self.is_stream = true;
        let read = match &mut self.language {
            Language::Anthropic(reader) => reader.take(event, pieces),
            Language::OpenAi(reader) => reader.take(event, pieces),
        };
        if let Err(failure) = read {
            pieces.push(self.failed(failure));
        }
        self.is_over = pieces.last().is_some_and(Piece::is_last);
    }

    fn failed(&mut self, failure: Failure) -> Piece {
        self.is_over = true;
        Piece::Failed(failure.in_request(self.request_id.clone()))
    }
}
