//! What agents have asked for, as the journal remembers, and what was answered: to try a policy on.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use qd_session::Session;
use qd_session::decision::{Body, Decision, Offer, Record};
use qd_session::event::{Entry, Event};
use qd_session::id::{CallId, DecisionId, RequestId, RequestKey, SessionId, ToolName};
use qd_session::machine::{self, Judged, ToolCall, Verdict};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact};
use qd_session::policy::{Effect, Preset, is_plan};
use qd_store::limits::PAGE_ROWS_MAX;
use qd_store::{DecisionLog, JournalReader};
use serde::Serialize;

/// Past requests that a policy is tried on, the newest; the others are counted.
const PAST_REQUESTS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct PastRequests {
    /// The most frequent first.
    pub requests: Vec<PastRequest>,
    /// Older ones than are kept.
    pub left_out: usize,
}

/// A request, and how often it was made in its folder and answered so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastRequest {
    pub tool: String,
    pub input: Option<Arc<str>>,
    pub cwd: Option<Arc<str>>,
    /// What its session had for itself then.
    pub preset: Option<Preset>,
    pub was: Was,
    pub count: usize,
    pub last_at: Timestamp,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Was {
    /// Somebody answered it from here.
    Person { allowed: bool },
    /// A rule did; older journals do not say which.
    Rule { rule: Option<String>, allowed: bool },
    /// It was asked where it was started, and is answered there or nowhere.
    Terminal,
}

impl Was {
    /// What the policy of that time had said: a person is asked where no rule answers.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Rule { allowed: true, .. } => Effect::Allow,
            Self::Rule { allowed: false, .. } => Effect::Deny,
            Self::Person { .. } | Self::Terminal => Effect::Ask,
        }
    }

    fn of(offer: &Offer) -> Option<Self> {
        let allowed = match &offer.answer {
            Decision::Allow { .. } => true,
            Decision::Deny { .. } => false,
            Decision::Answer { .. }
            | Decision::ApprovePlan { .. }
            | Decision::RejectPlan { .. } => return None,
        };
        Some(match &offer.rule {
            Some(rule) => Self::Rule { rule: Some(rule.to_string()), allowed },
            None => Self::Person { allowed },
        })
    }
}

impl PastRequests {
    /// Permissions that were asked for. Works beside a daemon that holds the journal.
    pub fn read(journal: &Path) -> Result<Self, qd_store::Error> {
        let answers = Answers::read(journal)?;
        let reader = JournalReader::open(journal)?;
        // What a session said of itself long ago may be in its snapshot only.
        let loaded = reader.load()?;
        let sessions = loaded.sessions.iter().map(|replayed| &replayed.session);
        let mut found = Found {
            answers,
            sessions: sessions.map(|session| (session.id().clone(), About::of(session))).collect(),
            ..Found::default()
        };
        let mut after = 0;
        loop {
            let page = reader.entries(after, PAGE_ROWS_MAX)?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            page.into_iter().for_each(|numbered| found.read(numbered.entry));
        }
        Ok(found.counted())
    }
}

/// What was answered from here, by the request.
#[derive(Debug, Default)]
struct Answers(BTreeMap<RequestKey, Was>);

impl Answers {
    fn read(journal: &Path) -> Result<Self, qd_store::Error> {
        let mut given: BTreeMap<DecisionId, (RequestKey, Was)> = BTreeMap::new();
        let Some(log) = DecisionLog::open(journal)? else { return Ok(Self::default()) };
        log.follow(|_, stored| {
            let Ok((record, _)) = Record::read(&stored.line) else { return };
            match record.body {
                Body::Given(offer) | Body::Ruled(offer) => {
                    if let Some(was) = Was::of(&offer) {
                        given.insert(offer.decision.clone(), (offer.request.clone(), was));
                    }
                }
                // It had no effect: somebody else was asked.
                Body::Failed { decision, .. } | Body::Overtaken { decision } => {
                    given.remove(&decision);
                }
                Body::Commanded(_)
                | Body::Delivered { .. }
                | Body::Confirmed { .. }
                | Body::Unclear { .. } => {}
            }
        })?;
        Ok(Self(given.into_values().collect()))
    }
}

/// What is known of a session beside its requests.
#[derive(Debug, Default)]
struct About {
    cwd: Option<Arc<str>>,
    /// As the journal's end has it.
    preset: Option<Preset>,
    /// As its entries say so far; none while they have said nothing.
    told: Option<Option<Preset>>,
    /// Of a driven one: what it goes back to when YOLO is off.
    brief: Option<Preset>,
}

impl About {
    fn of(session: &Session) -> Self {
        let about = session.monitor().about();
        let cwd = about.and_then(|about| about.cwd.as_ref()).map(|cwd| cwd.value.clone());
        let preset = session.logbook().map(|it| it.preset()).or_else(|| session.preset());
        let brief = session.logbook().map(|logbook| logbook.brief().preset);
        Self { cwd, preset, told: None, brief }
    }
}

/// A request is told by several sources, and twice by some: the fullest telling counts.
#[derive(Debug, Default)]
struct Found {
    answers: Answers,
    sessions: BTreeMap<SessionId, About>,
    told: BTreeMap<(SessionId, RequestId), Told>,
    /// In the order they were first told.
    order: VecDeque<(SessionId, RequestId)>,
    left_out: usize,
}

#[derive(Debug)]
struct Told {
    tool: String,
    input: Option<Arc<str>>,
    cwd: Option<Arc<str>>,
    preset: Option<Option<Preset>>,
    was: Was,
    last_at: Timestamp,
}

