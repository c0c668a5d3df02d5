//! The observed session: what a monitor believes about an agent that somebody else started.
//!
//! A monitor believes; it never refuses. It keeps facts, each with the time it happened. An older
//! fact never overwrites a newer one however late it comes, so late, doubled and shuffled events
//! end in the same state as the ordered ones. Status is derived on read.
//! Invariant: a request of one agent is not closed by any event of another.

mod agent;
mod attention;
mod event;
mod latest;
mod liveness;
mod work;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::agent::{Activity, Agent, LastMessage, RepeatedFailure, ToolStart, TurnEnd};
pub use self::attention::{AskedBefore, Open, Request, RequestKind};
pub use self::event::{AgentEvent, Ask, Fact, Failure, FailureKind, Place, Stage, Usage};
pub use self::latest::Latest;
use self::latest::raise;
pub use self::liveness::{Life, Liveness};
pub use self::work::{Draft, Run, Work};
use crate::finished_turn::{FinishedTurn, judge};
use crate::id::{AgentId, ProcessKey, RequestId};
use crate::limits::{REQUESTS_MAX, SUBAGENTS_MAX};
use crate::moment::{Source, Stamp, Timestamp};

/// Everything believed about one observed session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Monitor {
    main: Agent,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subagents: Vec<Agent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<Request>,
    liveness: Liveness,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<Box<About>>,
    /// Kept aside: most sessions on a board have long been silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<Box<Work>>,
    evidence: Vec<Evidence>,
    unrecognised: u32,
    /// The machine slept until then: silence counts from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    slept_until: Option<Timestamp>,
}

/// What is known of the session besides its state. Each part is kept aside: few sessions have all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct About {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<Box<Latest<Arc<str>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Box<Latest<Arc<str>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_title: Option<Box<Latest<Arc<str>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Box<Latest<Arc<str>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Latest<Usage>>>,
    /// The to-do item that was ticked off last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<Latest<Option<Arc<str>>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Box<Latest<Arc<str>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<Box<Latest<Arc<str>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Box<Latest<Arc<str>>>>,
    /// The session that this one went on from, by the client's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Box<Latest<Arc<str>>>>,
    /// The client's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Box<Latest<Arc<str>>>>,
}

impl About {
    fn set_back(&mut self, by_ms: u64) {
        let Self {
            first_prompt,
            title,
            custom_title,
            mode,
            usage,
            task,
            cwd,
            branch,
            transcript,
            forked_from,
            version,
        } = self;
        let said = [first_prompt, title, custom_title, mode];
        let texts = said.into_iter().chain([cwd, branch, transcript, forked_from, version]);
        texts.for_each(|text| Latest::set_back(text, by_ms));
        Latest::set_back(usage, by_ms);
        Latest::set_back(task, by_ms);
    }

    /// Each part by itself: a client tells them one at a time.
    fn learn(&mut self, stamp: Stamp, place: &Place) {
        let slots = [
            (&mut self.cwd, &place.cwd),
            (&mut self.branch, &place.branch),
            (&mut self.transcript, &place.transcript),
            (&mut self.forked_from, &place.forked_from),
            (&mut self.version, &place.version),
        ];
        for (slot, part) in slots {
            if let Some(part) = part {
                Latest::join_boxed(slot, stamp, part.clone());
            }
        }
    }
}

/// The last signal of one source: why the session is believed to be what it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Evidence {
    pub source: Source,
    pub at: Timestamp,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub event: Cow<'static, str>,
}

