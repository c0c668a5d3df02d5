//! A small world: two tools, a question, two hooks, and every event that can happen in a state.

use std::sync::Arc;

use qd_session::decision::RetryTarget;
use qd_session::id::{CallId, HookRunId, RunId, ToolName, TurnId};
use qd_session::machine::{
    Batch, Event, FailurePolicy, HarnessTrouble, HookConfig, Judged, Next, PauseCause, Process,
    Setup, State, Step, StopPhase, Timer, ToolCall, ToolFilter, ToolOutcome, Tools, TroubleKind,
    Verdict, WayOn, transition,
};
use qd_session::moment::Timestamp;
use qd_session::seed::Seed;
use serde_json::json;

pub const NOW: Timestamp = Timestamp(1_000);

pub fn call(id: &str, mutating: bool) -> ToolCall {
    let name = if mutating { "write_file" } else { "read_file" };
    ToolCall {
        call_id: CallId::from(id),
        name: ToolName::from(name),
        arguments: json!({ "path": id }),
        mutating,
    }
}

fn question() -> ToolCall {
    ToolCall { name: ToolName::from("ask_user"), ..call("ask", false) }
}

pub fn judged(call: ToolCall, verdict: Verdict) -> Judged {
    Judged { call, verdict }
}

/// The setups that differ in their rules.
pub fn setups() -> Vec<Setup> {
    let hook = |name: &str, failure_policy, tool_filter| HookConfig {
        name: name.into(),
        command: vec!["true".into()],
        timeout_ms: 1_000,
        failure_policy,
        tool_filter,
        env_allow: Vec::new(),
    };
    let warn = hook("warn", FailurePolicy::WarnContinue, ToolFilter::AnyMutating);
    let retry = hook(
        "retry",
        FailurePolicy::Retry { max_attempts: 2, delay_ms: 500 },
        ToolFilter::ToolNames { names: vec!["write_file".into()] },
    );
    let fail = hook("fail", FailurePolicy::FailSession, ToolFilter::AnyMutating);
    let ours = |hooks| Setup { tools: Tools::Ours, process: Process::WholeSession, hooks };
    vec![
        ours(vec![]),
        ours(vec![warn, retry]),
        ours(vec![fail.clone()]),
        Setup { process: Process::OneTurn, ..ours(vec![]) },
        Setup { tools: Tools::Theirs, ..ours(vec![fail.clone()]) },
        Setup { tools: Tools::TheirsHeld, ..ours(vec![fail]) },
    ]
}

/// The state with its ids numbered in the order they appear: two states that differ only in the
/// spelling of their ids are one.
pub fn key(state: &State) -> String {
    let text = serde_json::to_string(state).expect("a state is JSON");
    let mut ids: Vec<&str> = Vec::new();
    let mut key = String::with_capacity(text.len());
    for (nth, part) in text.split('"').enumerate() {
        let is_id = ["turn_", "toolrun_", "hookrun_"].iter().any(|prefix| part.starts_with(prefix));
        if nth > 0 {
            key.push('"');
        }
        match is_id {
            true => {
                let at = ids.iter().position(|id| *id == part).unwrap_or_else(|| {
                    ids.push(part);
                    ids.len() - 1
                });
                key.push_str(&format!("#{at}"));
            }
            false => key.push_str(part),
        }
    }
    key
}

/// A seed none of whose ids the state holds: ids are fresh, and there are few of them.
pub fn fresh_seed(state: &State) -> Seed {
    let text = serde_json::to_string(state).expect("a state is JSON");
    (1..8)
        .map(Seed)
        .find(|seed| {
            let held = [
                seed.turn().to_string(),
                seed.run(0).to_string(),
                seed.run(1).to_string(),
                seed.run(2).to_string(),
                seed.hook_run(0).to_string(),
            ];
            held.iter().all(|id| !text.contains(id.as_str()))
        })
        .expect("a state holds ids of few seeds")
}

pub fn step(setup: &Setup, state: &State, event: &Event) -> Result<Step, super::world::Declined> {
    transition(setup, state, NOW, fresh_seed(state), event)
}

pub use qd_session::machine::Declined;

