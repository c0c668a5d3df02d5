//! The native harness: a model's own endpoint, driven by us, with our own tools.
//!
//! Pure. A [`Conversation`] becomes an [`HttpRequest`] in the language of its [`Provider`]; the
//! bytes of the answer go through a [`StreamReader`] and come out as [`Piece`]s; what went wrong
//! is a [`Failure`] with the machine's word for it. [`StreamEvents`] puts pieces into the
//! envelopes that are shown. Who opens the connection, and whose key is sent, is the broker's
//! business.
//!
//! Languages: Anthropic Messages (version 2023-06-01), and chat completions as OpenAI and the
//! many who imitate it speak them. Oddities of the imitators, all of them read here: no `[DONE]`,
//! no `index`, the arguments of a call at once, one index for several calls, calls without an id,
//! `stop` in place of `tool_calls`, usage beside an empty list of choices or within a choice.
//! Invariant: before every request each call of the conversation has exactly one output.

mod answer_draft;
mod anthropic;
mod conversation;
mod failure;
mod handler;
pub mod limits;
mod openai;
mod piece;
mod provider;
mod request;
mod sse;
mod stream_events;
mod stream_reader;

pub use self::conversation::{
    AssistantMessage, Block, Call, Conversation, Message, Unasked, Unsound,
};
pub use self::failure::{Cause, Failure, ResponseHead};
pub use self::handler::Handler;
pub use self::piece::{Piece, StopReason, Usage};
pub use self::provider::Provider;
pub use self::request::{HttpRequest, Options, ToolDefinition, request};
pub use self::sse::{EventTooLong, ServerSentEvent, SseDecoder};
pub use self::stream_events::{
    CompletedReason, Payload, StatusKind, StreamErrorCode, StreamEvent, StreamEvents, ToolStatus,
    UsageTold,
};
pub use self::stream_reader::StreamReader;
