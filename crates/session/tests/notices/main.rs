//! Notices: the tables of `spec/notices.md` read both ways, and everything at once in a world that
//! answers, looks away, sleeps and restarts.

mod kinds;
mod once;
mod simulation;
mod table;
mod world;
