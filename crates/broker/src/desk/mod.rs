//! The desk: what agents wait for, who may answer by which way, and what was answered.
//!
//! Pure. It owns the book of decisions and knows which forwarders wait; the broker tells it what
//! each session's signals say, the runtime carries what it hands out and says what became of it.
//! Invariant: what is carried is on record first ([`Errand`] follows its record), a request closes
//! only by its agent's own signals, and whoever waited for it is let go at once.

mod capabilities;
mod errand;
mod fitting;
mod judging;
mod scope;
mod sending_again;

use std::collections::{BTreeMap, BTreeSet};

use qd_harness::waiting_hook::{Asked, Wants};
use qd_harness::{Harness, codex, may_be_cut};
use qd_hook_wire::{FrameId, HookReply};
use qd_session::Session;
use qd_session::decision::{
    Body, Book, By, Command, Decided, Decision, Given, Hash, Link, Offer, Order, Record, Refused,
    Scope, Shown, Standing, Subject,
};
use qd_session::id::{
    AgentId, DecisionId, IdempotencyKey, RequestId, RequestKey, RuleName, SessionId, Way,
};
use qd_session::machine::ToolCall;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Open, RequestKind};

pub use self::capabilities::{Capabilities, Reach};
pub use self::errand::{Answerer, Carried, Errand, Expecting, Task};
use self::fitting::misfit;
pub use self::judging::{Case, Rules};
use self::sending_again::Doubt;
use crate::driven_answer::answer_events;

/// Who answers, and what.
#[derive(Debug, Clone, PartialEq)]
pub struct Answering {
    pub decision: DecisionId,
    pub request: RequestKey,
    pub by: By,
    /// The rule that answers, if no person does.
    pub rule: Option<RuleName>,
    pub answer: Decision,
    /// The version of the request that was shown; none where nobody was shown any.
    pub revision: Option<String>,
    pub key: Option<IdempotencyKey>,
}

/// Who commands, and what.
#[derive(Debug, Clone, PartialEq)]
pub struct Commanding {
    pub decision: DecisionId,
    pub session: SessionId,
    pub by: By,
    pub command: Command,
    pub key: Option<IdempotencyKey>,
}

/// Why an answer or a command was not taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Declined {
    Book(Refused),
    /// The request asks for something else now than what the answer was given to.
    Replaced,
    /// The request has asked for several things, and the answer does not say for which it is.
    RevisionNeeded,
    /// It cannot be done with this session, or by the way there is: a sentence for the operator.
    Impossible {
        why: String,
    },
    /// A file of its project forbids it.
    Forbidden {
        why: String,
    },
}

/// What was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    pub decision: DecisionId,
    pub standing: Standing,
}

#[derive(Debug, Default)]
pub struct Desk {
    book: Book,
    open: BTreeMap<RequestKey, Waits>,
    /// The key that a request has while it is open.
    keys: BTreeMap<(SessionId, RequestId), RequestKey>,
    /// Forwarders that wait for the next prompt of their session.
    prompters: BTreeMap<SessionId, FrameId>,
    posts: BTreeMap<FrameId, Post>,
    /// Forwarders that keep their agent from asking elsewhere, and until when they may.
    holds: BTreeSet<(Timestamp, FrameId)>,
    /// Those of them that hide a dialog from whoever sits in front of their agent.
    hiding: BTreeMap<FrameId, Timestamp>,
    /// Answers that may have arrived or not.
    doubts: BTreeMap<DecisionId, Doubt>,
}

/// An open request.
#[derive(Debug)]
struct Waits {
    session: SessionId,
    harness: Harness,
    request: RequestId,
    agent: AgentId,
    /// As whole as the agent's signals had it.
    ask: Ask,
    shown: Shown,
    /// Changes with what is asked for.
    revision: String,
    /// It asked for something else before: who answers without its revision may have read that.
    was_replaced: bool,
    /// The forwarder that stays for its answer.
    hook: Option<(FrameId, Asked)>,
    /// The last answer that did not arrive.
    failed: Option<DecisionId>,
    opened_at: Timestamp,
    judged: Judged,
    /// Its agent asked nobody: a hook only wants to know whether a rule forbids it.
    is_unasked: bool,
    /// Its server was asked what it is.
    is_looked_into: bool,
}

