//! Clients that are servers, observed and acted on: the real ones with a scripted model, and peers
//! that misbehave.

mod board;
mod codex;
mod codex_errands;
mod misbehaving;
mod opencode;
mod opencode_errands;
mod pretenders;