impl Monitor {
    /// Takes a fact in. Joining is idempotent and does not depend on the order of arrival.
    pub fn apply(&mut self, event: &AgentEvent) {
        let stamp = event.stamp();
        self.note_evidence(event);
        match &event.fact {
            Fact::Unrecognised { .. } => self.unrecognised = self.unrecognised.saturating_add(1),
            Fact::SessionStarted { process } => self.liveness.started(stamp, process.as_ref()),
            Fact::SessionEnded { process, .. } => self.liveness.gone(stamp, process.as_ref()),
            Fact::ProcessSeen { process } => self.liveness.seen(stamp, process),
            Fact::ProcessGone { process } => self.liveness.gone(stamp, Some(process)),
            Fact::ProcessMissing => self.liveness.missing(stamp),
            Fact::TitleKnown { title, custom } => {
                let about = self.about.get_or_insert_default();
                let slot = if *custom { &mut about.custom_title } else { &mut about.title };
                Latest::join_boxed(slot, stamp, title.clone());
            }
            Fact::ModeChanged { mode } => {
                Latest::join_boxed(
                    &mut self.about.get_or_insert_default().mode,
                    stamp,
                    mode.clone(),
                );
            }
            Fact::UsageReported { usage } => {
                Latest::join_boxed(
                    &mut self.about.get_or_insert_default().usage,
                    stamp,
                    usage.clone(),
                );
            }
            Fact::PlaceKnown { place } => self.about.get_or_insert_default().learn(stamp, place),
            Fact::TaskCompleted { subject } => {
                Latest::join_boxed(
                    &mut self.about.get_or_insert_default().task,
                    stamp,
                    subject.clone(),
                );
            }
            Fact::ApprovalRequested { request, stage, ask } => {
                self.ask(event, request, RequestKind::Permission, *stage, ask);
            }
            Fact::QuestionAsked { request, ask } => {
                self.ask(event, request, RequestKind::Question, Stage::Waiting, ask);
            }
            Fact::PlanProposed { request, ask } => {
                self.ask(event, request, RequestKind::Plan, Stage::Waiting, ask);
            }
            Fact::ApprovalResolved { request }
            | Fact::QuestionAnswered { request }
            | Fact::PlanResolved { request } => {
                self.request(event, request).resolve(stamp);
            }
            Fact::UserPrompt { .. }
            | Fact::TurnStarted
            | Fact::LlmStarted
            | Fact::LlmRetrying { .. }
            | Fact::ToolStarted { .. }
            | Fact::ToolCompleted { .. }
            | Fact::CompactionStarted
            | Fact::CompactionEnded
            | Fact::SubagentStarted { .. }
            | Fact::SubagentEnded
            | Fact::TurnCompleted { .. }
            | Fact::TurnFailed { .. }
            | Fact::Interrupted => self.apply_to_agent(event),
        }
        self.forget_settled();
    }

    /// The clock was set back by so much. All facts move together, so their order and their ages
    /// stay; those that lay in the future would else win over everything new for as long.
    pub fn set_back(&mut self, by_ms: u64) {
        let Self {
            main,
            subagents,
            requests,
            liveness,
            about,
            work,
            evidence,
            unrecognised: _,
            slept_until,
        } = self;
        *slept_until = slept_until.map(|at| at.minus_ms(by_ms));
        main.set_back(by_ms);
        subagents.iter_mut().for_each(|agent| agent.set_back(by_ms));
        requests.iter_mut().for_each(|request| request.set_back(by_ms));
        liveness.set_back(by_ms);
        about.iter_mut().for_each(|about| about.set_back(by_ms));
        work.iter_mut().for_each(|work| work.set_back(by_ms));
        evidence.iter_mut().for_each(|seen| seen.at = seen.at.minus_ms(by_ms));
    }

    /// The machine slept until then, and nobody could have been heard meanwhile.
    pub fn slept_until(&mut self, at: Timestamp) {
        self.slept_until = self.slept_until.max(Some(at));
    }

    fn apply_to_agent(&mut self, event: &AgentEvent) {
        let stamp = event.stamp();
        if let Fact::UserPrompt { text: Some(text) } = &event.fact
            && event.agent.is_main()
        {
            let first = &mut self.about.get_or_insert_default().first_prompt;
            if first.as_ref().is_none_or(|known| (stamp, text) < (known.stamp, &known.value)) {
                *first = Some(Box::new(Latest { stamp, value: text.clone() }));
            }
        }
        if let Fact::ToolStarted { call, tool, about: Some(about) } = &event.fact {
            Work::note(&mut self.work, stamp, event.agent.is_main(), call, tool, about);
        }
        let agent = self.agent_mut(&event.agent);
        match &event.fact {
            Fact::UserPrompt { .. } => raise(&mut agent.work, stamp),
            Fact::TurnStarted => {
                raise(&mut agent.work, stamp);
                raise(&mut agent.turn, stamp);
            }
            Fact::LlmStarted => {
                raise(&mut agent.work, stamp);
                raise(&mut agent.llm, stamp);
            }
            Fact::LlmRetrying { message } => {
                raise(&mut agent.work, stamp);
                Latest::join_boxed(&mut agent.retrying, stamp, message.clone());
            }
            Fact::ToolStarted { call, tool, about } => {
                let start = ToolStart { tool: tool.clone(), about: about.clone() };
                agent.start_tool(stamp, call, start);
            }
            Fact::ToolCompleted { call, ok, exit_code } => {
                agent.end_tool(stamp, call, *ok, *exit_code);
            }
            Fact::CompactionStarted => raise(&mut agent.compaction_started, stamp),
            Fact::CompactionEnded => raise(&mut agent.compaction_ended, stamp),
            Fact::SubagentStarted { kind } => {
                raise(&mut agent.work, stamp);
                Latest::join_boxed(&mut agent.subagent, stamp, kind.clone());
            }
            Fact::SubagentEnded => raise(&mut agent.ended, stamp),
            Fact::TurnCompleted { last_message, background, cut_off } => {
                raise(&mut agent.completed, stamp);
                if let Some(text) = last_message {
                    let turn = FinishedTurn { last_message: Some(text), cut_off: *cut_off };
                    let said = LastMessage { sign: judge(&turn).sign };
                    Latest::join_boxed(&mut agent.last_message, stamp, said);
                }
                if let Some(left) = background {
                    Latest::join_boxed(&mut agent.background, stamp, *left);
                }
            }
            Fact::TurnFailed { failure } if *failure == Failure::UNEXPLAINED => {
                raise(&mut agent.failed_unexplained, stamp);
            }
            Fact::TurnFailed { failure } => {
                Latest::join_boxed(&mut agent.failed, stamp, failure.clone());
            }
            Fact::Interrupted => raise(&mut agent.interrupted, stamp),
            Fact::SessionStarted { .. }
            | Fact::ApprovalRequested { .. }
            | Fact::ApprovalResolved { .. }
            | Fact::QuestionAsked { .. }
            | Fact::QuestionAnswered { .. }
            | Fact::PlanProposed { .. }
            | Fact::PlanResolved { .. }
            | Fact::TaskCompleted { .. }
            | Fact::SessionEnded { .. }
            | Fact::ProcessSeen { .. }
            | Fact::ProcessGone { .. }
            | Fact::ProcessMissing
            | Fact::UsageReported { .. }
            | Fact::TitleKnown { .. }
            | Fact::ModeChanged { .. }
            | Fact::PlaceKnown { .. }
            | Fact::Unrecognised { .. } => unreachable!("the session's facts are taken above"),
        }
    }

