//! `qd hooks` as the operator runs it: the real program, a HOME of its own, real files.

mod asking;
mod codex;
mod failing;
mod home;
mod restoring;
mod status;
