//! The daemon beside the real clients: at each step it says what the client's own screen,
//! registry file or server says, and moves on when the step is answered.
//!
//! The models are scripted and on loopback; the clients, `qd` and its forwarder are the real ones.

mod board;
mod claude_code;
mod codex;
mod driven;
mod gemini_cli;
mod grok;
mod opencode;
mod unreadable;
mod world;