    fn ask(
        &mut self,
        event: &AgentEvent,
        id: &RequestId,
        kind: RequestKind,
        stage: Stage,
        ask: &Ask,
    ) {
        let stamp = event.stamp();
        // Whoever asks is in the middle of a turn, even if we came too late to see it begin.
        raise(&mut self.agent_mut(&event.agent).work, stamp);
        let request = self.request(event, id);
        // Its answer may have been heard of first, and from somebody else.
        request.agent = event.agent.clone();
        request.ask(stamp, kind, stage, ask);
    }

    fn request(&mut self, event: &AgentEvent, id: &RequestId) -> &mut Request {
        let at = match self.requests.binary_search_by(|request| request.id.cmp(id)) {
            Ok(at) => at,
            Err(at) => {
                self.requests.insert(at, Request::new(id.clone(), event.agent.clone()));
                at
            }
        };
        &mut self.requests[at]
    }

    fn agent_mut(&mut self, id: &AgentId) -> &mut Agent {
        if id.is_main() {
            return &mut self.main;
        }
        let at = match self.subagents.binary_search_by(|agent| agent.id.cmp(id)) {
            Ok(at) => at,
            Err(at) => {
                self.subagents.insert(at, Agent::new(id.clone()));
                at
            }
        };
        &mut self.subagents[at]
    }

    fn note_evidence(&mut self, event: &AgentEvent) {
        let new = Evidence { source: event.source, at: event.at, event: event.fact.name().into() };
        match self.evidence.iter_mut().find(|known| known.source == event.source) {
            Some(known) if new > *known => *known = new,
            Some(_) => {}
            None => {
                let at = self.evidence.partition_point(|known| known.source < new.source);
                // A session has one or two sources; a vector's own growth begins at four.
                self.evidence.reserve_exact(1);
                self.evidence.insert(at, new);
            }
        }
    }

    /// Drops what boundaries have settled. Bounded: the oldest go first when there are too many.
    fn forget_settled(&mut self) {
        self.main.forget_settled();
        Work::forget_before(&mut self.work, self.main.turn);
        self.subagents.iter_mut().for_each(Agent::forget_settled);
        let (main, subagents) = (&self.main, &self.subagents);
        self.requests.retain_mut(|request| {
            let agent = agent_of(main, subagents, &request.agent);
            request.keep_unsettled(agent.map_or(Stamp::NEVER, Agent::boundary))
        });
        while self.requests.len() > REQUESTS_MAX {
            self.requests.remove(0);
        }
        while self.subagents.len() > SUBAGENTS_MAX {
            let oldest = (0..self.subagents.len())
                .min_by_key(|at| {
                    let agent = &self.subagents[*at];
                    (agent.is_working(Stamp::NEVER), agent.work.max(agent.ended))
                })
                .expect("there are more than the maximum");
            self.subagents.remove(oldest);
        }
    }
}

fn agent_of<'a>(main: &'a Agent, subagents: &'a [Agent], id: &AgentId) -> Option<&'a Agent> {
    if id.is_main() {
        return Some(main);
    }
    subagents.iter().find(|agent| agent.id == *id)
}

