//! What a thread asks for: opening, confirming and closing its requests.

use std::sync::Arc;

use qd_session::id::{CallId, RequestId};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Stage};
use serde_json::Value;

use super::call::Call;
use super::mark::Mark;
use super::request::{FLAG_GRACE_MS, Kind, Request};
use super::thread::Thread;
use super::turn::Flag;

/// How long after an interrupt the status may still say `active` about the turn it ended.
const ABORT_ECHO_MS: u64 = 300;

impl Thread {
    /// A request's name in its session. Call ids of subagents are their own.
    pub fn request_id(&self, name: &str) -> RequestId {
        match self.agent.is_main() {
            true => RequestId::new(name),
            false => RequestId::new(format!("{}/{name}", self.id)),
        }
    }

    /// Opens a request, or adds to one that is open. What waits for a person goes on waiting.
    pub fn ask(&mut self, turn: Option<&str>, mut new: Request) {
        let call_is_over = new.ask.call.as_ref().is_some_and(|call| self.calls.has_ended(call));
        // Whoever looked into it was told before it was answered, and tells it after that.
        let is_answered = new.rpc.is_some() && new.mark.at < self.unflagged_at(new.kind);
        if call_is_over || is_answered || !self.at_work(new.mark, turn) {
            return;
        }
        let flagged = match new.kind {
            Kind::Approval => self.approval_flag.take().is_some(),
            Kind::Question => self.input_flag.take().is_some(),
        };
        if new.rpc.is_some() {
            self.resolve_hints_of_scripts(new.mark, new.ask.call.as_ref());
        }
        let kind = new.kind;
        let made_up = self.requests.take_all(|known| known.made_up && known.kind == kind);
        if !made_up.is_empty() {
            self.resolve_all(new.mark, made_up);
            new.stage = Stage::Waiting;
        }
        if flagged {
            new.stage = Stage::Waiting;
        }
        if let Some(known) = self.requests.get(&new.id) {
            new.stage = new.stage.max(known.stage);
            new.rpc = new.rpc.or_else(|| known.rpc.clone());
            new.due = [new.due, known.due].into_iter().flatten().min();
        }
        if new.stage == Stage::Waiting {
            new.due = None;
        }
        self.tell_asked(&new);
        self.requests.put(new);
    }

    /// A script's own call was only hinted at; now it is known what it asks for.
    pub fn resolve_hints_of_scripts(&mut self, mark: Mark, asked: Option<&CallId>) {
        for script in self.calls.open_scripts() {
            if asked != Some(&script) {
                self.resolve_call(mark, &script);
            }
        }
    }

    /// A question says so only when a person is to answer; a permission shows its review.
    fn tell_asked(&mut self, request: &Request) {
        let Request { id, ask, stage, mark, .. } = request.clone();
        match (request.kind, stage) {
            (Kind::Approval, stage) => {
                self.tell(mark, Fact::ApprovalRequested { request: id, stage, ask });
            }
            (Kind::Question, Stage::Waiting) => {
                self.tell(mark, Fact::QuestionAsked { request: id, ask });
            }
            (Kind::Question, Stage::UnderReview) => {}
        }
    }

    /// A person is needed for it. Stamped with the time it was asked, so that an answer which is
    /// already on its way closes it.
    pub fn needs_person(&mut self, id: &RequestId) {
        if let Some(request) = self.requests.get_mut(id) {
            request.stage = Stage::Waiting;
            request.due = None;
            let request = request.clone();
            self.tell_asked(&request);
        }
    }

    pub fn resolve(&mut self, mark: Mark, id: &RequestId) {
        if let Some(request) = self.requests.take(id) {
            self.tell_resolved(mark, &request);
        }
    }

    pub fn resolve_call(&mut self, mark: Mark, call: &CallId) {
        if let Some(request) = self.requests.of_call(call) {
            let id = request.id.clone();
            self.resolve(mark, &id);
        }
    }

    pub fn resolve_rpc(&mut self, mark: Mark, rpc: &Value) {
        self.requests.settle(mark, |request| request.rpc.as_ref() == Some(rpc));
    }

    pub fn resolve_all(&mut self, mark: Mark, requests: Vec<Request>) {
        requests.iter().for_each(|request| self.tell_resolved(mark, request));
    }

    pub fn tell_resolved(&mut self, mark: Mark, request: &Request) {
        let id = request.id.clone();
        let fact = match request.kind {
            Kind::Approval => Fact::ApprovalResolved { request: id },
            Kind::Question => Fact::QuestionAnswered { request: id },
        };
        self.tell(mark, fact);
    }

