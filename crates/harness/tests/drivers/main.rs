//! Recorded exchanges in both directions, played against the drivers: given the agent's lines and
//! the operator's decisions, a driver writes what the recording wrote, and tells what happened.

#![allow(clippy::disallowed_methods, reason = "captures are files")]

mod acp;
mod claude_code;
mod codex;
mod exchange;
mod kilo_cline;
