//! Vendor agents driven by us: the real clients against a scripted model, and agents that misbehave.

mod acp;
mod claude_code;
mod cline;
mod codex;
mod killed;
mod misbehaving;
mod world;
