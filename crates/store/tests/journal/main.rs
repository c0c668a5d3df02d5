//! The journal from outside: what it promises, and what it does when the world breaks.

mod appending;
mod decisions;
mod full_disk;
mod killed;
mod loading;
mod older;
mod opening;
mod properties;
mod retention;
mod sample;
mod scratch;
mod taken_away;
