//! Every captured session, replayed: against its truth, against its story, and disturbed.

#![allow(clippy::disallowed_methods, reason = "captures are files")]

mod capture;
mod disturbed;
mod only;
mod story;
mod table;
mod truth;
