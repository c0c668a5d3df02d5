//! The hook forwarder: what an agent tells its hook, to the daemon or onto disk.
//!
//! An agent waits for this program at every step, so it is small, uses no runtime, says nothing,
//! and exits with 0 whatever happens. It knows bytes and files; it never reads the payload and
//! never passes on the environment.
//!
//! `qd-hook send --harness NAME [--event NAME]` reads the hook's input, stamps it, hands it to
//! the daemon's socket, and spools it where the daemon does not say in time that it has it.
//!
//! Invariant: at most [`limits::DELIVERY_BUDGET`] is spent on the daemon, and then the time of one
//! write to a disk that the agent itself writes to. Before that it waits only for the agent to
//! close the hook's input.

mod ancestry;
mod command_line;
mod deadline;
mod delivery;
mod disk;
mod input;
mod limits;
mod message;
mod place;
mod spool;

use command_line::Request;
use deadline::Deadline;
use message::{Message, Stamp};
use place::Place;

fn main() {
    // A hook that fails is shown to the operator as the agent's trouble, which it is not.
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    match command_line::read(std::env::args_os().skip(1)) {
        Request::Send { harness, event } => send(&harness, event.as_deref()),
        Request::Version => println!("qd-hook {}", env!("CARGO_PKG_VERSION")),
        Request::Nothing => {}
    }
}

fn send(harness: &str, event: Option<&str>) {
    let stamp = Stamp::now();
    let place = Place::from_environment();
    let input = input::read(Deadline::after(limits::INPUT_WAIT));
    let message = Message::new(stamp, harness, event, ancestry::agent(harness), input);
    let budget = Deadline::after(limits::DELIVERY_BUDGET);
    if delivery::deliver(&place.sockets, &message, budget) {
        return;
    }
    disk::outlive_the_file_limit();
    let kept = place.spool.and_then(|folder| spool::keep(&folder, &message));
    if let Some(kept) = kept {
        disk::sync(&kept);
    }
}