/// Every event that is worth trying in a state: its own turn and runs, and foreign ones.
pub fn events(setup: &Setup, state: &State) -> Vec<Event> {
    let mut events = commands();
    if !setup.hooks.is_empty() {
        // What another cause does is what a pause does; once is enough.
        let is_other = |cause| matches!(cause, PauseCause::Budget | PauseCause::Unwatched);
        events
            .retain(|event| !matches!(event, Event::PauseRequested { cause } if is_other(*cause)));
    }
    if setup.tools == Tools::TheirsHeld {
        // Pauses and silence are those of any agent with its own tools.
        events.retain(|event| !matches!(event, Event::PauseRequested { .. }));
    }
    let own = state.turn().map(|turn| turn.id.clone());
    for turn in own.into_iter().chain([TurnId::from("turn_old")]) {
        events.extend(harness_events(setup, &turn));
        events.extend(timers(&turn));
        if setup.tools == Tools::TheirsHeld {
            let silence = Event::TimerFired { timer: Timer::LlmSilence { turn } };
            events.retain(|event| *event != silence);
        }
    }
    events.extend(exits());
    for phase in [StopPhase::Asked, StopPhase::Killed] {
        events.push(Event::TimerFired { timer: Timer::Stop { phase } });
    }
    events.extend(run_events(state));
    events.extend(hook_events(state));
    events
}

fn commands() -> Vec<Event> {
    let mut events = vec![
        Event::Spawned,
        Event::UserInput { text: "go".into() },
        Event::YoloSwitched { on: true },
        Event::YoloSwitched { on: false },
        Event::PauseRequested { cause: PauseCause::Operator },
        Event::PauseRequested { cause: PauseCause::Budget },
        Event::PauseRequested { cause: PauseCause::Unwatched },
        Event::ResumeRequested,
        Event::InterruptRequested,
        Event::StopRequested,
        Event::Restarted,
        Event::RetryRequested { target: RetryTarget::Llm },
        Event::RetryRequested { target: RetryTarget::Harness },
    ];
    for id in ["a", "b", "ask"] {
        let call = CallId::from(id);
        let approved = |approved, message: Option<&str>| Event::ApprovalDecided {
            call: call.clone(),
            approved,
            message: message.map(Arc::from),
            mode: None,
        };
        events.extend([approved(true, None), approved(false, Some("no"))]);
        events.push(Event::InputGiven {
            call: call.clone(),
            text: "42".into(),
            answers: Vec::new(),
        });
    }
    events
}

fn harness_events(setup: &Setup, turn: &TurnId) -> Vec<Event> {
    let turn = turn.clone();
    let trouble = |trouble, retry_after_ms| Event::StreamFailed {
        turn: turn.clone(),
        trouble: HarnessTrouble { trouble, message: "no".into(), retry_after_ms },
    };
    let parsed = |calls| Event::ResponseParsed { turn: turn.clone(), calls };
    let (a, b) = (call("a", true), call("b", false));
    let mut events = vec![
        Event::StreamDelta { turn: turn.clone() },
        Event::StreamCompleted { turn: turn.clone(), text: Some("done".into()), cut_off: false },
        trouble(TroubleKind::Passing, None),
        trouble(TroubleKind::Passing, Some(5_000)),
        trouble(TroubleKind::Passing, Some(3_600_000)),
        trouble(TroubleKind::Auth, None),
        trouble(TroubleKind::Lasting, None),
        trouble(TroubleKind::UnknownModel, None),
        trouble(TroubleKind::ContextFull, None),
        trouble(TroubleKind::UsageLimit, Some(3_600_000)),
        parsed(vec![]),
        parsed(vec![judged(a.clone(), Verdict::Allow), judged(b.clone(), Verdict::Allow)]),
        parsed(vec![judged(b.clone(), Verdict::Allow)]),
        parsed(vec![judged(a.clone(), Verdict::Ask), judged(b.clone(), Verdict::Ask)]),
        parsed(vec![judged(a.clone(), Verdict::Deny("rule".into()))]),
        parsed(vec![judged(a.clone(), Verdict::Allow), judged(question(), Verdict::Question)]),
    ];
    match setup.tools {
        Tools::Ours => {}
        Tools::Theirs => {
            // What a provider asks to wait is waited whoever runs the tools.
            events.retain(|event| !matches!(event, Event::StreamFailed { trouble, .. } if trouble.retry_after_ms.is_some()));
            events.extend(their_events(&turn, &[&a]));
            events.push(Event::QuestionAsked { turn: turn.clone(), call: question() });
            let call = question().call_id;
            events.push(Event::RequestWithdrawn { turn: turn.clone(), call });
        }
        Tools::TheirsHeld => {
            // One failure is enough: the others are those of any agent with its own tools.
            let passing = trouble(TroubleKind::Passing, None);
            events
                .retain(|event| *event == passing || !matches!(event, Event::StreamFailed { .. }));
            events.extend(their_events(&turn, &[&a, &b]));
        }
    }
    events.push(Event::BatchHeld { turn });
    events
}