/// How far the policy is with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    NotYet,
    /// The files around its folder are being read.
    Soon,
    Done,
}

/// What a forwarder waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Post {
    Request(RequestKey),
    Prompt(SessionId),
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum DeskOutput {
    Record(Box<Record>),
    /// Once its record is on disk.
    Carry(Box<Errand>),
    /// Nobody needs this forwarder any more.
    Release(FrameId),
}

impl Desk {
    /// Takes a record of the past in.
    pub fn recall(&mut self, record: &Record) {
        self.book.apply(record);
    }

    /// All of the past was taken in; this is the chain's end.
    pub fn follow(&mut self, last: Link) {
        self.book.follow(last);
    }

    /// What a session waits for has perhaps changed.
    pub fn look(
        &mut self,
        now: Timestamp,
        harness: Harness,
        session: &Session,
        outputs: &mut Vec<DeskOutput>,
    ) {
        let id = session.id();
        let opens: Vec<(RequestKey, Open<'_>)> =
            session.open_requests().into_iter().map(|open| (session.key_of(&open), open)).collect();
        let range = (id.clone(), RequestId::new(""))..;
        let known = self.keys.range(range).take_while(|((owner, _), _)| owner == id);
        let gone: Vec<(RequestId, RequestKey)> = known
            .filter(|(_, key)| opens.iter().all(|(open, _)| open != *key))
            .map(|((_, request), key)| (request.clone(), key.clone()))
            .collect();
        for (request, key) in gone {
            self.keys.remove(&(id.clone(), request));
            let Some(waits) = self.open.remove(&key) else { continue };
            outputs.extend(self.book.closed(now, &key).into_iter().map(recorded));
            if let Some((frame, _)) = waits.hook {
                self.release(frame, outputs);
            }
        }
        for (key, open) in &opens {
            self.note_open(now, id, harness, key, open);
        }
    }

    fn note_open(
        &mut self,
        now: Timestamp,
        session: &SessionId,
        harness: Harness,
        key: &RequestKey,
        open: &Open<'_>,
    ) {
        let name = (session.clone(), open.id.clone());
        let ask = open.ask;
        let shown = || {
            let (text, input) = (ask.text.as_deref(), ask.input.as_deref());
            Shown::new(open.kind, ask.tool.clone(), text, input)
        };
        if self.keys.contains_key(&name) {
            if let Some(waits) = self.open.get_mut(key)
                && (waits.shown.kind, &waits.ask) != (open.kind, ask)
            {
                waits.was_replaced |= is_replaced(&waits.ask, ask);
                (waits.ask, waits.shown) = (ask.clone(), shown());
                waits.revision = revision_of(open.kind, ask);
            }
            return;
        }
        if !self.book.opened(key) {
            return;
        }
        let waits = Waits {
            session: session.clone(),
            harness,
            request: open.id.clone(),
            agent: open.agent.clone(),
            ask: ask.clone(),
            shown: shown(),
            revision: revision_of(open.kind, ask),
            was_replaced: open.asked_before.iter().any(|before| {
                before.call.as_ref().zip(ask.call.as_ref()).is_some_and(|(one, other)| one != other)
            }),
            hook: None,
            failed: None,
            opened_at: now,
            judged: Judged::NotYet,
            is_unasked: false,
            is_looked_into: false,
        };
        self.keys.insert(name, key.clone());
        self.open.insert(key.clone(), waits);
    }

    /// Whose requests of a session are known by nothing but that somebody is asked, and were not
    /// told here before.
    pub fn take_unknown(&mut self, session: &SessionId) -> BTreeSet<AgentId> {
        let mut agents = BTreeSet::new();
        for key in self.keys_of(session) {
            let Some(waits) = self.open.get_mut(&key) else { continue };
            // Of a script it is known what it may ask for, and not what it asks for now.
            let is_script = waits.tool() == Some(codex::SCRIPT_TOOL);
            let is_known = waits.ask.call.is_some()
                || waits.shown.tool.is_some()
                || waits.shown.kind == RequestKind::Plan;
            if (is_script || !is_known) && !std::mem::replace(&mut waits.is_looked_into, true) {
                agents.insert(waits.agent.clone());
            }
        }
        agents
    }

    /// A forwarder stays. It is let go at once where nothing is open that it could wait for.
    pub fn arrived(
        &mut self,
        frame: FrameId,
        session: &SessionId,
        wants: Wants,
        outputs: &mut Vec<DeskOutput>,
    ) {
        match wants {
            Wants::Prompt => {
                let before = self.prompters.insert(session.clone(), frame);
                self.posts.insert(frame, Post::Prompt(session.clone()));
                if let Some(before) = before.filter(|before| *before != frame) {
                    self.release(before, outputs);
                }
            }
            Wants::Answer(asked) | Wants::Verdict(asked) => {
                let Some(key) = self.request_of(frame, session, &asked) else {
                    outputs.push(DeskOutput::Release(frame));
                    return;
                };
                self.posts.insert(frame, Post::Request(key.clone()));
                let Some(waits) = self.open.get_mut(&key) else { return };
                waits.hook = Some((frame, asked));
                self.take_up(&key, outputs);
            }
        }
    }

    /// There is a better way to a session than its hooks, which keep it from asking elsewhere.
    pub fn release_hooks(
        &mut self,
        now: Timestamp,
        session: &SessionId,
        outputs: &mut Vec<DeskOutput>,
    ) {
        for key in self.keys_of(session) {
            let hook = self.open.get(&key).and_then(|waits| waits.hook.as_ref());
            // One that is being answered goes with its answer.
            if let Some((frame, _)) = hook.filter(|_| self.book.answer_to(&key).is_none()) {
                self.dismiss(now, *frame, outputs);
            }
        }
    }

    /// A forwarder may stay until then, because its agent asks nobody else meanwhile.
    pub fn hold_until(&mut self, until: Timestamp, frame: FrameId) {
        self.holds.insert((until, frame));
    }

    /// The same for one that hides a dialog: it goes earlier if nobody looks at its card.
    pub fn hide_dialog_until(&mut self, until: Timestamp, frame: FrameId) {
        self.hold_until(until, frame);
        self.hiding.insert(frame, until);
    }

    /// Lets those go that hide a dialog of these sessions, but for those that are being answered.
    /// The sessions of which one went.
    pub fn show_dialogs(
        &mut self,
        now: Timestamp,
        of: impl Fn(&SessionId) -> bool,
        outputs: &mut Vec<DeskOutput>,
    ) -> Vec<SessionId> {
        let is_wanted = |frame: &&FrameId| match self.posts.get(frame) {
            Some(Post::Request(key)) => {
                let session = self.open.get(key).map(|waits| &waits.session);
                session.is_some_and(&of) && self.book.answer_to(key).is_none()
            }
            Some(Post::Prompt(_)) | None => false,
        };
        let frames: Vec<FrameId> = self.hiding.keys().filter(is_wanted).copied().collect();
        let mut sessions = Vec::new();
        for frame in frames {
            sessions.extend(self.left(now, frame));
            outputs.push(DeskOutput::Release(frame));
        }
        sessions
    }

    /// The clock was set back by so much: nobody stays longer for it.
    pub fn set_back(&mut self, by_ms: u64) {
        let holds = std::mem::take(&mut self.holds).into_iter();
        self.holds = holds.map(|(until, frame)| (until.minus_ms(by_ms), frame)).collect();
        self.hiding.values_mut().for_each(|until| *until = until.minus_ms(by_ms));
        self.doubts.values_mut().for_each(|doubt| doubt.set_back(by_ms));
        for waits in self.open.values_mut() {
            waits.opened_at = waits.opened_at.minus_ms(by_ms);
        }
    }

    /// When the next one has stayed for long enough.
    pub fn next_release(&self) -> Option<Timestamp> {
        self.holds.first().map(|(until, _)| *until)
    }

    /// Lets those go that have stayed for long enough. Their sessions.
    pub fn release_due(&mut self, now: Timestamp, outputs: &mut Vec<DeskOutput>) -> Vec<SessionId> {
        let mut sessions = Vec::new();
        while let Some((until, frame)) = self.holds.first().copied().filter(|(at, _)| *at <= now) {
            self.holds.remove(&(until, frame));
            // One that was answered or has gone is not there any more.
            if let Some(session) = self.left(now, frame) {
                outputs.push(DeskOutput::Release(frame));
                sessions.push(session);
            }
        }
        sessions
    }

    /// The open request that a forwarder asked: its own tool and input, of its own agent where
    /// several ask the same, and not one that another forwarder waits for.
    fn request_of(&self, frame: FrameId, session: &SessionId, asked: &Asked) -> Option<RequestKey> {
        let of_session = self.open.iter().filter(|(_, waits)| waits.session == *session);
        let same = of_session.filter(|(_, waits)| {
            let shown = &waits.shown;
            let input = asked.input.as_ref();
            let same_input = match &shown.input_hash {
                Some(hash) => *hash == Hash::of(input),
                None => shown.input.as_deref() == Some(input),
            };
            let free = waits.hook.as_ref().is_none_or(|(other, _)| *other == frame);
            free && same_input && shown.tool.as_ref() == Some(&asked.tool)
        });
        let is_another = |(_, waits): &(&RequestKey, &Waits)| waits.agent != asked.agent;
        same.min_by_key(is_another).map(|(key, _)| key.clone())
    }

    /// A forwarder that waited here before waits again.
    pub fn came_back(&mut self, frame: FrameId, outputs: &mut Vec<DeskOutput>) {
        if let Some(Post::Request(key)) = self.posts.get(&frame).cloned() {
            self.take_up(&key, outputs);
        }
    }

    /// An answer that was given before a restart, and whose forwarder has come back for it.
    fn take_up(&mut self, key: &RequestKey, outputs: &mut Vec<DeskOutput>) {
        let Some(decided) = self.book.answer_to(key) else { return };
        let Subject::Answer(offer) = &decided.subject else { return };
        let decision = offer.decision.clone();
        let task = |waits| task_of(waits, &offer.answer, offer.rule.as_ref(), Reach::Nowhere);
        let Some(task) = self.open.get(key).and_then(task) else { return };
        if self.book.sent_again(&decision) {
            // Who has acted on it does not come back.
            self.doubts.remove(&decision);
            outputs.push(DeskOutput::Carry(Box::new(Errand { decision, task })));
        }
    }

    /// The forwarder has gone by itself. The session that it waited for.
    pub fn left(&mut self, now: Timestamp, frame: FrameId) -> Option<SessionId> {
        self.hiding.remove(&frame);
        match self.posts.remove(&frame)? {
            Post::Request(key) => {
                let waits = self.open.get_mut(&key)?;
                waits.hook.take_if(|(waiting, _)| *waiting == frame);
                let session = waits.session.clone();
                if waits.is_unasked {
                    self.open.remove(&key);
                    // It has no answer, so nothing is put on record.
                    self.book.closed(now, &key);
                }
                Some(session)
            }
            Post::Prompt(session) => {
                if self.prompters.get(&session) == Some(&frame) {
                    self.prompters.remove(&session);
                }
                Some(session)
            }
        }
    }

    /// A session got its next prompt, or ended: nobody needs to wait for one.
    pub fn prompted(&mut self, session: &SessionId, outputs: &mut Vec<DeskOutput>) {
        if let Some(frame) = self.prompters.remove(session) {
            self.release(frame, outputs);
        }
    }

    fn release(&mut self, frame: FrameId, outputs: &mut Vec<DeskOutput>) {
        self.hiding.remove(&frame);
        self.posts.remove(&frame);
        outputs.push(DeskOutput::Release(frame));
    }

    /// Answers a request, if there is a way for that answer and nobody was first.
    pub fn answer(
        &mut self,
        now: Timestamp,
        answering: Answering,
        reach: Reach,
        outputs: &mut Vec<DeskOutput>,
    ) -> Result<Taken, Declined> {
        let Answering { decision, request, by, rule, answer, revision, key } = answering;
        let waits = self.open.get(&request);
        let (session, shown, task) = match waits {
            Some(waits) => {
                let task = task_of(waits, &answer, rule.as_ref(), reach);
                (waits.session.clone(), waits.shown.clone(), task)
            }
            // The book says what it was, if it knows.
            None => {
                (SessionId::new(""), Shown::new(RequestKind::Permission, None, None, None), None)
            }
        };
        let is_answered = self.book.answer_to(&request).is_some();
        if let Some(waits) = waits.filter(|_| !is_answered) {
            match &revision {
                Some(shown) if *shown != waits.revision => return Err(Declined::Replaced),
                None if waits.was_replaced && is_assent(&answer) => {
                    return Err(Declined::RevisionNeeded);
                }
                Some(_) | None => {}
            }
            if rule.is_none() && is_assent(&answer) && waits.is_cut() {
                return Err(Declined::Impossible { why: CUT.to_owned() });
            }
            let why = match waits.way(reach) {
                Some(way) => misfit(waits, way, &answer).or_else(|| waits.too_far(&answer, reach)),
                None => Some(waits.why_not(reach)),
            };
            let untold = || task.is_none().then(|| "that answer cannot be given this way".into());
            if let Some(why) = why.or_else(untold) {
                return Err(Declined::Impossible { why });
            }
        }
        let offer =
            Offer { decision: decision.clone(), request, session, by, rule, shown, answer, key };
        match self.book.give(now, offer) {
            Ok(Given::Fresh { record }) => {
                outputs.push(DeskOutput::Record(record));
                if let Some(task) = task {
                    let errand = Errand { decision: decision.clone(), task };
                    outputs.push(DeskOutput::Carry(Box::new(errand)));
                }
                Ok(Taken { decision, standing: Standing::InFlight })
            }
            Ok(Given::Repeated { first }) => Ok(taken(&first)),
            Err(refused) => Err(Declined::Book(refused)),
        }
    }

    /// Puts a command on record, to be carried out by this task.
    pub fn command(
        &mut self,
        now: Timestamp,
        commanding: Commanding,
        task: Task,
        outputs: &mut Vec<DeskOutput>,
    ) -> Result<Taken, Declined> {
        let Commanding { decision, session, by, command, key } = commanding;
        let order = Order { decision: decision.clone(), session, by, command, key };
        match self.book.command(now, order) {
            Ok(Given::Fresh { record }) => {
                outputs.push(DeskOutput::Record(record));
                let errand = Errand { decision: decision.clone(), task };
                outputs.push(DeskOutput::Carry(Box::new(errand)));
                Ok(Taken { decision, standing: Standing::InFlight })
            }
            Ok(Given::Repeated { first }) => Ok(taken(&first)),
            Err(refused) => Err(Declined::Book(refused)),
        }
    }

    /// What became of the command that the same caller has given under the same key.
    pub fn repeated(&self, commanding: &Commanding) -> Option<Taken> {
        let key = commanding.key.as_ref()?;
        self.book.first_of(&commanding.by, key).map(taken)
    }

    /// What became of an errand. The session that it was for.
    pub fn carried(
        &mut self,
        now: Timestamp,
        decision: &DecisionId,
        way: &Way,
        carried: &Carried,
        outputs: &mut Vec<DeskOutput>,
    ) -> Option<SessionId> {
        let records = match carried {
            Carried::Delivered | Carried::Switched { .. } => {
                self.book.delivered(now, decision, way.clone())
            }
            // This copy did not arrive; an earlier one may have.
            Carried::Failed { .. } if self.is_doubted(decision) => self.book.lost(now, decision),
            Carried::Failed { why } => self.book.failed(now, decision, why),
            Carried::Lost => self.book.lost(now, decision),
        };
        if self.standing(decision) == Some(&Standing::Unsettled) {
            self.doubt(now, decision);
        }
        self.forget_doubts();
        for record in &records {
            if let Body::Failed { .. } = record.body {
                let request = self.book.decision(decision).and_then(|one| one.subject.request());
                if let Some(waits) = request.and_then(|request| self.open.get_mut(request)) {
                    waits.failed = Some(decision.clone());
                }
            }
        }
        outputs.extend(records.into_iter().map(recorded));
        self.book.decision(decision).map(|decided| decided.subject.session().clone())
    }

    pub fn standing(&self, decision: &DecisionId) -> Option<&Standing> {
        self.book.decision(decision).map(|decided| &decided.standing)
    }

    /// The forwarder that waits for this session's next prompt.
    pub fn prompter(&self, session: &SessionId) -> Option<FrameId> {
        self.prompters.get(session).copied()
    }

    /// The session of a request, open or answered.
    pub fn session_of(&self, request: &RequestKey) -> Option<&SessionId> {
        let open = self.open.get(request).map(|waits| &waits.session);
        open.or_else(|| self.book.answer_to(request).map(|decided| decided.subject.session()))
    }

    /// The requests of a session that are open, the public id of each by the agent's.
    pub fn of_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> impl Iterator<Item = (&'a RequestKey, OpenRequest<'a>)> {
        let range = (session.clone(), RequestId::new(""))..;
        let known = self.keys.range(range).take_while(move |((owner, _), _)| owner == session);
        known.filter_map(|(_, key)| {
            let waits = self.open.get(key)?;
            let answer = self.book.answer_to(key);
            let failed = waits.failed.as_ref().filter(|_| answer.is_none());
            let failed = failed.and_then(|decision| self.book.decision(decision));
            let hidden_until = waits.hook.as_ref().and_then(|(frame, _)| self.hiding.get(frame));
            let hidden_until = hidden_until.copied();
            Some((key, OpenRequest { waits, answer: answer.or(failed), hidden_until }))
        })
    }
}

/// An open request, as the desk knows it.
#[derive(Debug)]
pub struct OpenRequest<'a> {
    waits: &'a Waits,
    /// The answer that stands, or the last one that did not arrive.
    pub answer: Option<&'a Decided>,
    /// Until then its agent shows no dialog of its own.
    pub hidden_until: Option<Timestamp>,
}

