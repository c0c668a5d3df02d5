//! What the agent writes to the hook's input.

use qd_harness::abridge::{Abridger, Bounds};
use qd_hook_wire::{Cut, PAYLOAD_BYTES_MAX};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::stdio::stdin;

use crate::deadline::Deadline;
use crate::limits::{INPUT_WAIT, LONG_INPUT_BYTES, LONG_INPUT_WAIT};
use crate::message::Input;

/// Whether the payload is wanted whole, as far as there is room: for whoever judges it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Abridged,
    Whole,
}

/// Reads to the end. What is too long to be kept is still taken from the agent, which would
/// otherwise see its pipe break; no more than the bounds is held of it.
pub fn read(wanted: Wanted) -> Input {
    let (first, last) = (Deadline::after(INPUT_WAIT), Deadline::after(LONG_INPUT_WAIT));
    let mut abridger = Abridger::new(Bounds::TOLD);
    let mut whole = (wanted == Wanted::Whole).then(Vec::new);
    let (mut chunk, mut len) = ([0; CHUNK_BYTES], 0);
    let ended = loop {
        // An agent that is still writing a long payload is not late.
        let deadline = if len >= LONG_INPUT_BYTES { last } else { first };
        if !deadline.wait(stdin(), PollFlags::IN) {
            break false;
        }
        match rustix::io::read(stdin(), &mut chunk) {
            Ok(0) => break true,
            Ok(count) => {
                len += count;
                abridger.feed(&chunk[..count]);
                whole = whole.filter(|whole| whole.len() + count <= PAYLOAD_BYTES_MAX);
                whole.iter_mut().for_each(|whole| whole.extend_from_slice(&chunk[..count]));
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // A closed or broken input has no more to say.
            Err(_) => break true,
        }
    };
    let abridged = abridger.finish();
    let cut = match (ended, abridged.is_cut()) {
        (false, _) => Some(Cut::Time),
        (true, true) => Some(Cut::Size),
        (true, false) => None,
    };
    // What broke off is no better whole.
    let whole = whole.filter(|_| cut == Some(Cut::Size));
    Input { payload: abridged.text, whole, cut }
}

/// What a pipe holds.
const CHUNK_BYTES: usize = 64 << 10;
