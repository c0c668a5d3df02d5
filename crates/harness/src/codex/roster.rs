//! Who is who: sessions, subagents of sessions, and threads that Codex hides.
//!
//! Titles, guardians and reviews are threads like any other on the wire. What a thread is may be
//! heard after what it does, so strangers wait a moment in the [`super::hold`].

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use serde_json::Value;

use super::thread::Thread;
use super::wire;

/// Most threads remembered. A person runs tens; the one unheard of for the longest time goes.
const THREADS_MAX: usize = 512;

/// Prompts that only Codex itself writes, by their beginning.
const HIDDEN_PROMPTS: [&str; 2] = [
    "Generate a concise, single-line task title",
    "The following is the Codex agent history whose request action you are assessing",
];

/// What Codex calls the threads it starts for itself.
const HIDDEN_SOURCES: [&str; 3] = ["thread_title", "guardian_review", "memory_consolidation"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    Session,
    Subagent { session: Arc<str> },
    Hidden,
}

#[derive(Debug, Default)]
pub struct Roster {
    threads: BTreeMap<Arc<str>, Known>,
}

#[derive(Debug)]
struct Known {
    role: Role,
    /// Nobody has said so; it was seen working and nothing spoke against it.
    assumed: bool,
    used_at: Timestamp,
    thread: Thread,
}

impl Roster {
    pub fn knows(&self, id: &str) -> bool {
        self.threads.contains_key(id)
    }

    /// Somebody has said what it is.
    pub fn is_certain(&self, id: &str) -> bool {
        self.threads.get(id).is_some_and(|known| !known.assumed)
    }

    /// The thread, if it is one to be told about.
    pub fn thread(&mut self, now: Timestamp, id: &str) -> Option<&mut Thread> {
        let known = self.threads.get_mut(id)?;
        known.used_at = known.used_at.max(now);
        match known.role {
            Role::Session | Role::Subagent { .. } => Some(&mut known.thread),
            Role::Hidden => None,
        }
    }

    pub fn threads(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.threads.values_mut().map(|known| &mut known.thread)
    }

    pub fn peek(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values().map(|known| &known.thread)
    }

    /// The session whose turn this is.
    pub fn session_of_turn(&self, turn: &str) -> Option<Arc<str>> {
        let owner = self.threads.values().find(|known| known.thread.owns_turn(turn))?;
        Some(owner.thread.session.clone())
    }

    /// Somebody works, and may start threads of its own.
    pub fn anybody_works(&self, but: &str) -> bool {
        self.threads.values().any(|known| known.thread.turn.open && *known.thread.id != *but)
    }

    /// Learns what a thread is. True if that was news; the first to say so is believed, a mere
    /// assumption is corrected. A corrected one gives back the session that never was.
    pub fn introduce(&mut self, now: Timestamp, id: &str, role: Role) -> Introduced {
        self.learn(now, id, role, false)
    }

    pub fn assume(&mut self, now: Timestamp, id: &str, role: Role) -> Introduced {
        self.learn(now, id, role, true)
    }

    fn learn(&mut self, now: Timestamp, id: &str, role: Role, assumed: bool) -> Introduced {
        if let Some(known) = self.threads.get_mut(id) {
            if !known.assumed || assumed {
                return Introduced::Known;
            }
            known.assumed = false;
            if known.role == role {
                return Introduced::Known;
            }
            let was_shown = known.role == Role::Session;
            known.role = role;
            known.assign();
            return if was_shown { Introduced::Corrected } else { Introduced::New };
        }
        if self.threads.len() == THREADS_MAX {
            let stale = self.threads.iter().min_by_key(|(_, known)| known.used_at);
            if let Some(stale) = stale.map(|(id, _)| id.clone()) {
                self.threads.remove(&stale);
            }
        }
        let id: Arc<str> = Arc::from(id);
        let mut known = Known { role, assumed, used_at: now, thread: Thread::new(id.clone()) };
        known.assign();
        self.threads.insert(id, known);
        Introduced::New
    }
}

impl Known {
    fn assign(&mut self) {
        let id = self.thread.id.clone();
        let (session, agent) = match &self.role {
            Role::Session | Role::Hidden => (id, AgentId::MAIN),
            Role::Subagent { session } => (session.clone(), AgentId::sub(id)),
        };
        self.thread.session = session;
        self.thread.agent = agent;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Introduced {
    Known,
    New,
    /// It had been shown as a session of its own.
    Corrected,
}

pub fn is_hidden_prompt(prompt: &str) -> bool {
    HIDDEN_PROMPTS.iter().any(|hidden| prompt.starts_with(hidden))
}

impl wire::SessionMeta {
    pub fn role(&self) -> Role {
        if self.attached_to_thread_id.is_some() {
            return Role::Hidden;
        }
        let session = self.session_id.as_deref().or(self.parent_thread_id.as_deref());
        role(
            self.id.as_deref(),
            session,
            self.parent_thread_id.as_deref(),
            self.source.as_ref(),
            self.thread_source.as_deref(),
        )
    }
}

impl wire::Thread {
    pub fn role(&self) -> Role {
        if self.ephemeral == Some(true) || self.attached_to_thread_id.is_some() {
            return Role::Hidden;
        }
        let id = self.id.as_deref();
        let session = self.session_id.as_deref().filter(|session| Some(*session) != id);
        let parent = self.parent_thread_id.as_deref();
        role(id, session.or(parent), parent, self.source.as_ref(), self.thread_source.as_deref())
    }
}

fn role(
    id: Option<&str>,
    session: Option<&str>,
    parent: Option<&str>,
    source: Option<&Value>,
    thread_source: Option<&str>,
) -> Role {
    if thread_source.is_some_and(|source| HIDDEN_SOURCES.contains(&source)) {
        return Role::Hidden;
    }
    let subagent = source.and_then(|source| source.get("subagent"));
    let spawned = subagent.is_some_and(|subagent| subagent.get("thread_spawn").is_some())
        || (subagent.is_none() && thread_source == Some("subagent"));
    match session.filter(|session| Some(*session) != id).or(parent) {
        Some(session) if spawned => Role::Subagent { session: Arc::from(session) },
        // Reviews and guardians work in somebody's name, and their answers go there.
        _ if subagent.is_some() => Role::Hidden,
        Some(session) if parent.is_some() => Role::Subagent { session: Arc::from(session) },
        Some(_) | None => Role::Session,
    }
}
