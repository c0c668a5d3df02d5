//! What the agent writes to the hook's input.

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::stdio::stdin;

use crate::deadline::Deadline;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::message::{Cut, Input};

/// Reads to the end, and at most a payload's length. What is longer is still taken from the
/// agent, which would otherwise see its pipe break, and thrown away.
pub fn read(deadline: Deadline) -> Input {
    let (mut payload, mut surplus) = (Vec::new(), false);
    let mut chunk = [0; CHUNK_BYTES];
    let ended = loop {
        if !deadline.wait(stdin(), PollFlags::IN) {
            break false;
        }
        match rustix::io::read(stdin(), &mut chunk) {
            Ok(0) => break true,
            Ok(count) => {
                let room = PAYLOAD_BYTES_MAX - payload.len();
                payload.extend_from_slice(&chunk[..count.min(room)]);
                surplus |= count > room;
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // A closed or broken input has no more to say.
            Err(_) => break true,
        }
    };
    let cut = match (surplus, ended) {
        (true, _) => Some(Cut::Size),
        (false, false) => Some(Cut::Time),
        (false, true) => None,
    };
    Input { payload, cut }
}

/// What a pipe holds.
const CHUNK_BYTES: usize = 64 << 10;
