//! The observed session: its table read both ways, and what holds whatever comes in which order.

#![allow(clippy::wildcard_enum_match_arm, reason = "tests pick the one case they are about")]

mod grammar;
mod properties;
mod rules;
mod table;