impl OpenRequest<'_> {
    pub fn request(&self) -> &RequestId {
        &self.waits.request
    }

    pub fn kind(&self) -> RequestKind {
        self.waits.shown.kind
    }

    pub fn way(&self, reach: Reach) -> Option<&'static str> {
        self.waits.way(reach)
    }

    /// A sentence, where there is no way.
    pub fn why_not(&self, reach: Reach) -> String {
        self.waits.why_not(reach)
    }

    /// What "always" would keep, in words.
    pub fn suggestions(&self, reach: Reach) -> Vec<String> {
        self.waits.suggestions(reach)
    }

    /// Which version of the request this is.
    pub fn revision(&self) -> &str {
        &self.waits.revision
    }

    /// Whether what is shown of it is less than what would run.
    pub fn is_cut(&self) -> bool {
        self.waits.is_cut()
    }

    /// Whether a denial may say why.
    pub fn takes_words(&self, reach: Reach) -> bool {
        self.waits.takes_words(reach)
    }

    /// Whether something else than what was asked for can be allowed.
    pub fn takes_changes(&self, reach: Reach) -> bool {
        let input = Some(serde_json::Value::Null);
        self.waits.takes(reach, &Decision::Allow { input, scope: Scope::Once })
    }

    /// How far beyond this once it can be allowed.
    pub fn scopes(&self, reach: Reach) -> Vec<Scope> {
        self.waits.scopes(reach)
    }

    /// Whether a hook stays for an answer that could end the session's turn: nobody has given it
    /// one yet, and it is not a subagent's.
    pub fn can_end_turn(&self) -> bool {
        let is_answered =
            self.answer.is_some_and(|answer| !matches!(answer.standing, Standing::Failed { .. }));
        self.waits.hook.is_some() && self.waits.agent.leads() && !is_answered
    }
}

