//! The commands as an operator runs them: the real programs, in a home of their own.

mod alone;
mod asking;
mod auditing;
mod by_hand;
mod contract;
mod demo;
mod doctor;
mod floods;
mod hooked;
mod notices;
mod over_ssh;
mod policy;
mod recording;
mod service;
mod troubles;
mod usage;
mod watching;
mod world;
