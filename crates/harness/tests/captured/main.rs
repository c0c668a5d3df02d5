//! Every captured session, replayed: against its truth, against its story, and disturbed.

#![allow(clippy::disallowed_methods, reason = "captures are files")]
#![allow(clippy::wildcard_enum_match_arm, reason = "tests pick the one case they are about")]

mod asked;
mod capture;
mod conversation;
mod disturbed;
mod forks;
mod mutations;
mod only;
mod patch;
mod story;
mod table;
mod timeline;
mod truth;
mod versions;