/// An answer that lets something happen.
fn is_assent(answer: &Decision) -> bool {
    match answer {
        Decision::Allow { .. } | Decision::ApprovePlan { .. } => true,
        Decision::Deny { .. } | Decision::Answer { .. } | Decision::RejectPlan { .. } => false,
    }
}

const CUT: &str = "Only the beginning of it is known here, so it can't be allowed from here. \
    Allow it where the agent runs, or deny it.";

/// Whether something else is asked for than before. More about the same is no replacement.
fn is_replaced(before: &Ask, now: &Ask) -> bool {
    fn differ<T: PartialEq>(before: Option<&T>, now: Option<&T>) -> bool {
        before.zip(now).is_some_and(|(before, now)| before != now)
    }
    differ(before.tool.as_ref(), now.tool.as_ref())
        || differ(before.text.as_ref(), now.text.as_ref())
        || differ(read_input(before).as_ref(), read_input(now).as_ref())
}

/// As its agent meant it; two sources may spell one input differently.
fn read_input(ask: &Ask) -> Option<serde_json::Value> {
    let input = ask.input.as_deref().filter(|input| !is_part(input))?;
    Some(serde_json::from_str(input).unwrap_or_else(|_| input.into()))
}

fn revision_of(kind: RequestKind, ask: &Ask) -> String {
    let spelled = serde_json::json!([kind, ask.tool, ask.text, ask.input]).to_string();
    Hash::of(&spelled).to_string()[..REVISION_DIGITS].to_owned()
}

