//! An observed session, as the operator sees it.
//!
//! The order of the questions is the rule: has it ended? does it wait for somebody? is it at work?
//! how did its turn end? Silence is judged last, and only what silence can tell.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::state::{AgentState, Group, SubState, Urgency};
use crate::finished_turn::{Ending, Sign};
use crate::id::RequestId;
use crate::limits::{
    FAILED_TOOL_GRACE_MS, MISSING_PROCESS_GRACE_MS, UNOBSERVED_KEPT_MS, UNOBSERVED_WORK_MAX_MS,
};
use crate::moment::{Source, Stamp, Timestamp};
use crate::monitor::{
    Activity, Agent, Failure, FailureKind, Latest, Life, Monitor, Open, RequestKind, Stage,
    ToolStart, TurnEnd,
};

/// A verdict before it is dressed for the wire.
struct Verdict {
    group: Group,
    state: SubState,
    label: String,
    confidence: f32,
    since: Stamp,
    rule: &'static str,
    context: Map<String, Value>,
}

impl Verdict {
    fn new(group: Group, state: SubState, label: impl Into<String>, since: Stamp) -> Self {
        let (label, context) = (label.into(), Map::new());
        Self { group, state, label, confidence: 0.99, since, rule: "", context }
    }

    fn needs_you(state: SubState, label: impl Into<String>, since: Stamp) -> Self {
        Self::new(Group::NeedsYou, state, label, since)
    }

    fn autonomous(state: SubState, label: impl Into<String>, since: Stamp) -> Self {
        Self::new(Group::Autonomous, state, label, since)
    }

    fn sure(mut self, confidence: f32) -> Self {
        self.confidence = confidence;
        self
    }

    /// The rule that led here, in a sentence.
    fn by(mut self, rule: &'static str) -> Self {
        self.rule = rule;
        self
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.context.insert(key.to_owned(), value.into());
        self
    }

    fn with_some(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }
}

/// What the operator is told at `now`.
pub fn resolve(now: Timestamp, monitor: &Monitor) -> AgentState {
    resolve_but(now, monitor, &BTreeSet::new())
}

/// The same where these requests need nobody: a rule has answered them.
pub fn resolve_but(now: Timestamp, monitor: &Monitor, ruled: &BTreeSet<RequestId>) -> AgentState {
    let verdict = silenced(now, monitor, verdict(now, monitor, ruled));
    AgentState {
        group: verdict.group,
        state: verdict.state,
        label: verdict.label,
        core_label: None,
        urgency: Urgency::Usual,
        confidence: verdict.confidence,
        source: verdict.since.source,
        rule: Cow::Borrowed(verdict.rule),
        context: (!verdict.context.is_empty()).then_some(Value::Object(verdict.context)),
        since: verdict.since.at,
        evidence: monitor.evidence().to_vec(),
    }
}

/// When `resolve` may answer differently although nothing has happened.
pub fn next_look(now: Timestamp, monitor: &Monitor) -> Option<Timestamp> {
    let quiet_since = monitor.awake_since(monitor.last_signal());
    let silent_since = monitor.awake_since(monitor.last_word());
    let failed_tool = monitor.main_agent().stuck_on_failed_tool();
    [
        matches!(monitor.life(), Life::Missing { .. })
            .then(|| silent_since.plus_ms(MISSING_PROCESS_GRACE_MS)),
        matches!(monitor.life(), Life::Unobserved)
            .then(|| quiet_since.plus_ms(UNOBSERVED_WORK_MAX_MS)),
        matches!(monitor.life(), Life::Unobserved)
            .then(|| monitor.last_word().plus_ms(UNOBSERVED_KEPT_MS)),
        failed_tool.map(|failed| monitor.awake_since(failed.at).plus_ms(FAILED_TOOL_GRACE_MS)),
    ]
    .into_iter()
    .flatten()
    .filter(|look| *look > now)
    .min()
}

fn verdict(now: Timestamp, monitor: &Monitor, ruled: &BTreeSet<RequestId>) -> Verdict {
    if let Life::Ended { at } = monitor.life() {
        return Verdict::new(Group::Delivered, SubState::SESSION_ENDED, "Session closed", at)
            .by("the session, or the process that held it, was seen to end");
    }
    if let Some(request) = most_urgent(monitor, ruled) {
        return asked(monitor, &request);
    }
    let main = monitor.main_agent();
    match monitor.activity() {
        Activity::Compacting => Verdict::autonomous(
            SubState::COMPACTING,
            "Compacting the conversation",
            main.compaction_started,
        )
        .by("a compaction began and has not ended"),
        Activity::Retrying(message) => {
            Verdict::autonomous(SubState::RETRYING, "Trying the model again", main.work)
                .by("the client says that it tries the model again by itself")
                .with_some("message", message)
        }
        Activity::Acting(open) => at_work(now, monitor, main, Some(open)),
        Activity::Thinking => at_work(now, monitor, main, None),
        Activity::Idle(end) => turn_over(monitor, main, &end),
        Activity::Starting | Activity::Ended => never_prompted(monitor),
    }
}