    /// The status says what the thread waits for, as far as it knows: not for which call.
    pub fn waits(&mut self, mark: Mark, approval: bool, input: bool) {
        if !self.turn.open {
            if !approval && !input && self.was_just_aborted(mark) {
                return;
            }
            self.begin_turn(mark.before(), None);
        }
        self.flag(mark, Kind::Approval, approval);
        self.flag(mark, Kind::Question, input);
        if !approval && !input {
            self.llm(mark, None);
        }
    }

    /// A turn that was interrupted at a dialog is active once more before it is idle. A new turn
    /// names itself.
    fn was_just_aborted(&self, mark: Mark) -> bool {
        self.aborted_at == self.closed_at && mark.at.ms_since(self.closed_at) <= ABORT_ECHO_MS
    }

    fn flag(&mut self, mark: Mark, kind: Kind, set: bool) {
        if !set {
            let unflagged = match kind {
                Kind::Approval => &mut self.no_approval_at,
                Kind::Question => &mut self.no_input_at,
            };
            *unflagged = mark.at.max(*unflagged);
            // An answer about the time before may come after the flag.
            self.flag_of(kind).take_if(|flag| flag.mark.at <= mark.at);
            return self.requests.settle(mark, |request| {
                request.kind == kind
                    && request.stage == Stage::Waiting
                    && request.mark.at <= mark.at
            });
        }
        self.at_work(mark, None);
        // The next one is asked, so the turn goes on.
        let answered = self.requests.take_all(|request| request.settled.is_some());
        self.resolve_all(mark, answered);
        if self.requests.waiting(kind) {
            return;
        }
        match self.requests.under_review(kind) {
            Some(request) => {
                let id = request.id.clone();
                self.needs_person(&id);
            }
            None => {
                let due = mark.due(FLAG_GRACE_MS);
                *self.flag_of(kind) = Some(Flag { due, mark });
            }
        }
    }

    /// When the status last said that nobody is asked such a thing.
    fn unflagged_at(&self, kind: Kind) -> Timestamp {
        match kind {
            Kind::Approval => self.no_approval_at,
            Kind::Question => self.no_input_at,
        }
    }

    fn flag_of(&mut self, kind: Kind) -> &mut Option<Flag> {
        match kind {
            Kind::Approval => &mut self.approval_flag,
            Kind::Question => &mut self.input_flag,
        }
    }

    /// The request never came: the flag stands for it.
    fn make_up(&mut self, kind: Kind) {
        let Some(Flag { mark, .. }) = self.flag_of(kind).take() else { return };
        let name = match kind {
            Kind::Approval => "waiting-on-approval",
            Kind::Question => "waiting-on-user-input",
        };
        let request = Request {
            id: self.request_id(name),
            kind,
            stage: Stage::Waiting,
            mark,
            due: None,
            ask: Ask { text: Some(Arc::from("Answer in the terminal")), ..Ask::default() },
            command: None,
            made_up: true,
            settled: None,
            rpc: None,
        };
        self.tell_asked(&request);
        self.requests.put(request);
    }

    /// A permission asked before its call was known by id gets the call's name.
    pub fn adopt_request(&mut self, call: &Call) {
        let Some(command) = call.command.as_deref() else { return };
        let nameless = self.requests.take_all(|request| {
            request.ask.call.is_none()
                && request.kind == Kind::Approval
                && request.command.as_deref().is_some_and(|c| c.trim_end() == command.trim_end())
        });
        for old in nameless {
            self.tell_resolved(old.mark, &old);
            let id = self.request_id(call.id.as_str());
            let ask = Ask { call: Some(call.id.clone()), ..old.ask };
            let new = Request { id, ask, mark: old.mark.then(), ..old };
            self.tell_asked(&new);
            self.requests.put(new);
        }
    }

    pub fn next_timeout(&self) -> Option<Timestamp> {
        let flags = [&self.approval_flag, &self.input_flag];
        let flags = flags.into_iter().filter_map(|flag| flag.map(|flag| flag.due));
        let ending = self.ending.as_ref().map(|ending| ending.due);
        self.requests.next_due().into_iter().chain(flags).chain(ending).min()
    }

    pub fn handle_timeout(&mut self, now: Timestamp) {
        for id in self.requests.due(now) {
            match self.requests.get(&id).and_then(|request| request.settled) {
                Some(mark) => self.resolve(mark, &id),
                None => self.needs_person(&id),
            }
        }
        for kind in [Kind::Approval, Kind::Question] {
            if self.flag_of(kind).is_some_and(|flag| flag.due <= now) {
                self.make_up(kind);
            }
        }
        if let Some(ending) = self.ending.take_if(|ending| ending.due <= now) {
            self.complete(ending);
        }
    }
}