/// Far more versions than one request ever has.
const REVISION_DIGITS: usize = 16;

impl Waits {
    /// What is shown of it is less than what would run: a handler keeps the beginning of a long
    /// input, and of a far longer one the hook itself has not brought all.
    fn is_cut(&self) -> bool {
        self.hook.as_ref().is_some_and(|(_, asked)| asked.is_cut) || is_cut(&self.ask)
    }

    /// No rule may answer it. What is driven is answered as it was kept, so what was not kept
    /// whole may be such a request.
    fn needs_person(&self, reach: Reach) -> bool {
        self.harness == Harness::Codex
            && (codex::reply::needs_person(self.ask.input.as_deref())
                || reach == Reach::Driver && is_cut(&self.ask))
    }

    fn takes_words(&self, reach: Reach) -> bool {
        self.takes(reach, &Decision::Deny { message: Some(String::new()), interrupt: false })
    }

    fn takes(&self, reach: Reach, answer: &Decision) -> bool {
        self.way(reach).is_some_and(|way| misfit(self, way, answer).is_none())
    }

    fn way(&self, reach: Reach) -> Option<&'static str> {
        match (&self.hook, reach) {
            (_, Reach::Driver) => Some(DRIVER),
            (_, Reach::Recording) => match self.harness {
                // It would not be in earnest either.
                Harness::GeminiCli => None,
                Harness::ClaudeCode
                | Harness::Codex
                | Harness::KiloCode
                | Harness::Cline
                | Harness::Opencode
                | Harness::Acp
                | Harness::Native => Some(RECORDING),
            },
            (Some(_), Reach::Nowhere | Reach::Server) => Some(HOOK),
            (None, Reach::Server) => match self.harness {
                // Its daemon says to everybody that a thread waits, and what for only to those
                // who ask: the nested calls of a script stand in no file. Until it has said so
                // the operator was shown nothing, and nothing is answered here.
                Harness::Codex if self.ask.call.is_some() => Some(CODEX),
                // Codex takes its answer as the next prompt.
                Harness::Codex if self.shown.kind == RequestKind::Plan => Some(CODEX),
                Harness::Opencode | Harness::KiloCode => Some(OPENCODE),
                Harness::Codex
                | Harness::ClaudeCode
                | Harness::GeminiCli
                | Harness::Cline
                | Harness::Acp
                | Harness::Native => None,
            },
            (None, Reach::Nowhere) => None,
        }
    }

    fn why_not(&self, reach: Reach) -> String {
        match self.harness {
            Harness::Codex if reach == Reach::Server => {
                "Codex says that it waits, and not for what; answer it in its terminal".to_owned()
            }
            Harness::ClaudeCode | Harness::Codex => {
                "Can't be answered from here. Its dialog is in its terminal.".to_owned()
            }
            Harness::GeminiCli => "Gemini CLI takes no approval from outside".to_owned(),
            Harness::KiloCode | Harness::Cline | Harness::Opencode | Harness::Acp => {
                "its server is not in reach; answer it where it was started".to_owned()
            }
            Harness::Native => "it is ours, and nobody drives it now".to_owned(),
        }
    }
}