/// The open request that a person must see first.
fn most_urgent<'a>(monitor: &'a Monitor, ruled: &BTreeSet<RequestId>) -> Option<Open<'a>> {
    monitor
        .open_requests()
        .filter(|request| request.stage == Stage::Waiting && !ruled.contains(request.id))
        .min_by_key(|request| (std::cmp::Reverse(request.kind), request.since))
}

fn asked(monitor: &Monitor, request: &Open<'_>) -> Verdict {
    let (state, label) = match request.kind {
        RequestKind::Permission => {
            let tool = request.ask.tool.as_ref().map_or("a tool", |tool| tool.as_str());
            (SubState::NEEDS_PERMISSION, format!("Needs permission: {tool}"))
        }
        RequestKind::Question => (SubState::AWAITING_INPUT, "Asked you a question".to_owned()),
        RequestKind::Plan => (SubState::AWAITING_APPROVAL, "Plan ready for review".to_owned()),
    };
    let waiting = monitor.open_requests().filter(|open| open.stage == Stage::Waiting).count();
    let verdict = Verdict::needs_you(state, label, request.since)
        .by("a request is open, and a person is known to be needed for it")
        .with("requestId", request.id.as_str())
        .with_some("tool", request.ask.tool.as_ref().map(|tool| tool.as_str()))
        .with_some("text", request.ask.text.as_deref())
        .with_some(
            "input",
            request.ask.input.as_deref().map(|text| {
                serde_json::from_str::<Value>(text).unwrap_or_else(|_| Value::from(text))
            }),
        );
    let verdict = match (request.agent.terminal_pid(), request.agent.is_main()) {
        (Some(pid), _) => verdict.with("terminal", pid),
        (None, true) => verdict,
        (None, false) => verdict.with("agent", request.agent.as_str()),
    };
    if waiting > 1 { verdict.with("waiting", waiting as u64) } else { verdict }
}

fn at_work(
    now: Timestamp,
    monitor: &Monitor,
    main: &Agent,
    open: Option<&Latest<ToolStart>>,
) -> Verdict {
    if let Some(failed) = main.stuck_on_failed_tool()
        && monitor.awake_ms_since(now, failed.at) >= FAILED_TOOL_GRACE_MS
    {
        return Verdict::needs_you(SubState::ERROR, "Tool failed, needs attention", failed)
            .by("a tool failed and nothing has followed for ten seconds")
            .sure(0.95)
            .with("kind", "tool_failed");
    }
    if let Some(newest) = monitor.working_subagents().last() {
        return delegating(newest);
    }
    if let Some(repeated) = main.repeated_failure() {
        let ToolStart { tool, about } = repeated.start;
        let label = format!("{tool} failed {} times in a row", repeated.times);
        return Verdict::autonomous(SubState::LOOPING, label, repeated.since)
            .by("the same call has failed again and again, and nothing else was done in between")
            .sure(0.9)
            .with("tool", tool.as_str())
            .with_some("about", about.as_deref())
            .with("times", repeated.times as u64);
    }
    match open {
        Some(open) => {
            let label = format!("Running {}", open.value.tool);
            Verdict::autonomous(SubState::ACTING, label, open.stamp)
                .by("a tool began and has not ended, and no request is open")
                .sure(trust(open.stamp.source, 0.9))
                .with("tool", open.value.tool.as_str())
                .with_some("about", open.value.about.as_deref())
        }
        None => Verdict::autonomous(SubState::THINKING, "Generating response...", main.work)
            .by("a turn began and has not ended, and no tool runs")
            .sure(trust(main.work.source, 0.9)),
    }
}

fn delegating(agent: &Agent) -> Verdict {
    let kind = agent.subagent.as_ref().and_then(|known| known.value.as_deref());
    let label = format!("Running {} subagent", kind.unwrap_or("a"));
    Verdict::autonomous(SubState::DELEGATING, label, agent.work)
        .by("a subagent is at work")
        .with("agent", agent.id.as_str())
        .with_some("agentType", kind)
}

/// The turn is over: what does the operator do with that?
fn turn_over(monitor: &Monitor, main: &Agent, end: &TurnEnd<'_>) -> Verdict {
    let since = main.closed().max(monitor.last_end());
    match end {
        TurnEnd::Failed(failure) => failed(failure, since),
        TurnEnd::Interrupted => Verdict::needs_you(SubState::INTERRUPTED, "Interrupted", since)
            .by("a person, or the end of its process, cut the turn off"),
        TurnEnd::Completed { last_message, background } => {
            if let Some(newest) = monitor.working_subagents().last() {
                return delegating(newest);
            }
            if *background > 0 {
                let label = "Background work goes on";
                return Verdict::autonomous(SubState::DELEGATING, label, since)
                    .by("the turn ended, but left work in the background")
                    .with("background", *background);
            }
            let ended_on_it = main.stuck_on_failed_tool().is_some_and(|failed| failed <= since);
            if last_message.is_none() && ended_on_it {
                let label = "Stopped at a failed tool";
                return Verdict::needs_you(SubState::ERROR, label, since)
                    .by("the turn ended on a failed tool, without a word")
                    .sure(0.8)
                    .with("kind", "tool_failed");
            }
            finished(last_message.map_or(Sign::NoText, |said| said.sign), since)
        }
    }
}

