//! A driven session, as the operator sees it: the table at the end of the design's §4.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::observed::finished_state;
use super::state::{AgentState, Group, SubState, Urgency};
use crate::machine::{
    After, AgentError, Batch, ErrorCode, Fate, Machine, PauseCause, RetryTimer, Run, State,
};
use crate::moment::Source;
use crate::policy::is_plan;

/// What the operator is told; none for a session that was never spawned.
pub fn resolve(machine: &Machine) -> Option<AgentState> {
    let autonomous = |state, label: &str| (Group::Autonomous, state, label.to_owned());
    let needs_you = |state, label: &str| (Group::NeedsYou, state, label.to_owned());
    let mut context = Map::new();
    let mut confidence = 0.99;
    let interrupting = machine.state().turn().is_some_and(|turn| turn.interrupting);
    let (group, state, label) = match machine.state() {
        State::Idle => return None,
        State::Stopped { exit_code, .. } => {
            put(&mut context, "exitCode", *exit_code);
            (Group::Delivered, SubState::SESSION_ENDED, "Session closed".to_owned())
        }
        State::Stopping { .. } => autonomous(SubState::STOPPING, "Stopping"),
        _ if interrupting => autonomous(SubState::STOPPING, "Interrupting"),
        State::Starting { .. } => autonomous(SubState::STARTING, "Starting"),
        State::CallingLlm { .. } | State::ProcessingResponse { .. } => {
            autonomous(SubState::THINKING, "Generating response...")
        }
        State::ExecutingTools { batch, .. } => {
            let tool = running(batch);
            put(&mut context, "tool", tool.map(str::to_owned));
            let label = format!("Running {}", tool.unwrap_or("tools"));
            autonomous(SubState::ACTING, &label)
        }
        State::PostToolsHook { hooks, .. } => {
            let hook = hooks.hook(&machine.setup().hooks).map(|hook| hook.name.to_string());
            put(&mut context, "hook", hook);
            autonomous(SubState::HOOKS, "Running post-tool hooks")
        }
        State::AwaitingApproval { batch, .. } => {
            // A permission is more urgent than a plan.
            let is_plan = |run: &&Run| is_plan(run.call.name.as_str());
            let undecided = || batch.runs().iter().filter(|run| run.fate == Fate::Undecided);
            if undecided().all(|run| is_plan(&run)) {
                first(undecided(), &mut context);
                needs_you(SubState::AWAITING_APPROVAL, "Plan ready for review")
            } else {
                let tool = first(undecided().filter(|run| !is_plan(run)), &mut context);
                needs_you(SubState::NEEDS_PERMISSION, &format!("Needs permission: {tool}"))
            }
        }
        State::AwaitingInput { batch, .. } => {
            let unanswered = batch.runs().iter().filter(|run| run.fate == Fate::Unanswered);
            first(unanswered, &mut context);
            needs_you(SubState::AWAITING_INPUT, "Asked you a question")
        }
        State::Paused { cause: PauseCause::Operator, .. } => needs_you(SubState::PAUSED, "Paused"),
        State::Paused { cause: PauseCause::Budget, .. } => {
            needs_you(SubState::BUDGET_EXCEEDED, "Budget spent")
        }
        State::Paused { cause: PauseCause::Unwatched, .. } => {
            put(&mut context, "why", Some("it asks nobody, and nobody watched what it did"));
            needs_you(SubState::PAUSED, "Paused: nobody was watching")
        }
        State::Error { error, way_on } => match way_on.timer() {
            RetryTimer::Running { .. } => {
                put(&mut context, "message", Some(error.message.to_string()));
                autonomous(SubState::RETRYING, "Trying again")
            }
            RetryTimer::None => failed(error, &mut context),
        },
        State::Ready(ready) => match &ready.after {
            After::Start => needs_you(SubState::IDLE, "Waiting for your first prompt"),
            After::Interrupted => needs_you(SubState::INTERRUPTED, "Interrupted"),
            After::Failed { error, .. } => failed(error, &mut context),
            After::Turn(said) => {
                confidence = said.sign.confidence();
                put(&mut context, "sign", Some(said.sign.name()));
                let (group, state, label) = finished_state(said.sign);
                (group, state, label.to_owned())
            }
        },
    };
    Some(AgentState {
        group,
        state,
        label,
        core_label: None,
        urgency: Urgency::Usual,
        confidence,
        source: Source::Driver,
        rule: Cow::Borrowed("we drive it, and its state machine says so"),
        context: (!context.is_empty()).then_some(Value::Object(context)),
        since: machine.since(),
        evidence: Vec::new(),
    })
}

fn put(context: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        context.insert(key.to_owned(), value.into());
    }
}

fn running(batch: &Batch) -> Option<&str> {
    let mut running =
        batch.runs().iter().rev().filter(|run| matches!(run.fate, Fate::Queued | Fate::Running));
    running.next().map(|run| run.call.name.as_str())
}

/// The first call that waits, put into the context; its tool's name.
fn first<'a>(
    mut waiting: impl Iterator<Item = &'a Run>,
    context: &mut Map<String, Value>,
) -> &'a str {
    let Some(run) = waiting.next() else { return "a tool" };
    put(context, "requestId", Some(run.call.call_id.as_str()));
    put(context, "tool", Some(run.call.name.as_str()));
    put(context, "input", Some(run.call.arguments.clone()));
    let others = waiting.count();
    if others > 0 {
        put(context, "waiting", Some(others as u64 + 1));
    }
    run.call.name.as_str()
}

fn failed(error: &AgentError, context: &mut Map<String, Value>) -> (Group, SubState, String) {
    let (state, label) = match error.code {
        ErrorCode::UsageLimit => (SubState::USAGE_LIMIT, "Usage limit reached"),
        ErrorCode::AuthFailed => (SubState::AUTH_ERROR, "Sign-in needed"),
        ErrorCode::ModelNotFound => (SubState::ERROR, "The provider doesn't have this model"),
        ErrorCode::ContextFull => (SubState::ERROR, "The conversation is too long for the model"),
        ErrorCode::StreamingFailed => (SubState::SERVER_ERROR, "The model's service failed"),
        ErrorCode::ToolExecutionFailed => (SubState::ERROR, "Tool failed, needs attention"),
        ErrorCode::HookExecutionFailed => (SubState::ERROR, "Post-tool hook failed"),
        ErrorCode::HarnessFailed => (SubState::ERROR, "The agent's process failed"),
        ErrorCode::Interrupted => (SubState::ERROR, "Cut off by a restart"),
        ErrorCode::SessionNotFound
        | ErrorCode::StateTransitionInvalid
        | ErrorCode::HookConfigInvalid => (SubState::ERROR, "Stopped by an error"),
    };
    context.insert("kind".to_owned(), json!(error.code));
    context.insert("message".to_owned(), Value::from(&*error.message));
    put(context, "resetsAt", error.resets_at.map(|at| at.0));
    (Group::NeedsYou, state, label.to_owned())
}
