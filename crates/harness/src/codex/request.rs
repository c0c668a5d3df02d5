//! What a thread waits for, and how sure we are that it waits for a person.
//!
//! The permission hook fires also when nobody will be asked, and a rollout only hints. Such a
//! request is under review; it becomes a person's business when the app-server says so, or when
//! nothing follows for a while.

use qd_session::id::{CallId, RequestId};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Stage};
use serde_json::Value;

use super::mark::Mark;

/// Silence after a permission hook that means a person is asked. What needs nobody is decided
/// within 15 ms of it, but the hooks themselves may take a while.
pub const HOOK_SILENCE_MS: u64 = 400;

/// The same where the app-server watches the thread: its flag tells, so silence says nothing.
/// Only if the flag was lost does the hook speak for itself.
pub const HOOK_SILENCE_WATCHED_MS: u64 = 10_000;

/// Silence after a call that asked to leave the sandbox, in a rollout and nowhere else. What
/// needed nobody was over 360 ms after the call, all hooks included; a person is slower.
pub const HINT_SILENCE_MS: u64 = 600;

/// The same where hooks report the turn: the permission hook would have spoken. Longer than the
/// slowest hook that was ever seen to decide (1.8 s).
pub const HINT_SILENCE_HOOKED_MS: u64 = 2_000;

/// Silence after a question outside plan mode, where Codex refuses to ask it.
pub const QUESTION_SILENCE_MS: u64 = 300;

/// How long an answer is held back: after Esc at the dialog the turn ended within 50 ms of it.
pub const SETTLED_HOLD_MS: u64 = 300;

/// A flag without its request: how long the request may take to follow.
pub const FLAG_GRACE_MS: u64 = 100;

/// In hook-only sight a new call so long after a request means that it was refused: parallel
/// calls of one response come closer together.
pub const REFUSED_AFTER_MS: u64 = 5_000;

/// Most requests a thread may have open. Parallel calls ask one by one.
const REQUESTS_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Approval,
    Question,
}

#[derive(Debug, Clone)]
pub struct Request {
    pub id: RequestId,
    pub kind: Kind,
    pub stage: Stage,
    pub mark: Mark,
    /// When silence makes it a person's business, or what is settled is told.
    pub due: Option<Timestamp>,
    /// The server says that nobody is asked any more. Held back for a moment: a turn that was
    /// interrupted at the dialog is active once more before it is idle, and must not look like
    /// work.
    pub settled: Option<Mark>,
    pub ask: Ask,
    pub command: Option<String>,
    /// Made up for a flag that came without its request.
    pub made_up: bool,
    /// The server's own number, which an answer repeats.
    pub rpc: Option<Value>,
}

#[derive(Debug, Default)]
pub struct Requests(Vec<Request>);

impl Requests {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn get(&self, id: &RequestId) -> Option<&Request> {
        self.0.iter().find(|request| request.id == *id)
    }

    pub fn get_mut(&mut self, id: &RequestId) -> Option<&mut Request> {
        self.0.iter_mut().find(|request| request.id == *id)
    }

    pub fn put(&mut self, new: Request) {
        if let Some(known) = self.get_mut(&new.id) {
            *known = new;
            return;
        }
        if self.0.len() == REQUESTS_MAX {
            self.0.remove(0);
        }
        self.0.push(new);
    }

    pub fn take(&mut self, id: &RequestId) -> Option<Request> {
        let at = self.0.iter().position(|request| request.id == *id)?;
        Some(self.0.remove(at))
    }

    /// Takes every request that the test says yes to.
    pub fn take_all(&mut self, mut test: impl FnMut(&Request) -> bool) -> Vec<Request> {
        let (taken, kept) = std::mem::take(&mut self.0).into_iter().partition(|r| test(r));
        self.0 = kept;
        taken
    }

    pub fn of_call(&self, call: &CallId) -> Option<&Request> {
        self.0.iter().find(|request| request.ask.call.as_ref() == Some(call))
    }

    pub fn waiting(&self, kind: Kind) -> bool {
        let waits =
            |request: &Request| request.stage == Stage::Waiting && request.settled.is_none();
        self.0.iter().any(|request| request.kind == kind && waits(request))
    }

    /// What is settled is told no earlier than this. True if there is such a request.
    pub fn hold_settled(&mut self, until: Timestamp) -> bool {
        let mut settled = self.0.iter_mut().filter(|request| request.settled.is_some()).peekable();
        let any = settled.peek().is_some();
        settled.for_each(|request| request.due = Some(until));
        any
    }

    /// Marks what a person is asked as answered: told after a moment, unless the turn ends first.
    pub fn settle(&mut self, mark: Mark, mut test: impl FnMut(&Request) -> bool) {
        for request in self.0.iter_mut().filter(|request| test(request)) {
            request.settled.get_or_insert(mark);
            request.due = Some(mark.due(SETTLED_HOLD_MS));
        }
    }

    /// The newest that is still under review.
    pub fn under_review(&self, kind: Kind) -> Option<&Request> {
        self.0
            .iter()
            .filter(|request| request.kind == kind && request.stage == Stage::UnderReview)
            .max_by_key(|request| request.mark.at)
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(|request| request.due).min()
    }

    pub fn due(&self, now: Timestamp) -> Vec<RequestId> {
        let due = self.0.iter().filter(|request| request.due.is_some_and(|due| due <= now));
        due.map(|request| request.id.clone()).collect()
    }
}