/// What a session says of itself that waits and asks for nothing.
pub const NEXT_PROMPT: &str = "Waiting for your next prompt";

/// Rule 10, for driven sessions as well.
pub(super) fn finished_state(sign: Sign) -> (Group, SubState, &'static str) {
    match sign.ending() {
        Ending::Asks => (Group::NeedsYou, SubState::AWAITING_INPUT, "Asked you a question"),
        Ending::MidWork => (Group::NeedsYou, SubState::IDLE, NEXT_PROMPT),
        Ending::Delivered => (Group::Delivered, SubState::TASK_COMPLETE, "Finished"),
    }
}

fn finished(sign: Sign, since: Stamp) -> Verdict {
    let (group, state, label) = finished_state(sign);
    Verdict::new(group, state, label, since)
        .by("the turn ended, and its last message has this sign (finished-turn.md)")
        .sure(sign.confidence())
        .with("sign", sign.name())
}

fn failed(failure: &Failure, since: Stamp) -> Verdict {
    let (state, label) = failure_state(failure.kind);
    Verdict::needs_you(state, label, since)
        .by("the turn ended because the model could not be asked")
        .sure(0.95)
        .with("kind", json!(failure.kind))
        .with_some("message", failure.message.as_deref())
        .with_some("resetsAt", failure.resets_at.map(|at| at.0))
}

pub(super) fn failure_state(kind: FailureKind) -> (SubState, &'static str) {
    match kind {
        FailureKind::UsageLimit => (SubState::USAGE_LIMIT, "Usage limit reached"),
        FailureKind::Auth => (SubState::AUTH_ERROR, "Sign-in needed"),
        FailureKind::Server => (SubState::SERVER_ERROR, "The model's service failed"),
        FailureKind::Other => (SubState::ERROR, "Stopped by an error"),
    }
}

/// It exists; nobody has asked it for anything, or nothing of that has reached us.
fn never_prompted(monitor: &Monitor) -> Verdict {
    if let Some(newest) = monitor.working_subagents().last() {
        return delegating(newest);
    }
    let started = monitor.last_start();
    if started.happened() {
        return Verdict::needs_you(SubState::IDLE, "Waiting for your first prompt", started)
            .by("it was started, and nothing was asked of it yet")
            .sure(0.8);
    }
    let nothing = Stamp { at: monitor.last_signal(), ..Stamp::NEVER };
    Verdict::autonomous(SubState::UNKNOWN, "Connecting...", nothing)
        .by("it exists, and nothing else is known")
        .sure(0.0)
}

/// What silence can tell (rule 4). Work that nobody can observe becomes unknown; what waits for a
/// person, and what was delivered, stays for a week: a permission can wait for an hour.
fn silenced(now: Timestamp, monitor: &Monitor, verdict: Verdict) -> Verdict {
    let silence_ms = monitor.awake_ms_since(now, monitor.last_signal());
    let last_word = monitor.last_word();
    match monitor.life() {
        // Days count, whether the machine was awake or not.
        Life::Unobserved
            if last_word > Timestamp::ZERO && now.ms_since(last_word) >= UNOBSERVED_KEPT_MS =>
        {
            let (label, ended) =
                ("Not heard of for a week", Stamp { at: last_word, ..Stamp::NEVER });
            Verdict::new(Group::Delivered, SubState::SESSION_ENDED, label, ended)
                .by("its process cannot be observed, and it has been silent for seven days")
                .sure(0.5)
        }
        // That somebody looked is no word of the session: a copy of an old one is old.
        Life::Missing { at }
            if monitor.awake_ms_since(now, last_word) >= MISSING_PROCESS_GRACE_MS =>
        {
            let (label, ended) = ("Session ended", Stamp { at: last_word, ..at });
            Verdict::new(Group::Delivered, SubState::SESSION_ENDED, label, ended)
                .by("no process holds it, and it has been silent for a minute")
                .sure(0.9)
        }
        Life::Unobserved
            if silence_ms >= UNOBSERVED_WORK_MAX_MS && verdict.group == Group::Autonomous =>
        {
            let since = Stamp { source: Source::Fallback, ..verdict.since };
            Verdict::autonomous(SubState::UNKNOWN, "Not heard of for a while", since)
                .by("its process cannot be observed, and its work has been silent for ten minutes")
                .sure(0.3)
        }
        Life::Missing { .. } | Life::Unobserved | Life::Alive | Life::Ended { .. } => verdict,
    }
}

/// Transcripts tell of work late, and telemetry in batches.
fn trust(source: Source, told_directly: f32) -> f32 {
    match source {
        Source::Hook | Source::Registry | Source::Driver => told_directly,
        Source::Transcript => 0.7,
        Source::Otel | Source::Process => 0.6,
        Source::Fallback => 0.3,
    }
}
