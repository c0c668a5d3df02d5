//! Everything of an agent's process that can grow or wait, with its maximum and the reason for it.

use std::time::Duration;

/// Longest line of an agent that is read. Agents put whole tool results on one line, so it is
/// generous; a longer one is skipped and reported, and does not end the session.
pub const LINE_BYTES_MAX: usize = 8 << 20;

/// Bytes read from an agent at once.
pub const READ_BYTES: usize = 64 << 10;

/// Lines that wait for the agent to read its input. It reads a handful for each turn; one that
/// leaves this many unread is stuck, and is ended with that reason.
pub const INPUT_LINES_MAX: usize = 256;

/// Orders that wait for an agent's runner. Each is a person's, or the machine's for them.
pub const ORDERS_MAX: usize = 64;

/// Reports that wait for whoever runs the session. When they are full the agent's output is not
/// read on, which makes the agent wait, not us grow.
pub const REPORTS_MAX: usize = 1_024;

/// How long an agent may take to come up. The slowest takes three seconds on a quiet machine; a
/// loaded one, and an agent that first compiles its own cache, take ten times that.
pub const START_MAX: Duration = Duration::from_secs(120);

/// How long an agent may take to end after it was asked to, before it is killed with all that it
/// started. Those that keep something first do it within a second.
pub const TERMINATE_MAX: Duration = Duration::from_secs(10);

/// What an agent asked in one turn and is remembered, for an answer that does not arrive. Agents run
/// a dozen calls side by side; the oldest is forgotten.
pub const ASKED_MAX: usize = 64;

/// How long a prompt waits for the end of a turn that was given up: an agent that runs a command may
/// end it first. Whoever wrote the prompt is told then.
pub const TURN_END_MAX: Duration = Duration::from_secs(60);

/// How long the output of an ended agent is read on. What it wrote is in the pipe already; only
/// somebody who was handed the pipe keeps it open.
pub const DRAIN_MAX: Duration = Duration::from_secs(1);

/// Lines of one agent that nobody understood and that are told of. One that prints its log among
/// its messages would fill the journal; by then the operator knows.
pub const UNRECOGNISED_TOLD_MAX: u32 = 100;
