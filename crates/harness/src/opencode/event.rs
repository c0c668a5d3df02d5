//! The server's events: sessions, their status, their failures, their messages.

use std::sync::Arc;

use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Failure, FailureKind, Place};

use super::handler::{Handler, Told};
use super::request::Answered;
use super::session::WaitKind;
use super::wire::{self, Envelope, Info, Properties, Status};
use crate::excerpt::brief;

/// A session that was created with a prompt hears of it within this time; after it, it waits.
const PROMPT_GRACE_MS: u64 = 1_000;

/// What concerns no session's state: the server, its plugins, files, terminals, and the server's
/// next protocol, which it sends besides this one.
const SILENT: [&str; 34] = [
    "background_process.",
    "catalog.",
    "command.",
    "config.",
    "file.",
    "global.",
    "ide.",
    "indexing.",
    "installation.",
    "integration.",
    "interactive_terminal.",
    "kilocode.",
    "lsp.",
    "mcp.",
    "memory.",
    "models.",
    "models-dev.",
    "permission.v2.",
    "plugin.",
    "project.",
    "pty.",
    "question.v2.",
    "reference.",
    "remote.",
    "sandbox.",
    "server.",
    "session.next.",
    "session.queue.",
    "skill.",
    "tui.",
    "vcs.",
    "workspace.",
    "worktree.",
    "storage.",
];

