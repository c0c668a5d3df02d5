//! The hook forwarder: what an agent tells its hook, to the daemon or onto disk.
//!
//! An agent waits for this program at every step, so it is small, uses no runtime, says nothing,
//! and exits with 0 whatever happens. It knows bytes and files; all it looks for in the payload is
//! whose session it is and whether a subagent says it, and it never passes on the environment. What
//! is too long is abridged where it is long and stays JSON, so that its event, session and tool
//! arrive. Who is not the client that the hook was installed for ([`caller`]) is reported by its own
//! name.
//!
//! `qd-hook send --harness NAME [--event NAME]` reads the hook's input, stamps it, hands it to
//! the daemon's socket, and spools it where the daemon does not say in time that it has it.
//!
//! `qd-hook wait` with the same words, and `--within SECONDS`, does so too and then stays for the
//! operator's answer: see [`wait`].
//!
//! Invariant of `send`: at most [`limits::delivery_budget`] is spent on the daemon, and then the time of one
//! write to a disk that the agent itself writes to. Before that it waits only for the agent to
//! close the hook's input.

mod agent_watch;
mod ancestry;
mod caller;
mod command_line;
mod deadline;
mod delivery;
mod disk;
mod input;
mod limits;
mod message;
mod place;
mod reply;
mod spool;
mod trimming;
mod wait;
mod whose;

use command_line::{Hook, Request};
use deadline::Deadline;
use message::{Message, Mode, RunBy, Stamp};
use place::Place;

fn main() {
    // A hook that fails is shown to the operator as the agent's trouble, which it is not.
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    match command_line::read(std::env::args_os().skip(1)) {
        Request::Send(hook) => send(&hook),
        Request::Wait { hook, within, holding } => wait::wait(&hook, within, holding),
        Request::Version => println!("qd-hook {}", env!("CARGO_PKG_VERSION")),
        Request::Nothing => {}
    }
}

fn send(hook: &Hook) {
    let stamp = Stamp::now();
    let input = input::read(input::Wanted::Abridged);
    let run_by = RunBy::of(hook, &input.payload);
    hand_in(&Message::new(Mode::Send, stamp, hook, &run_by, input));
}

/// Hands a frame to the daemon, or spools it.
fn hand_in(message: &Message) {
    let place = Place::from_environment();
    let budget = Deadline::after(limits::delivery_budget(message.bytes.len()));
    if delivery::deliver(&place.sockets, message, budget) {
        return;
    }
    disk::outlive_the_file_limit();
    let kept = place.spool.and_then(|folder| spool::keep(&folder, message));
    if let Some(kept) = kept {
        disk::settle(&kept);
    }
}
