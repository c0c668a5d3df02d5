//! A signal: raw input from an agent, before anybody has understood it.

use std::sync::Arc;

use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Monitor};

/// One piece of raw input, as it was found.
#[derive(Debug, Clone, Copy)]
pub struct Signal<'a> {
    /// When we got it or, where the sender stamps, when it was sent.
    pub at: Timestamp,
    /// The sender's counter, where it has one.
    pub seq: u32,
    pub channel: Channel,
    pub direction: Direction,
    /// The session file a transcript line stands in, the process that ran a hook, or the server
    /// that a message is from or to, where there may be several.
    pub file: Option<&'a str>,
    /// The bytes themselves: not always text, not always JSON, not always whole.
    pub payload: &'a [u8],
}

impl Signal<'_> {
    /// The process that ran a hook, as far as that is known.
    pub fn pid(&self) -> Option<u64> {
        let process = self.file.filter(|_| self.channel == Channel::Hook)?;
        process.split(':').next()?.parse().ok()
    }
}

/// How a signal reached us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// What the client wrote to a hook's standard input.
    Hook,
    /// The argument of Codex's notify program.
    Notify,
    /// One line of a session file.
    Transcript,
    /// Claude Code's `sessions/<pid>.json`.
    Registry,
    /// One OTLP body, or one record of a telemetry file.
    Otel,
    /// One line of the client's JSON output (or input).
    Stream,
    /// One line of `codex exec --json`.
    Exec,
    /// A Codex app-server message.
    AppServer,
    /// An ACP message.
    Acp,
    /// A server event, request or response of OpenCode and Kilo.
    Events,
    /// What a process watcher saw.
    Process,
}

impl Channel {
    pub const ALL: [Self; 11] = [
        Self::Hook,
        Self::Notify,
        Self::Transcript,
        Self::Registry,
        Self::Otel,
        Self::Stream,
        Self::Exec,
        Self::AppServer,
        Self::Acp,
        Self::Events,
        Self::Process,
    ];

    /// Its name in a capture.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Notify => "notify",
            Self::Transcript => "transcript",
            Self::Registry => "registry",
            Self::Otel => "otel",
            Self::Stream => "stream",
            Self::Exec => "exec",
            Self::AppServer => "appserver",
            Self::Acp => "acp",
            Self::Events => "events",
            Self::Process => "process",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.name() == name)
    }

    /// How far it is trusted when two facts are of the same moment.
    pub fn source(self) -> Source {
        match self {
            Self::Hook | Self::Notify => Source::Hook,
            Self::Transcript => Source::Transcript,
            Self::Registry => Source::Registry,
            Self::Otel => Source::Otel,
            Self::Stream | Self::Exec | Self::AppServer | Self::Acp | Self::Events => {
                Source::Driver
            }
            Self::Process => Source::Process,
        }
    }
}

/// Who sent a message of a two-way protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// The agent: the ordinary case.
    #[default]
    FromAgent,
    /// Whoever drives it.
    ToAgent,
}

/// An event, and the session it belongs to by the vendor's own id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    pub session: Arc<str>,
    pub event: AgentEvent,
}

/// A translator for one agent product: signals in, events out. Races and debounces are settled
/// here and nowhere above. It never fails: what it does not understand becomes `Unrecognised`.
pub trait Handler {
    fn handle_signal(&mut self, signal: &Signal<'_>) -> Vec<Sighting>;

    /// When it wants to be woken if nothing comes.
    fn next_timeout(&self) -> Option<Timestamp>;

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Sighting>;

    /// A session that was known before a restart, before anything is heard of it again. For
    /// clients that list what is open and do not tell again what was closed meanwhile.
    fn recall(&mut self, _session: &Arc<str>, _known: &Monitor) {}

    /// How many signals were not understood and could not be given to any session.
    fn unrecognised(&self) -> u64 {
        0
    }
}