impl Found {
    fn read(&mut self, entry: Entry) {
        let Entry { session, at, event, .. } = entry;
        match event {
            Event::Observed { event } => {
                // What we drive has asked its driver, whoever else reports it.
                let is_driven = self.sessions.get(&session).is_some_and(|it| it.brief.is_some());
                if let (Fact::ApprovalRequested { request, ask, .. }, false) =
                    (event.fact, is_driven)
                {
                    self.take(session, request, ask, event.at, Was::Terminal);
                }
            }
            Event::Driven { event, .. } => self.read_driven(session, at, event),
            Event::SetUp { brief, .. } => {
                let about = self.sessions.entry(session).or_default();
                about.brief = brief.as_ref().map(|brief| brief.preset);
                about.told = Some(about.brief);
            }
            Event::PresetChosen { preset } => {
                self.sessions.entry(session).or_default().told = Some(preset);
            }
            Event::Adopted { .. }
            | Event::Troubled { .. }
            | Event::Dismissed
            | Event::Archived
            | Event::Unarchived
            | Event::ClockSetBack { .. }
            | Event::Slept
            | Event::BudgetSeen { .. }
            | Event::ClientYolo { .. } => {}
        }
    }

    fn read_driven(&mut self, session: SessionId, at: Timestamp, event: machine::Event) {
        if let machine::Event::YoloSwitched { on } = event {
            let about = self.sessions.entry(session).or_default();
            about.told = Some(match (on, about.brief) {
                (true, _) => Some(Preset::Yolo),
                (false, Some(Preset::Yolo)) => Some(Preset::Careful),
                (false, brief) => brief,
            });
        } else if let machine::Event::ApprovalAsked { call, .. } = event {
            if !is_plan(call.name.as_str()) {
                self.take_call(session, call, at, Was::Terminal);
            }
        } else if let machine::Event::ResponseParsed { calls, .. } = event {
            for Judged { call, verdict } in calls {
                let was = match verdict {
                    Verdict::Question => continue,
                    Verdict::Ask => Was::Terminal,
                    Verdict::Allow => Was::Rule { rule: None, allowed: true },
                    Verdict::Deny(_) => Was::Rule { rule: None, allowed: false },
                };
                self.take_call(session.clone(), call, at, was);
            }
        }
    }

    fn take_call(&mut self, session: SessionId, call: ToolCall, at: Timestamp, was: Was) {
        let ToolCall { call_id, name, arguments, .. } = call;
        let request = RequestId::new(call_id.as_str());
        self.take(session, request, asked(call_id, name, &arguments.to_string()), at, was);
    }

    fn take(&mut self, session: SessionId, request: RequestId, ask: Ask, at: Timestamp, was: Was) {
        let answer = self.answers.0.get(&RequestKey::of(&session, &request, at)).cloned();
        let about = self.sessions.get(&session);
        let (cwd, preset) = (about.and_then(|it| it.cwd.clone()), about.and_then(|it| it.told));
        let key = (session, request);
        let tool = ask.tool.map(|tool| tool.to_string()).unwrap_or_default();
        if let Some(told) = self.told.get_mut(&key) {
            if told.tool.is_empty() {
                told.tool = tool;
            }
            told.input = told.input.take().or(ask.input);
            told.was = answer.unwrap_or(std::mem::replace(&mut told.was, Was::Terminal));
            told.last_at = at.max(told.last_at);
            return;
        }
        let was = answer.unwrap_or(was);
        self.order.push_back(key.clone());
        self.told.insert(key, Told { tool, input: ask.input, cwd, preset, was, last_at: at });
        if self.order.len() > PAST_REQUESTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.told.remove(&oldest);
            self.left_out += 1;
        }
    }

    fn counted(self) -> PastRequests {
        type Distinct = (String, Option<Arc<str>>, Option<Arc<str>>, Option<Preset>, Was);
        let mut counts: BTreeMap<Distinct, (usize, Timestamp)> = BTreeMap::new();
        for ((session, _), told) in self.told {
            let Told { tool, input, cwd, preset, was, last_at: at } = told;
            // Where no entry says, a snapshot may.
            let about = self.sessions.get(&session);
            let last = about.filter(|about| about.told.is_none()).and_then(|about| about.preset);
            let distinct = (tool, input, cwd, preset.unwrap_or(last), was);
            let (count, last_at) = counts.entry(distinct).or_insert((0, at));
            *count += 1;
            *last_at = at.max(*last_at);
        }
        let each = |((tool, input, cwd, preset, was), (count, last_at))| PastRequest {
            tool,
            input,
            cwd,
            preset,
            was,
            count,
            last_at,
        };
        let mut requests: Vec<PastRequest> = counts.into_iter().map(each).collect();
        requests.sort_by_key(|request| std::cmp::Reverse((request.count, request.last_at)));
        PastRequests { requests, left_out: self.left_out }
    }
}

fn asked(call: CallId, tool: ToolName, input: &str) -> Ask {
    Ask { call: Some(call), tool: Some(tool), text: None, input: Some(input.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept() {
        let mut found = Found::default();
        for nth in 0..PAST_REQUESTS_MAX as u64 + 3 {
            let (call, tool) = (CallId::new(format!("c{nth}")), ToolName::new("Bash"));
            let request = RequestId::new(format!("r{nth}"));
            let ask = asked(call, tool, &format!("{{\"command\":\"{nth}\"}}"));
            found.take("s".into(), request, ask, Timestamp(nth), Was::Terminal);
        }
        let past = found.counted();
        assert_eq!((past.requests.len(), past.left_out), (PAST_REQUESTS_MAX, 3));
        let oldest = past.requests.last().expect("some");
        assert_eq!(oldest.last_at, Timestamp(3));
    }
}