/// The names that records give the ways.
pub const HOOK: &str = "hook";
pub const CODEX: &str = "codex";
pub const OPENCODE: &str = "opencode";
pub const DRIVER: &str = "driver";
pub const RECORDING: &str = "recording";

/// How the answer would be carried; none where it cannot be.
fn task_of(
    waits: &Waits,
    answer: &Decision,
    rule: Option<&RuleName>,
    reach: Reach,
) -> Option<Task> {
    if waits.too_far(answer, reach).is_some() {
        return None;
    }
    match waits.way(reach)? {
        HOOK => {
            let (frame, asked) = waits.hook.as_ref()?;
            let reply = HookReply::print(asked.reply(answer)?)?;
            Some(Task::Reply { frame: *frame, reply })
        }
        DRIVER => {
            let events = answer_events(waits.shown.kind, waits.ask.call.as_ref()?, answer)?;
            Some(Task::Drive { session: waits.session.clone(), events })
        }
        RECORDING => Some(Task::GoOn { session: waits.session.clone() }),
        _ => Some(Task::Answer {
            harness: waits.harness,
            session: waits.session.clone(),
            request: waits.request.clone(),
            agent: waits.agent.clone(),
            call: waits.ask.call.clone(),
            answer: answer.clone(),
            by: rule.map_or(Answerer::Person, |_| Answerer::Rule),
        }),
    }
}