impl Handler {
    /// `None` if nobody knows what it is.
    pub(super) fn event(&mut self, at: Timestamp, event: Envelope, told: &mut Told) -> Option<()> {
        let (name, properties) = match event.sync_event {
            Some(copy) => (unversioned(&copy.r#type?).to_owned(), copy.data),
            None => (event.r#type?, event.properties),
        };
        if SILENT.iter().any(|silent| name.starts_with(silent)) {
            return Some(());
        }
        let properties = properties.unwrap_or_default();
        let id: Arc<str> = owner(&properties)?.into();
        match name.as_str() {
            "session.created" | "session.updated" => {
                let created = name == "session.created";
                self.session_known(at, &id, properties.info?, created, told);
            }
            "session.deleted" => self.deleted(&id, told),
            "session.status" => self.status(at, &id, properties.status?, told),
            "session.idle" => self.idle(at, &id, told),
            "session.error" => self.failed(at, &id, &properties.error?, told),
            "session.turn.open" => {
                if !self.session(&id, at).busy {
                    self.session(&id, at).begin();
                    told.push(&id, Fact::TurnStarted);
                }
            }
            "session.turn.close" => self.turn_closed(at, &id, properties.reason.as_deref(), told),
            "session.compacted" => told.push(&id, Fact::CompactionEnded),
            "message.updated" => self.message(at, &id, properties.info?, told),
            "message.part.updated" => self.part(at, &id, properties.part?, told),
            "permission.asked" | "permission.updated" => {
                self.permission(at, &id, properties, told)?
            }
            "question.asked" => self.question(at, &id, properties, told)?,
            "permission.replied" => {
                let request = properties.request_id?;
                let rejected = properties.reply.as_deref() == Some("reject");
                let answer = Answered::turned_down(rejected);
                self.settled(at, &id, &request, WaitKind::Permission, answer, told);
            }
            "question.replied" | "question.rejected" => {
                let request = properties.request_id?;
                let rejected = name == "question.rejected";
                let answer = Answered::turned_down(rejected);
                self.settled(at, &id, &request, WaitKind::Question, answer, told);
            }
            // Kilo without a network tries again by itself once it is back.
            "session.network.asked" => self.offline(at, &id, properties.message.as_deref(), told),
            "session.network.replied" => told.push(&id, self.session(&id, at).go_on()),
            "session.network.restored" | "session.network.rejected" => {}
            // A suggestion that does not block is no request.
            "suggestion.shown" if properties.blocking == Some(true) => {
                self.question(at, &id, properties, told)?;
            }
            "suggestion.accepted" | "suggestion.dismissed" => {
                let request = properties.request_id?;
                self.settled(at, &id, &request, WaitKind::Question, Answered::Given, told);
            }
            "suggestion.shown" => {}
            "todo.updated" => self.todos(at, &id, properties.todos?, told),
            "message.part.delta" | "message.part.removed" | "message.removed" | "session.diff" => {}
            "session.drain.interrupted" => {
                let aborted = self.session(&id, at).was_drained();
                aborted.into_iter().for_each(|fact| told.push(&id, fact));
            }
            _ => return None,
        }
        let server = self.server.clone();
        if let Some(session) = self.sessions().get_mut(&id) {
            session.server = server;
        }
        Some(())
    }

    pub(super) fn session_known(
        &mut self,
        at: Timestamp,
        id: &Arc<str>,
        info: Info,
        created: bool,
        told: &mut Told,
    ) {
        let session = self.session(id, at);
        if let Some(parent) = info.parent_id.filter(|parent| **parent != **id) {
            let kind = info.agent.as_deref().map(Arc::from);
            return self.child(at, id, &parent.into(), kind, told);
        }
        if created && !session.busy && session.answer.is_none() {
            session.idle_due = Some(at.plus_ms(PROMPT_GRACE_MS));
        }
        let title = info.title.filter(|title| !is_made_up(title)).map(|title| brief(&title, 200));
        if let Some(title) = title.filter(|title| session.title.as_ref() != Some(title)) {
            told.push(id, Fact::TitleKnown { title: title.clone(), custom: false });
            session.title = Some(title);
        }
        if let Some(cwd) = info.directory.filter(|cwd| session.cwd.as_ref() != Some(cwd)) {
            let version = info.version.map(|version| brief(&version, 64));
            let place = Place { cwd: Some(cwd.as_str().into()), version, ..Place::default() };
            told.push(id, Fact::PlaceKnown { place });
            session.cwd = Some(cwd);
        }
    }

    /// The session works for another one.
    pub(super) fn child(
        &mut self,
        at: Timestamp,
        id: &Arc<str>,
        parent: &Arc<str>,
        kind: Option<Arc<str>>,
        told: &mut Told,
    ) {
        self.session(parent, at);
        let session = self.session(id, at);
        let news = session.parent.is_none() || (session.kind.is_none() && kind.is_some());
        session.parent = Some(parent.clone());
        session.kind = kind.or(session.kind.take());
        let working = session.busy || session.answer.is_none();
        if news && working {
            told.push(id, Fact::SubagentStarted { kind: session.kind.clone() });
        }
    }

    fn deleted(&mut self, id: &Arc<str>, told: &mut Told) {
        told.push(id, Fact::SubagentEnded);
        told.push(id, Fact::SessionEnded { process: None, exit_code: None });
    }

    pub(super) fn status(&mut self, at: Timestamp, id: &Arc<str>, status: Status, told: &mut Told) {
        match status.r#type.as_deref() {
            Some("idle") => self.idle(at, id, told),
            Some("busy") => {
                let busy = self.session(id, at).is_busy(at);
                busy.into_iter().for_each(|busy| told.push(id, busy));
            }
            Some("retry" | "offline") => self.offline(at, id, status.message.as_deref(), told),
            _ => {}
        }
    }

    /// The model cannot be reached for now.
    fn offline(&mut self, at: Timestamp, id: &Arc<str>, said: Option<&str>, told: &mut Told) {
        self.session(id, at).go_on();
        let message = said.map(|said| brief(said, 200));
        told.push(id, Fact::LlmRetrying { message });
    }

    pub(super) fn idle(&mut self, at: Timestamp, id: &Arc<str>, told: &mut Told) {
        let session = self.session(id, at);
        let is_subagent = session.parent.is_some();
        let ended = session.end(at);
        told.push(id, ended);
        if is_subagent {
            told.push(id, Fact::SubagentEnded);
        }
    }

    fn turn_closed(&mut self, at: Timestamp, id: &Arc<str>, reason: Option<&str>, told: &mut Told) {
        match reason {
            Some("interrupted") if self.session(id, at).busy => {
                self.session(id, at).close(at);
                told.push(id, Fact::Interrupted);
            }
            // Of a turn that is over the abort itself has told, mostly.
            Some("interrupted") => {
                let aborted = self.session(id, at).was_aborted();
                aborted.into_iter().for_each(|fact| told.push(id, fact));
            }
            Some("error") if self.session(id, at).busy => {
                self.session(id, at).close(at);
                let failure = Failure { kind: FailureKind::Other, message: None, resets_at: None };
                told.push(id, Fact::TurnFailed { failure });
            }
            Some("completed") => self.idle(at, id, told),
            _ => {}
        }
    }

    pub(super) fn failed(
        &mut self,
        at: Timestamp,
        id: &Arc<str>,
        error: &wire::Failure,
        told: &mut Told,
    ) {
        self.session(id, at).close(at);
        told.push(id, ending(error));
    }
}

/// `message.updated.1` → `message.updated`.
fn unversioned(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((plain, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => plain,
        _ => name,
    }
}

/// The session an event is about; older events have it only inside.
fn owner(properties: &Properties) -> Option<&str> {
    let info = properties.info.as_ref();
    let inside = info.and_then(|info| match info.role {
        Some(_) => info.session_id.as_deref(),
        None => info.session_id.as_deref().or(info.id.as_deref()),
    });
    properties.session_id.as_deref().or(inside).filter(|id| !id.is_empty())
}

/// The server's own title, until the first prompt has given a better one.
fn is_made_up(title: &str) -> bool {
    title.is_empty() || title.starts_with("New session") || title.starts_with("Child session")
}

/// How a turn ended that ended with an error.
fn ending(error: &wire::Failure) -> Fact {
    let data = error.data.as_ref();
    let status = data.and_then(|data| data.status_code);
    let kind = match (error.name.as_deref(), status) {
        (Some("MessageAbortedError"), _) => return Fact::Interrupted,
        (Some("ProviderAuthError"), _) | (_, Some(401 | 403)) => FailureKind::Auth,
        (_, Some(402 | 429)) => FailureKind::UsageLimit,
        (_, Some(408 | 500..)) => FailureKind::Server,
        _ => FailureKind::Other,
    };
    let message = data.and_then(|data| data.message.as_deref()).or(error.name.as_deref());
    let message = message.map(|message| brief(message, 2_000));
    Fact::TurnFailed { failure: Failure { kind, message, resets_at: None } }
}