fn their_events(turn: &TurnId, calls: &[&ToolCall]) -> Vec<Event> {
    let mut events = Vec::new();
    for call in calls {
        let (turn, id) = (turn.clone(), call.call_id.clone());
        events.push(Event::ToolReported { turn: turn.clone(), call: (*call).clone() });
        events.push(Event::ToolEnded { turn, call: id, is_error: false, output: None });
    }
    let asked = calls[0].clone();
    let call = asked.call_id.clone();
    events.push(Event::ApprovalAsked { turn: turn.clone(), call: asked });
    events.push(Event::RequestWithdrawn { turn: turn.clone(), call });
    events
}

fn timers(turn: &TurnId) -> Vec<Event> {
    let turn = turn.clone();
    let mut timers =
        vec![Timer::LlmSilence { turn: turn.clone() }, Timer::Interrupt { turn: turn.clone() }];
    timers.extend((1..=3).map(|attempt| Timer::Retry { turn: turn.clone(), attempt }));
    timers.into_iter().map(|timer| Event::TimerFired { timer }).collect()
}

fn exits() -> Vec<Event> {
    let codes = [Some(0), Some(1), None];
    let mut events = vec![Event::HarnessReady];
    events.extend(codes.map(|code| Event::HarnessExited { code, why: None }));
    events
}

fn run_events(state: &State) -> Vec<Event> {
    let mut runs: Vec<RunId> = batch_of(state)
        .into_iter()
        .flat_map(Batch::runs)
        .filter_map(|run| run.id.clone())
        .collect();
    runs.push(RunId::from("toolrun_old"));
    let outcomes = [
        ToolOutcome::Succeeded { output: "ok".into(), is_error: false },
        ToolOutcome::Failed { error: "lost".into() },
    ];
    let mut events = Vec::new();
    for run in runs {
        events.push(Event::ToolStarted { run: run.clone() });
        events.extend(
            outcomes.clone().map(|outcome| Event::ToolFinished { run: run.clone(), outcome }),
        );
        events.push(Event::RetryRequested { target: RetryTarget::Tool { run } });
    }
    events
}

fn hook_events(state: &State) -> Vec<Event> {
    let own = match state {
        State::PostToolsHook { hooks, .. }
        | State::Error { way_on: WayOn::Hook { hooks, .. }, .. } => Some(hooks.run.clone()),
        _ => None,
    };
    let runs = own.into_iter().chain([HookRunId::from("hookrun_old")]);
    runs.flat_map(|run| {
        [
            Event::HookStarted { run: run.clone() },
            Event::HookFinished { run: run.clone(), error: None, output: None },
            Event::HookFinished { run: run.clone(), error: Some("no".into()), output: None },
            Event::RetryRequested { target: RetryTarget::Hook { run } },
        ]
    })
    .collect()
}

/// The batch a state holds, wherever it holds it.
pub fn batch_of(state: &State) -> Option<&Batch> {
    match state {
        State::AwaitingApproval { batch, .. }
        | State::AwaitingInput { batch, .. }
        | State::ExecutingTools { batch, .. }
        | State::PostToolsHook { batch, .. } => Some(batch),
        State::Starting { owed }
        | State::Stopping { owed, .. }
        | State::Stopped { owed, .. }
        | State::Error { way_on: WayOn::Harness { owed }, .. } => owed.as_ref(),
        State::Ready(ready) => ready.owed.as_ref(),
        State::Error { way_on: WayOn::Tools { batch, .. } | WayOn::Hook { batch, .. }, .. } => {
            Some(batch)
        }
        State::Paused { then, .. } => match &**then {
            Next::Ready(ready) => ready.owed.as_ref(),
            Next::Llm { batch, .. } | Next::Tools { batch, .. } | Next::Hooks { batch, .. } => {
                Some(batch)
            }
            Next::Retry {
                way_on: WayOn::Tools { batch, .. } | WayOn::Hook { batch, .. }, ..
            } => Some(batch),
            Next::Retry { way_on: WayOn::Harness { owed }, .. } => owed.as_ref(),
            Next::Retry { way_on: WayOn::Llm { .. }, .. } => None,
        },
        State::Idle
        | State::CallingLlm { .. }
        | State::ProcessingResponse { .. }
        | State::Error { way_on: WayOn::Llm { .. }, .. } => None,
    }
}