/// Whether only the beginning of what is asked for was kept: by a handler, or by the journal.
pub fn is_cut(ask: &Ask) -> bool {
    let is_short = |input: &str| {
        if may_be_cut(input) && serde_json::from_str::<serde::de::IgnoredAny>(input).is_err() {
            return true;
        }
        let fields: Option<BTreeMap<String, serde::de::IgnoredAny>> =
            serde_json::from_str(input).ok();
        fields.is_some_and(|fields| fields.len() == 1 && fields.contains_key(ToolCall::SHORTENED))
    };
    // The text of a plan or a question is kept beside its input, and shown instead of it.
    ask.text.as_deref().is_some_and(may_be_cut)
        || ask.input.as_deref().is_some_and(|input| is_part(input) || is_short(input))
}

/// Whether a request's input is a part of what its agent wrote. All agents write JSON, and the
/// beginning of an object is none.
pub fn is_part(input: &str) -> bool {
    let is_broken = || {
        let begins = input.trim_start().starts_with(['{', '[', '"']);
        begins && serde_json::from_str::<serde::de::IgnoredAny>(input).is_err()
    };
    qd_harness::abridge::is_marked(input) || is_broken()
}

fn taken(decided: &Decided) -> Taken {
    let decision = decided.subject.decision().clone();
    Taken { decision, standing: decided.standing.clone() }
}

fn recorded(record: Record) -> DeskOutput {
    DeskOutput::Record(Box::new(record))
}
