//! The observed session: its table read both ways, and what holds whatever comes in which order.

mod grammar;
mod properties;
mod rules;
mod table;
