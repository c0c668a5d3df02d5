//! The driven machine, visited in every state it can reach, and its table read both ways.

mod faults;
mod invariants;
mod table;
mod walk;
mod world;
