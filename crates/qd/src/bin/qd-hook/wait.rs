//! `wait`: hands the frame over as `send` does, then stays until it is answered or released.
//!
//! It says nothing unless it is answered. A daemon that is away or dies is looked for again for some
//! time, with the same frame, which the daemon knows by its id. It ends with 0 and silence when its
//! time is over, when it is told to stop, and when its agent is gone. A program that is not the
//! client it was installed for is never waited for.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use qd_hook_wire::{ACK, HookReply, Parsed};
use rustix::io::Errno;

use crate::agent_watch::{AgentWatch, Woken};
use crate::command_line::{Holding, Hook};
use crate::deadline::Deadline;
use crate::input::Wanted;
use crate::limits::{
    ABSENCE_MAX, LOOK_AGAIN_FIRST, LOOK_AGAIN_MAX, RESTART_GRACE, RETURN_BUDGET, waiting_budget,
};
use crate::message::{Message, Mode, RunBy, Stamp};
use crate::place::Place;
use crate::reply::say;
use crate::{delivery, disk, input, spool};

pub fn wait(hook: &Hook, within: Duration, holding: Holding) {
    leave_when_told();
    let (stamp, until) = (Stamp::now(), Deadline::after(within));
    let entry = entry(&hook.harness);
    let place = Place::from_environment();
    let input = input::read(Wanted::Whole);
    let run_by = RunBy::of(hook, &input.payload);
    if run_by.other.is_some() {
        // It waits for every hook, whatever the settings say, and takes no answer of ours.
        return crate::hand_in(&Message::new(Mode::Send, stamp, hook, &run_by, input));
    }
    let is_subagent = is_of_subagent(&input.payload);
    let mode = Mode::Wait { entry: entry.as_deref() };
    let message = Message::new(mode, stamp, hook, &run_by, input);
    let watch = AgentWatch::new(run_by.agent);
    let holds_agent =
        holding == Holding::TheAgent || is_subagent || entry.is_some_and(|entry| entry != "cli");
    Waiting { place, message, watch, until, holds_agent }.run();
}

struct Waiting {
    place: Place,
    message: Message,
    watch: AgentWatch,
    until: Deadline,
    holds_agent: bool,
}

impl Waiting {
    fn run(&self) {
        let (first, then) = match self.holds_agent {
            true => (Duration::ZERO, RESTART_GRACE),
            false => (ABSENCE_MAX, ABSENCE_MAX),
        };
        let (mut safe, mut pause) = (false, LOOK_AGAIN_FIRST);
        let mut look_until = Deadline::after(first).min(self.until);
        loop {
            let first = waiting_budget(self.message.bytes.len());
            let budget = if safe { RETURN_BUDGET } else { first };
            let budget = Deadline::after(budget).min(self.until);
            match delivery::hand_over(&self.place.sockets, &self.message, budget) {
                Some(socket) => {
                    if self.listen(&socket) == Heard::Nothing {
                        return;
                    }
                    (safe, pause) = (true, LOOK_AGAIN_FIRST);
                    look_until = Deadline::after(then).min(self.until);
                }
                None if !safe => {
                    self.spool();
                    safe = true;
                }
                None => {}
            }
            if look_until.left().is_none() {
                return;
            }
            if self.watch.wait(None, Deadline::after(pause).min(look_until)) == Woken::Gone {
                return;
            }
            pause = (pause * 2).min(LOOK_AGAIN_MAX);
        }
    }

    /// Does not come back if there was an answer.
    fn listen(&self, socket: &OwnedFd) -> Heard {
        let (mut bytes, mut chunk) = (Vec::new(), [0; CHUNK_BYTES]);
        loop {
            if self.watch.wait(Some(socket.as_fd()), self.until) != Woken::Ready {
                return Heard::Nothing;
            }
            match rustix::io::read(socket, &mut chunk) {
                Ok(0) => return Heard::TheEnd,
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(_) => return Heard::TheEnd,
            }
            match HookReply::parse(&bytes) {
                Parsed::Half => {}
                Parsed::Broken => return Heard::TheEnd,
                Parsed::Whole(reply) => {
                    // A daemon that is told that we have it and one that is not must not mean the
                    // same: what it cannot be told is not said, and we come back.
                    if delivery::write(socket, &[ACK], self.until) {
                        say(reply);
                    }
                    return Heard::TheEnd;
                }
            }
        }
    }

    /// The agent has its own dialog meanwhile, so this waits for the disk itself.
    fn spool(&self) {
        disk::outlive_the_file_limit();
        let folder = self.place.spool.as_deref();
        if let Some(kept) = folder.and_then(|folder| spool::keep(folder, &self.message)) {
            kept.settle();
        }
    }
}

#[derive(PartialEq, Eq)]
enum Heard {
    /// The connection is of no more use.
    TheEnd,
    /// The time is over, or nobody is there to answer to.
    Nothing,
}

/// How Claude Code was started: `cli` is a person at a terminal. Another agent's hook inherits
/// the word from a Claude Code around it, so it is believed only for its own.
fn entry(harness: &str) -> Option<String> {
    let entry = || std::env::var("CLAUDE_CODE_ENTRYPOINT").ok();
    (harness == "claude-code").then(entry).flatten()
}

/// Claude Code asks for a subagent in the terminal only after the subagent's hook has ended. The
/// name cannot stand in a text: there its quotes are escaped.
fn is_of_subagent(payload: &[u8]) -> bool {
    payload.windows(SUBAGENT.len()).any(|part| part == SUBAGENT)
}

/// A member that hooks have only inside a subagent.
const SUBAGENT: &[u8] = b"\"agent_id\":";

/// Whoever ends us does so on purpose, and that is no failure of the hook.
fn leave_when_told() {
    extern "C" fn leave(_: libc::c_int) {
        #[allow(unsafe_code, reason = "a handler may not run what ends a process in std")]
        // SAFETY: `_exit` may be called in a signal handler.
        unsafe {
            libc::_exit(0)
        }
    }
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        #[allow(unsafe_code, reason = "std has no signals")]
        // SAFETY: the handler does nothing but leave.
        unsafe {
            libc::signal(signal, leave as *const () as libc::sighandler_t);
        }
    }
}

/// Most replies have a few hundred bytes.
const CHUNK_BYTES: usize = 4 << 10;
