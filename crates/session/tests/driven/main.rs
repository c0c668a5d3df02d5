//! The driven machine, visited in every state it can reach, and its table read both ways.

#![allow(clippy::wildcard_enum_match_arm, reason = "tests pick the one case they are about")]

mod faults;
mod invariants;
mod journal;
mod logbook;
mod names;
mod operator;
mod table;
mod walk;
mod world;
