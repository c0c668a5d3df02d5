//! The real daemon and the real forwarder, on a machine that goes wrong: killed at any moment, on
//! a full disk, stopped and let go on. What agents said is there exactly once, in order, and the
//! board is what it would have been.

mod crowd;
mod dice;
mod full_disk;
mod hung;
mod killed;
mod recorded;
mod reference;
mod transcripts;
mod world;
