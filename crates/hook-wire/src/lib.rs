//! What `qd-hook` and the daemon say to each other: both halves of the format, and no dependency,
//! because the forwarder starts with every hook of every agent.

mod frame_id;
mod reply;

pub use frame_id::FrameId;
pub use reply::HookReply;