/// Reading.
impl Monitor {
    /// The main agent. Where several processes have the session open each has one: the one whose
    /// turn failed and was not followed by another, else one at work, else the last at work.
    pub fn main_agent(&self) -> &Agent {
        let leads = || self.subagents.iter().filter(|agent| agent.id.leads()).chain([&self.main]);
        let newest_turn = leads().map(|agent| agent.turn).max().unwrap_or_default();
        let end = self.last_end();
        let front = leads().max_by_key(|agent| {
            let rank = match agent.activity(end) {
                Activity::Ended => 0,
                Activity::Starting => 1,
                Activity::Idle(TurnEnd::Failed(_)) if agent.closed() >= newest_turn => 4,
                Activity::Idle(_) => 2,
                Activity::Thinking
                | Activity::Acting(_)
                | Activity::Compacting
                | Activity::Retrying(_) => 3,
            };
            (rank, agent.work.max(agent.closed()))
        });
        front.unwrap_or(&self.main)
    }

    /// All that a main agent has started; those of other processes are none.
    pub fn subagents(&self) -> impl Iterator<Item = &Agent> {
        self.subagents.iter().filter(|agent| !agent.id.leads())
    }

    /// The processes beside the first that have the session open, and are known to have agents
    /// that did something.
    pub fn terminals(&self) -> impl Iterator<Item = u64> {
        let end = self.last_end();
        let open = move |agent: &&Agent| agent.activity(end) != Activity::Ended;
        self.subagents.iter().filter(open).filter_map(|agent| agent.id.terminal_pid())
    }

    /// What the main agent does.
    pub fn activity(&self) -> Activity<'_> {
        self.main_agent().activity(self.last_end())
    }

    /// Subagents that still work, the newest last.
    pub fn working_subagents(&self) -> Vec<&Agent> {
        let end = self.last_end();
        let mut working: Vec<&Agent> =
            self.subagents().filter(|agent| agent.is_working(end)).collect();
        working.sort_by_key(|agent| agent.work);
        working
    }

    /// The open requests of all agents, under review or waiting for a person.
    pub fn open_requests(&self) -> impl Iterator<Item = Open<'_>> {
        let end = self.last_end();
        self.requests.iter().filter_map(move |request| {
            request.open(agent_of(&self.main, &self.subagents, &request.agent), end)
        })
    }

    pub fn life(&self) -> Life {
        let worked = self.subagents.iter().map(|agent| agent.work).max().unwrap_or_default();
        self.liveness.life(self.main.work.max(worked))
    }

    /// The processes that carry the session, as far as anybody saw; none once it has ended.
    pub fn carriers(&self) -> impl Iterator<Item = &ProcessKey> {
        let lives = self.life() == Life::Alive;
        self.liveness.carriers().filter(move |_| lives)
    }

    /// The processes that carry the session or have carried it, as far back as they are kept.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessKey> {
        self.liveness.processes()
    }

    /// When the session last said hello; `NEVER` if only its work or its facts were heard of.
    pub fn last_start(&self) -> Stamp {
        self.liveness.last_start()
    }

    /// When the session last ended, whether or not it was resumed since.
    pub fn last_end(&self) -> Stamp {
        self.liveness.last_end()
    }

    pub fn about(&self) -> Option<&About> {
        self.about.as_deref()
    }

    /// What the main agent did in its last turn.
    pub fn work(&self) -> Option<&Work> {
        self.work.as_deref()
    }

    /// Custom title, else the client's, else the first prompt.
    pub fn title(&self) -> Option<&str> {
        let about = self.about.as_deref()?;
        [&about.custom_title, &about.title, &about.first_prompt]
            .into_iter()
            .find_map(|title| title.as_ref().map(|title| &*title.value))
    }

    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// When the session was last heard of, by whatever source.
    pub fn last_signal(&self) -> Timestamp {
        self.evidence.iter().map(|evidence| evidence.at).max().unwrap_or_default()
    }

    /// When the session itself was last heard of, and not only its process.
    pub fn last_word(&self) -> Timestamp {
        let said = self.evidence.iter().filter(|evidence| evidence.source != Source::Process);
        said.map(|evidence| evidence.at).max().unwrap_or_default()
    }

    /// How long something has gone on since then; the time that the machine slept is not counted.
    pub fn awake_ms_since(&self, now: Timestamp, then: Timestamp) -> u64 {
        now.ms_since(self.awake_since(then))
    }

    /// That time, or when the machine woke up after it.
    pub fn awake_since(&self, then: Timestamp) -> Timestamp {
        self.slept_until.unwrap_or_default().max(then)
    }

    /// How many signals nobody understood.
    pub fn unrecognised(&self) -> u32 {
        self.unrecognised
    }
}
