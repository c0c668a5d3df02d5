//! Clients that are servers, observed: the real ones with a scripted model, and peers that
//! misbehave.

mod board;
mod codex;
mod misbehaving;
mod opencode;
