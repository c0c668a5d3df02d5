//! Decisions: the book's table read both ways, many who answer at once in a world that breaks, and
//! the chain of records.

#![allow(clippy::wildcard_enum_match_arm, reason = "tests pick the one case they are about")]

mod bounds;
mod chain;
mod sample;
mod simulation;
mod table;
