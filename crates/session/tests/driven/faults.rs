//! The faults that a machine of this kind was seen to have, and what ours does instead; then the
//! decisions one by one, with their numbers.

use qd_session::decision::RetryTarget;
use qd_session::id::{CallId, RunId, SessionId, TurnId};
use qd_session::limits::{
    FROZEN_BYTES_MAX, FROZEN_DEPTH_MAX, LLM_SILENCE_MAX_MS, SHOWN_INPUT_BYTES_MAX, STOP_GRACE_MS,
};
use qd_session::machine::{
    Action, After, AgentError, CallOutput, Change, ErrorCode, Event, FailurePolicy, HarnessTrouble,
    HookConfig, Kind, Machine, Output, PauseCause, Process, Reason, RunStatus, Setup, State,
    Stimulus, StopPhase, Timer, ToolCall, ToolFilter, ToolOrder, ToolOutcome, Tools, TroubleKind,
    Verdict, WayOn,
};
use qd_session::moment::Timestamp;
use qd_session::operator::resolve_driven;
use qd_session::seed::Seed;
use serde_json::json;

use super::world::{call, judged};

/// A machine with a clock and fresh ids, and what came of the last event.
struct Bench {
    machine: Machine,
    ticks: u64,
    last: Vec<Output>,
}

impl Bench {
    fn new(hooks: Vec<HookConfig>) -> Self {
        Self::with(Setup { tools: Tools::Ours, process: Process::WholeSession, hooks })
    }

    fn with(setup: Setup) -> Self {
        let machine = Machine::new(SessionId::from("sess_1"), setup);
        let mut bench = Self { machine, ticks: 0, last: Vec::new() };
        bench.send(Event::Spawned);
        bench.send(Event::HarnessReady);
        bench
    }

    fn send(&mut self, event: Event) -> &mut Self {
        self.ticks += 1;
        self.last = self.machine.handle(&Stimulus {
            session: SessionId::from("sess_1"),
            at: Timestamp(self.ticks * 1_000),
            seed: Seed(self.ticks),
            event,
        });
        self
    }

    fn prompt(&mut self) -> &mut Self {
        self.send(Event::UserInput { text: "go".into() })
    }

    /// The model answers with these calls, all allowed.
    fn calls(&mut self, calls: &[(&str, bool)]) -> &mut Self {
        let judged = calls.iter().map(|(id, mutating)| judged(call(id, *mutating), Verdict::Allow));
        self.answered(judged.collect())
    }

    fn answered(&mut self, calls: Vec<qd_session::machine::Judged>) -> &mut Self {
        let turn = self.turn();
        self.send(Event::StreamCompleted { turn: turn.clone(), text: None, cut_off: false });
        self.send(Event::ResponseParsed { turn, calls })
    }

    fn stream_failed(&mut self, trouble: TroubleKind, retry_after_ms: Option<u64>) -> &mut Self {
        let turn = self.turn();
        let trouble = HarnessTrouble { trouble, message: "overloaded".into(), retry_after_ms };
        self.send(Event::StreamFailed { turn, trouble })
    }

    fn finish(&mut self, id: &str, outcome: ToolOutcome) -> &mut Self {
        let run = self.run(id);
        self.send(Event::ToolFinished { run, outcome })
    }

    fn hook(&mut self, error: Option<&str>) -> &mut Self {
        let State::PostToolsHook { hooks, .. } = self.machine.state() else { panic!("no hook") };
        let run = hooks.run.clone();
        self.send(Event::HookFinished { run, error: error.map(Into::into), output: None })
    }

    fn turn(&self) -> TurnId {
        self.machine.state().turn().expect("a turn is being worked on").id.clone()
    }

    fn run(&self, id: &str) -> RunId {
        let batch = super::world::batch_of(self.machine.state()).expect("a batch");
        let run = batch.runs().iter().find(|run| run.call.call_id == CallId::from(id));
        run.and_then(|run| run.id.clone()).expect("a run of that call")
    }

    fn fire_retry(&mut self) -> &mut Self {
        let timer = self.started_timer().0;
        self.send(Event::TimerFired { timer })
    }

    fn started_timer(&self) -> (Timer, u64) {
        let started = self.actions().into_iter().find_map(|action| match action {
            Action::StartTimer { timer, after_ms } => Some((timer, after_ms)),
            _ => None,
        });
        started.expect("a timer was started")
    }

    fn actions(&self) -> Vec<Action> {
        let actions = self.last.iter().filter_map(|output| match output {
            Output::Do(action) => Some(action.clone()),
            Output::Show(_) => None,
        });
        actions.collect()
    }

    fn changes(&self) -> Vec<Change> {
        let changes = self.last.iter().filter_map(|output| match output {
            Output::Show(shown) => Some(shown.change.clone()),
            Output::Do(_) => None,
        });
        changes.collect()
    }

    fn error(&self) -> AgentError {
        let error = self.changes().into_iter().find_map(|change| match change {
            Change::SessionError(error) => Some(error),
            _ => None,
        });
        error.expect("an error was shown")
    }

    fn reason(&self) -> Reason {
        let reason = self.changes().into_iter().find_map(|change| match change {
            Change::StateChanged(change) => Some(change.reason),
            _ => None,
        });
        reason.expect("the state changed")
    }

    fn outputs(&self) -> Vec<CallOutput> {
        let sent = self.actions().into_iter().find_map(|action| match action {
            Action::SendToHarness { outputs, .. } => Some(outputs),
            _ => None,
        });
        sent.expect("the model was asked")
    }

    fn orders(&self) -> Vec<ToolOrder> {
        let orders = self.actions().into_iter().find_map(|action| match action {
            Action::ExecuteTools { tools } => Some(tools),
            _ => None,
        });
        orders.expect("tools were ordered")
    }

    #[track_caller]
    fn is(&self, kind: Kind) -> &Self {
        assert_eq!(self.machine.state().kind(), kind, "{:?}", self.machine.state());
        self
    }
}

fn ok() -> ToolOutcome {
    ToolOutcome::Succeeded { output: "ok".into(), is_error: false }
}

fn lost() -> ToolOutcome {
    ToolOutcome::Failed { error: "lost".into() }
}

fn output(id: &str, content: &str, is_error: bool) -> CallOutput {
    CallOutput { call_id: CallId::from(id), content: content.into(), is_error }
}

fn hook(name: &str, failure_policy: FailurePolicy) -> HookConfig {
    HookConfig {
        name: name.into(),
        command: vec!["true".into()],
        timeout_ms: 1_000,
        failure_policy,
        tool_filter: ToolFilter::AnyMutating,
        env_allow: Vec::new(),
    }
}

// The nine faults.

#[test]
fn fault_1_no_hooks_configured_does_not_get_stuck() {
    let mut bench = Bench::new(vec![]);
    bench.prompt().calls(&[("a", true)]).finish("a", ok());
    bench.is(Kind::CallingLlm);
    assert_eq!(bench.reason(), Reason::HooksSkipped);
}

#[test]
fn fault_2_one_failed_tool_does_not_strand_its_siblings() {
    let mut bench = Bench::new(vec![]);
    bench.prompt().calls(&[("a", false), ("b", false)]);
    bench.finish("a", lost()).is(Kind::ExecutingTools);
    let shown = bench.changes();
    assert!(
        matches!(&shown[..], [Change::ToolLifecycle(run)] if run.status == RunStatus::Failed),
        "a failed run is shown at once: {shown:?}"
    );
    bench.finish("b", ok()).is(Kind::Error);
    bench.fire_retry().is(Kind::ExecutingTools);
    assert_eq!(bench.orders().len(), 1, "only what failed runs again");
    bench.finish("a", ok()).is(Kind::CallingLlm);
    assert_eq!(bench.outputs(), [output("a", "ok", false), output("b", "ok", false)]);
}

#[test]
fn fault_3_a_read_only_batch_after_a_mutating_one_runs_no_hooks() {
    let mut bench = Bench::new(vec![hook("commit", FailurePolicy::FailSession)]);
    bench.prompt().calls(&[("a", true)]).finish("a", ok()).is(Kind::PostToolsHook);
    bench.hook(None).is(Kind::CallingLlm);
    bench.calls(&[("b", false)]).finish("b", ok()).is(Kind::CallingLlm);
    assert_eq!(bench.reason(), Reason::ToolsCompleted);
}

#[test]
fn fault_4_an_exit_while_the_response_is_processed_is_legal() {
    let mut bench = Bench::new(vec![]);
    let turn = bench.prompt().turn();
    bench.send(Event::StreamCompleted { turn, text: None, cut_off: false });
    bench.is(Kind::ProcessingResponse);
    bench.send(Event::HarnessExited { code: Some(1), why: None }).is(Kind::Error);
    assert_eq!(bench.error().code, ErrorCode::HarnessFailed);
    bench.send(Event::RetryRequested { target: RetryTarget::Harness }).is(Kind::Starting);
}

#[test]
fn fault_5_ids_and_time_come_in_with_the_event() {
    let run = || {
        let mut bench = Bench::new(vec![]);
        bench.prompt().calls(&[("a", true)]);
        bench.last
    };
    assert_eq!(run(), run());
    let mut bench = Bench::new(vec![]);
    let [Output::Show(shown), ..] = &bench.prompt().last[..] else { panic!("a change first") };
    assert_eq!(shown.timestamp_ms, Timestamp(3_000));
    assert_eq!(shown.event_id, Seed(3).change(0));
    assert_eq!(shown.session_id, SessionId::from("sess_1"));
    assert_eq!(bench.turn(), Seed(3).turn());
}

#[test]
fn fault_6_events_of_another_session_are_refused() {
    let mut bench = Bench::new(vec![]);
    let before = bench.machine.clone();
    let foreign = Stimulus {
        session: SessionId::from("sess_2"),
        at: Timestamp(9),
        seed: Seed(9),
        event: Event::StopRequested,
    };
    bench.last = bench.machine.handle(&foreign);
    assert_eq!(bench.error().code, ErrorCode::SessionNotFound);
    assert_eq!(bench.machine, before);
}

#[test]
fn fault_7_retries_end_and_repeat_the_same_call() {
    let mut bench = Bench::new(vec![]);
    bench.prompt().calls(&[("a", false)]).finish("a", lost()).is(Kind::Error);
    let first = bench.started_timer();
    assert_eq!(first.1, 500);
    bench.fire_retry();
    let order = bench.orders().remove(0);
    assert_eq!((order.call, order.attempt), (call("a", false), 2));
    bench.finish("a", lost()).is(Kind::Ready);
    assert_eq!(bench.reason(), Reason::RetriesExhausted);
    // The batch is kept for an explicit retry, which begins a new series …
    let run = bench.run("a");
    bench.send(Event::RetryRequested { target: RetryTarget::Tool { run } });
    assert_eq!(bench.is(Kind::ExecutingTools).orders()[0].attempt, 1);
    bench.finish("a", lost()).is(Kind::Error).started_timer();
    // … and the next input drops it, with an output for its call.
    bench.prompt().is(Kind::CallingLlm);
    assert_eq!(bench.outputs(), [output("a", "failed: lost", true)]);
}

#[test]
fn fault_8_a_late_completion_of_an_old_turn_is_ignored_and_counted() {
    let mut bench = Bench::new(vec![]);
    let old = bench.prompt().turn();
    bench.calls(&[("a", false)]).finish("a", ok()).is(Kind::CallingLlm);
    assert_ne!(bench.turn(), old);
    bench.send(Event::StreamCompleted { turn: old, text: None, cut_off: false });
    bench.is(Kind::CallingLlm);
    assert_eq!((bench.machine.stale(), bench.machine.refused()), (1, 0));
    assert!(bench.last.is_empty());
}

#[test]
fn fault_9_a_second_stop_is_a_no_op_and_stopping_times_out() {
    let mut bench = Bench::new(vec![]);
    bench.send(Event::StopRequested).is(Kind::Stopping);
    assert_eq!(bench.started_timer(), (Timer::Stop { phase: StopPhase::Asked }, STOP_GRACE_MS));
    bench.send(Event::StopRequested).is(Kind::Stopping);
    assert!(bench.last.is_empty(), "stopped twice: {:?}", bench.last);
    bench.send(Event::TimerFired { timer: Timer::Stop { phase: StopPhase::Asked } });
    assert_eq!(bench.is(Kind::Stopping).actions()[0], Action::KillHarness);
    bench.send(Event::HarnessExited { code: None, why: None }).is(Kind::Stopped);
    bench.send(Event::StopRequested);
    assert_eq!(bench.error().code, ErrorCode::StateTransitionInvalid);
    assert_eq!(bench.machine.refused(), 1);
}

// The decisions.

#[test]
fn d2_a_harness_that_is_one_process_a_turn_is_probed_and_ends_its_turn_by_exiting() {
    let setup = Setup { tools: Tools::Theirs, process: Process::OneTurn, hooks: vec![] };
    let machine = Machine::new(SessionId::from("sess_1"), setup);
    let mut bench = Bench { machine, ticks: 0, last: vec![] };
    bench
        .send(Event::Spawned)
        .send(Event::HarnessExited { code: Some(0), why: None })
        .is(Kind::Ready);
    bench.prompt().send(Event::HarnessExited { code: Some(0), why: None }).is(Kind::Ready);
    bench.prompt().send(Event::HarnessExited { code: Some(2), why: None }).is(Kind::Error);
}

#[test]
fn d4_nothing_runs_before_all_are_decided_and_a_rejection_is_an_output() {
    let mut bench = Bench::new(vec![]);
    let calls = vec![
        judged(call("a", true), Verdict::Ask),
        judged(call("b", true), Verdict::Ask),
        judged(call("c", true), Verdict::Allow),
        judged(call("d", true), Verdict::Deny("no rm".into())),
    ];
    bench.prompt().answered(calls).is(Kind::AwaitingApproval);
    let decide = |id: &str, approved, message: Option<&str>| Event::ApprovalDecided {
        call: CallId::from(id),
        approved,
        message: message.map(Into::into),
        mode: None,
    };
    bench.send(decide("a", false, Some("not there"))).is(Kind::AwaitingApproval);
    assert!(bench.last.is_empty());
    bench.send(decide("a", true, None));
    assert_eq!(bench.error().code, ErrorCode::StateTransitionInvalid, "decided already");
    bench.send(decide("b", true, None)).is(Kind::ExecutingTools);
    let ordered: Vec<_> = bench.orders().into_iter().map(|order| order.call.call_id).collect();
    assert_eq!(ordered, [CallId::from("b"), CallId::from("c")]);
    bench.finish("c", ok()).finish("b", ok()).is(Kind::CallingLlm);
    assert_eq!(
        bench.outputs(),
        [
            output("a", "rejected by the operator: not there", true),
            output("b", "ok", false),
            output("c", "ok", false),
            output("d", "rejected by policy: no rm", true),
        ]
    );
}

#[test]
fn d4_yolo_releases_what_waits_and_deny_rules_still_hold() {
    let mut bench = Bench::new(vec![]);
    let calls = vec![
        judged(call("a", true), Verdict::Ask),
        judged(call("d", true), Verdict::Deny("no rm".into())),
    ];
    bench.prompt().answered(calls);
    bench.send(Event::YoloSwitched { on: false }).is(Kind::AwaitingApproval);
    bench.send(Event::YoloSwitched { on: true }).is(Kind::ExecutingTools);
    let ordered: Vec<_> = bench.orders().into_iter().map(|order| order.call.call_id).collect();
    assert_eq!(ordered, [CallId::from("a")]);
}

#[test]
fn d4_a_question_is_asked_after_the_rest_of_its_batch_and_its_answer_is_its_output() {
    let mut bench = Bench::new(vec![hook("commit", FailurePolicy::FailSession)]);
    let calls = vec![
        judged(call("ask", false), Verdict::Question),
        judged(call("a", true), Verdict::Allow),
    ];
    bench.prompt().answered(calls).is(Kind::ExecutingTools);
    bench.finish("a", ok()).is(Kind::AwaitingInput);
    let asked = bench.actions();
    assert!(
        matches!(&asked[..], [Action::RequestInput { call }] if call.call_id.as_str() == "ask")
    );
    bench.send(Event::InputGiven {
        call: CallId::from("ask"),
        text: "42".into(),
        answers: Vec::new(),
    });
    bench.is(Kind::PostToolsHook).machine.state();
    bench.hook(None).is(Kind::CallingLlm);
    assert_eq!(bench.outputs(), [output("ask", "42", false), output("a", "ok", false)]);
}

#[test]
fn d6_a_command_that_failed_is_a_result() {
    let mut bench = Bench::new(vec![]);
    let exit_3 = ToolOutcome::Succeeded { output: "exit 3".into(), is_error: true };
    bench.prompt().calls(&[("a", true)]).finish("a", exit_3).is(Kind::CallingLlm);
    assert_eq!(bench.outputs(), [output("a", "exit 3", true)]);
    let told = bench.last.iter().find_map(|output| match output {
        Output::Show(shown) => match &shown.change {
            Change::ToolLifecycle(run) => Some((run.status, run.is_error)),
            _ => None,
        },
        Output::Do(_) => None,
    });
    assert_eq!(told, Some((RunStatus::Succeeded, true)), "who follows the run is told as well");
}

#[test]
fn what_a_retry_cannot_mend_offers_none() {
    for trouble in [TroubleKind::UnknownModel, TroubleKind::ContextFull] {
        let mut bench = Bench::new(vec![]);
        bench.prompt().stream_failed(trouble, None).is(Kind::Ready);
        bench.send(Event::RetryRequested { target: RetryTarget::Llm });
        bench.is(Kind::Ready);
        bench.prompt().is(Kind::CallingLlm);
    }
}

#[test]
fn d7_a_failed_mutating_tool_waits_for_the_operator() {
    let mut bench = Bench::new(vec![]);
    bench.prompt().calls(&[("a", true), ("b", false)]);
    bench.finish("b", lost()).finish("a", lost()).is(Kind::Error);
    assert!(bench.actions().is_empty(), "no timer: {:?}", bench.actions());
    let run = bench.run("b");
    bench.send(Event::RetryRequested { target: RetryTarget::Tool { run } });
    assert_eq!(bench.is(Kind::ExecutingTools).orders().len(), 2, "all failed runs of the batch");
}

#[test]
fn d9_the_model_is_asked_three_times_and_each_try_has_its_own_stream() {
    let mut bench = Bench::new(vec![]);
    let mut turns = vec![bench.prompt().turn()];
    for delay_ms in [250, 1_000] {
        bench.stream_failed(TroubleKind::Passing, None).is(Kind::Error);
        assert_eq!(bench.started_timer().1, delay_ms);
        bench.fire_retry().is(Kind::CallingLlm);
        assert_eq!(bench.outputs(), [], "the conversation has it already");
        turns.push(bench.turn());
    }
    turns.dedup();
    assert_eq!(turns.len(), 3);
    bench.stream_failed(TroubleKind::Passing, None).is(Kind::Ready);
    assert_eq!(bench.reason(), Reason::RetriesExhausted);
    let State::Ready(ready) = bench.machine.state() else { panic!("ready") };
    assert!(matches!(&ready.after, After::Failed { error, .. } if error.message.contains("over")));
    bench.send(Event::RetryRequested { target: RetryTarget::Llm }).is(Kind::CallingLlm);
}

#[test]
fn d9_a_retry_after_replaces_the_delay_and_a_long_one_is_a_usage_limit() {
    let mut bench = Bench::new(vec![]);
    bench.prompt().stream_failed(TroubleKind::Passing, Some(60_000)).is(Kind::Error);
    assert_eq!(bench.started_timer().1, 60_000);
    bench.fire_retry().stream_failed(TroubleKind::Passing, Some(60_001)).is(Kind::Ready);
    let error = bench.error();
    assert_eq!(error.code, ErrorCode::UsageLimit);
    assert_eq!(error.resets_at, Some(Timestamp(bench.ticks * 1_000 + 60_001)));
    bench.prompt().stream_failed(TroubleKind::Auth, None).is(Kind::Ready);
    assert_eq!((bench.error().code, bench.error().resets_at), (ErrorCode::AuthFailed, None));
}

#[test]
fn d9_a_hook_follows_its_policy() {
    let retry = FailurePolicy::Retry { max_attempts: 2, delay_ms: 700 };
    let mut bench = Bench::new(vec![hook("warn", FailurePolicy::WarnContinue), hook("re", retry)]);
    bench.prompt().calls(&[("a", true)]).finish("a", ok());
    bench.hook(Some("no")).is(Kind::PostToolsHook);
    assert!(!bench.error().retryable, "a warning");
    bench.hook(Some("no")).is(Kind::Error);
    assert!(bench.error().retryable);
    assert_eq!(bench.started_timer().1, 700);
    bench.fire_retry().is(Kind::PostToolsHook);
    bench.hook(Some("no")).is(Kind::Error);
    assert!(bench.actions().is_empty(), "it stays in Error");
    let State::Error { way_on: qd_session::machine::WayOn::Hook { hooks, .. }, .. } =
        bench.machine.state()
    else {
        panic!("a failed hook")
    };
    let run = hooks.run.clone();
    bench.send(Event::RetryRequested { target: RetryTarget::Hook { run } });
    bench.is(Kind::PostToolsHook);
    bench.hook(None).is(Kind::CallingLlm);
}

#[test]
fn d11_silence_is_counted_from_the_last_byte_and_ends_the_request() {
    let mut bench = Bench::new(vec![]);
    let turn = bench.prompt().turn();
    let silence = Timer::LlmSilence { turn: turn.clone() };
    bench.send(Event::StreamDelta { turn });
    assert_eq!(bench.started_timer(), (silence.clone(), LLM_SILENCE_MAX_MS));
    bench.send(Event::TimerFired { timer: silence.clone() }).is(Kind::Error);
    assert_eq!(bench.reason(), Reason::TimedOut);
    bench.send(Event::TimerFired { timer: silence }).is(Kind::Error);
    assert_eq!(bench.machine.stale(), 1, "a stale timer");
}

#[test]
fn d12_a_pause_is_taken_at_the_next_boundary_and_goes_on_where_it_was() {
    let mut bench = Bench::new(vec![]);
    bench.prompt().send(Event::PauseRequested { cause: PauseCause::Operator });
    bench.is(Kind::CallingLlm).machine.state();
    bench.calls(&[("a", false)]).is(Kind::Paused);
    bench.send(Event::ResumeRequested).is(Kind::ExecutingTools);
    bench.send(Event::PauseRequested { cause: PauseCause::Budget });
    bench.finish("a", ok()).is(Kind::Paused);
    bench.send(Event::ResumeRequested).is(Kind::CallingLlm);
    assert_eq!(bench.outputs(), [output("a", "ok", false)]);
}

#[test]
fn d14_states_follow_the_reports_of_an_agent_with_its_own_tools() {
    let setup = Setup { tools: Tools::Theirs, process: Process::WholeSession, hooks: vec![] };
    let mut bench = Bench::with(setup);
    let turn = bench.prompt().turn();
    bench.send(Event::ToolReported { turn: turn.clone(), call: call("a", true) });
    bench.is(Kind::ExecutingTools).machine.state();
    let shown = bench.changes();
    assert!(
        matches!(&shown[..], [Change::StateChanged(_), Change::ToolLifecycle(run)]
            if run.status == RunStatus::Running && run.attempt == 1),
        "their runs are shown like ours, after the change to the state they run in: {shown:?}"
    );
    bench.send(Event::ApprovalAsked { turn: turn.clone(), call: call("b", true) });
    bench.is(Kind::AwaitingApproval).machine.state();
    let decision =
        Event::ApprovalDecided { call: "b".into(), approved: true, message: None, mode: None };
    bench.send(decision).is(Kind::ExecutingTools);
    assert!(matches!(&bench.actions()[..], [Action::AnswerHarness { .. }]));
    for id in ["a", "b"] {
        let call = CallId::from(id);
        bench.send(Event::ToolEnded { turn: turn.clone(), call, is_error: false, output: None });
    }
    bench.is(Kind::CallingLlm).machine.state();
    bench.send(Event::StreamCompleted { turn, text: Some("Done.".into()), cut_off: false });
    bench.is(Kind::Ready);
}

#[test]
fn d15_what_a_crash_cut_off_is_never_run_again_and_has_an_output() {
    let mut bench = Bench::new(vec![]);
    bench.prompt().calls(&[("a", true), ("b", true), ("c", true)]);
    let run = bench.run("a");
    bench.send(Event::ToolStarted { run });
    bench.finish("c", ok());
    bench.send(Event::Restarted).is(Kind::Ready);
    assert!(bench.actions().is_empty());
    assert_eq!(bench.error().code, ErrorCode::Interrupted);
    bench.prompt();
    assert_eq!(
        bench.outputs(),
        [
            output("a", "interrupted, outcome unknown", true),
            // Ordered, and it may have begun before anybody could tell.
            output("b", "interrupted, outcome unknown", true),
            output("c", "ok", false),
        ]
    );
}

#[test]
fn what_an_agent_gives_its_tools_is_kept_as_far_as_there_is_room() {
    let usual = call("a", true);
    assert_eq!(usual.clone().kept(), usual);
    let deep = (0..FROZEN_DEPTH_MAX).fold(json!("x"), |inner, _| json!([inner]));
    let long = json!({ "content": "ü".repeat(FROZEN_BYTES_MAX / 2) });
    for arguments in [deep, long] {
        let kept = ToolCall { arguments, ..usual.clone() }.kept();
        let text = kept.arguments["shortened"].as_str().expect("its beginning");
        assert!(text.len() <= SHOWN_INPUT_BYTES_MAX && text.starts_with(['[', '{']));
    }
}

#[test]
fn an_interrupt_ends_the_turn_and_keeps_the_session() {
    let mut bench = Bench::new(vec![]);
    bench.prompt().calls(&[("a", true), ("b", false)]).finish("b", ok());
    bench.send(Event::InterruptRequested).is(Kind::Ready);
    let run = bench.run("a");
    assert_eq!(bench.actions(), [Action::CancelTool { run: run.clone() }]);
    bench.send(Event::ToolFinished { run, outcome: ok() });
    assert_eq!(bench.machine.stale(), 1, "it came too late");
    bench.prompt();
    assert_eq!(bench.outputs(), [output("a", "canceled", true), output("b", "ok", false)]);
}

#[test]
fn an_agent_that_does_not_answer_an_interrupt_is_stopped() {
    let setup = Setup { tools: Tools::Theirs, process: Process::WholeSession, hooks: vec![] };
    let mut bench = Bench::with(setup);
    let turn = bench.prompt().turn();
    bench.send(Event::InterruptRequested).is(Kind::CallingLlm);
    let (timer, after_ms) = bench.started_timer();
    assert_eq!((timer.clone(), after_ms), (Timer::Interrupt { turn }, STOP_GRACE_MS));
    bench.send(Event::TimerFired { timer }).is(Kind::Stopping);
    assert_eq!(bench.reason(), Reason::TimedOut);
}

#[test]
fn d14_a_call_of_theirs_runs_from_its_approval_and_ends_with_its_denial_or_answer() {
    let setup = Setup { tools: Tools::Theirs, process: Process::WholeSession, hooks: vec![] };
    let mut bench = Bench::with(setup);
    let turn = bench.prompt().turn();
    let shown = |bench: &Bench| {
        let runs = bench.changes().into_iter().filter_map(|change| match change {
            Change::ToolLifecycle(run) => {
                Some((run.status, run.started_at_ms.0, run.finished_at_ms.map(|at| at.0)))
            }
            Change::HookLifecycle(_) | Change::StateChanged(_) | Change::SessionError(_) => None,
        });
        runs.collect::<Vec<_>>()
    };
    let decided = |call: &str, approved| {
        let message = None;
        Event::ApprovalDecided { call: call.into(), approved, message, mode: None }
    };
    for id in ["a", "b"] {
        bench.send(Event::ApprovalAsked { turn: turn.clone(), call: call(id, true) });
        assert_eq!(shown(&bench), [], "nobody knows whether it will run");
    }
    bench.send(decided("a", true));
    assert_eq!(shown(&bench), [(RunStatus::Running, 6_000, None)]);
    bench.send(decided("b", false));
    assert_eq!(shown(&bench), [(RunStatus::Canceled, 7_000, Some(7_000))]);
    let (output, is_error) = (Some("built".into()), false);
    bench.send(Event::ToolEnded { turn: turn.clone(), call: "a".into(), is_error, output });
    assert_eq!(shown(&bench), [(RunStatus::Succeeded, 6_000, Some(8_000))]);
    // Told of before it is asked about: it runs, and waits.
    bench.send(Event::ToolReported { turn: turn.clone(), call: call("q", false) });
    bench.send(Event::QuestionAsked { turn, call: call("q", false) });
    bench.send(Event::InputGiven { call: "q".into(), text: "42".into(), answers: vec![] });
    assert_eq!(shown(&bench), [(RunStatus::Succeeded, 9_000, Some(11_000))]);
}

#[test]
fn d14_a_question_is_answered_while_a_permission_is_open() {
    let setup = Setup { tools: Tools::Theirs, process: Process::WholeSession, hooks: vec![] };
    let mut bench = Bench::with(setup);
    let turn = bench.prompt().turn();
    bench.send(Event::QuestionAsked { turn: turn.clone(), call: call("q", false) });
    bench.send(Event::ApprovalAsked { turn, call: call("a", true) });
    bench.is(Kind::AwaitingApproval);
    bench.send(Event::InputGiven { call: "q".into(), text: "42".into(), answers: vec![] });
    assert_eq!(bench.is(Kind::AwaitingApproval).machine.refused(), 0);
    let decision =
        Event::ApprovalDecided { call: "a".into(), approved: false, message: None, mode: None };
    bench.send(decision).is(Kind::CallingLlm);
}

/// An agent with its own tools, wherever it may be within a turn.
fn within_a_turn() -> Vec<Bench> {
    let hooks = vec![hook("h", FailurePolicy::FailSession)];
    let setup = Setup { tools: Tools::TheirsHeld, process: Process::WholeSession, hooks };
    let reached = |then: &dyn Fn(TurnId) -> Vec<Event>| {
        let mut bench = Bench::with(setup.clone());
        let turn = bench.prompt().turn();
        for event in then(turn) {
            bench.send(event);
        }
        bench
    };
    let call = || call("a", true);
    let reported = |turn: &TurnId| Event::ToolReported { turn: turn.clone(), call: call() };
    let ended = |turn: &TurnId| {
        let (turn, call) = (turn.clone(), call().call_id);
        Event::ToolEnded { turn, call, is_error: false, output: None }
    };
    vec![
        reached(&|_| Vec::new()),
        reached(&|turn| vec![reported(&turn)]),
        reached(&|turn| vec![Event::ApprovalAsked { turn, call: call() }]),
        reached(&|turn| vec![Event::QuestionAsked { turn, call: call() }]),
        reached(&|turn| vec![reported(&turn), ended(&turn), Event::BatchHeld { turn }]),
    ]
}

#[test]
fn a_turn_that_was_interrupted_and_then_failed_is_not_asked_again() {
    for mut bench in within_a_turn() {
        bench.send(Event::InterruptRequested);
        bench.stream_failed(TroubleKind::Passing, None).is(Kind::Ready);
        assert_eq!(bench.reason(), Reason::Interrupted);
        let goes_on = bench.actions().into_iter().any(|action| {
            matches!(action, Action::StartTimer { .. } | Action::SendToHarness { .. })
        });
        assert!(!goes_on, "the operator wanted it to end");
    }
}

#[test]
fn no_hook_and_no_silence_stands_between_an_interrupt_and_its_timer() {
    let hooked = || within_a_turn().pop().expect("the last one is behind its hook");
    let mut bench = hooked();
    let turn = bench.is(Kind::PostToolsHook).turn();
    bench.send(Event::InterruptRequested);
    bench.hook(Some("no")).is(Kind::CallingLlm);
    assert!(bench.actions().contains(&Action::ReleaseHarness), "it can end its turn");
    bench.send(Event::TimerFired { timer: Timer::LlmSilence { turn: turn.clone() } });
    assert_eq!(bench.is(Kind::CallingLlm).machine.stale(), 1, "the interrupt's timer decides");
    bench.send(Event::TimerFired { timer: Timer::Interrupt { turn } }).is(Kind::Stopping);
    let mut bench = within_a_turn().remove(1);
    let turn = bench.is(Kind::ExecutingTools).turn();
    bench.send(Event::InterruptRequested);
    bench.send(Event::ToolEnded {
        turn: turn.clone(),
        call: "a".into(),
        is_error: false,
        output: None,
    });
    bench.send(Event::BatchHeld { turn }).is(Kind::CallingLlm);
    assert_eq!(bench.reason(), Reason::HooksSkipped);
}

#[test]
fn a_state_is_counted_from_when_it_was_entered() {
    let mut bench = Bench::new(vec![]);
    let turn = bench.prompt().turn();
    let entered = Timestamp(bench.ticks * 1_000);
    assert_eq!(bench.machine.since(), entered);
    bench.send(Event::StreamDelta { turn });
    assert_eq!(bench.machine.since(), entered, "a delta changes no state");
    assert_eq!(bench.machine.stale(), 0);
    for _ in 0..2 {
        bench.send(Event::StreamDelta { turn: TurnId::from("turn_old") });
    }
    assert_eq!(bench.machine.stale(), 2);
}

#[test]
fn a_repeated_hook_is_a_run_of_its_own() {
    let pass = |bench: &Bench| match bench.machine.state() {
        State::PostToolsHook { hooks, .. } => hooks.clone(),
        other => panic!("no hook runs: {other:?}"),
    };
    let retry = FailurePolicy::Retry { max_attempts: 2, delay_ms: 700 };
    let mut bench = Bench::new(vec![hook("re", retry)]);
    bench.prompt().calls(&[("a", true)]).finish("a", ok());
    let first = pass(&bench);
    bench.send(Event::HookStarted { run: first.run.clone() }).hook(Some("no")).fire_retry();
    let second = pass(&bench);
    assert_ne!(second.run, first.run);
    assert_eq!((second.attempt, second.started_at), (2, None));
    bench.send(Event::HookStarted { run: second.run.clone() }).hook(Some("no"));
    bench.send(Event::RetryRequested { target: RetryTarget::Hook { run: second.run.clone() } });
    let third = pass(&bench);
    assert_ne!(third.run, second.run);
    assert_eq!((third.attempt, third.started_at), (1, None), "a new series");
}

#[test]
fn a_hook_for_named_tools_runs_for_them_alone() {
    let named = |name: &str| HookConfig {
        tool_filter: ToolFilter::ToolNames { names: vec![name.into()] },
        ..hook("named", FailurePolicy::FailSession)
    };
    let mut bench = Bench::new(vec![named("edit_file")]);
    bench.prompt().calls(&[("a", true), ("b", false)]).finish("a", ok()).finish("b", ok());
    assert_eq!(bench.is(Kind::CallingLlm).reason(), Reason::HooksSkipped);
    let mut bench = Bench::new(vec![named("write_file")]);
    bench.prompt().calls(&[("a", true), ("b", false)]).finish("a", ok()).finish("b", ok());
    let State::PostToolsHook { hooks, .. } = bench.machine.state() else { panic!("no hook") };
    assert_eq!(hooks.tool_runs, [bench.run("a")]);
}

#[test]
fn d2_an_exit_that_was_expected_changes_nothing_in_error() {
    let exits = |setup: Setup| {
        let mut bench = Bench::with(setup);
        bench.prompt().stream_failed(TroubleKind::Passing, None).is(Kind::Error);
        bench.send(Event::HarnessExited { code: Some(1), why: None });
        bench
    };
    let ours = Setup { tools: Tools::Ours, process: Process::WholeSession, hooks: vec![] };
    let one_turn = exits(Setup { process: Process::OneTurn, ..ours.clone() });
    assert_eq!((one_turn.machine.stale(), one_turn.last.len()), (1, 0));
    let mut whole = exits(ours);
    assert_eq!(whole.is(Kind::Error).machine.stale(), 0, "it was not expected");
    assert!(!whole.last.is_empty());
    whole.send(Event::HarnessExited { code: Some(1), why: None }).is(Kind::Error);
    assert_eq!((whole.machine.stale(), whole.last.len()), (1, 0), "it is gone already");
}

#[test]
fn d2_the_exit_that_ends_a_turn_is_late_when_nothing_runs() {
    let exits = |process: Process, pauses: bool| {
        let mut bench = Bench::with(Setup { tools: Tools::Ours, process, hooks: vec![] });
        if pauses {
            bench.send(Event::PauseRequested { cause: PauseCause::Operator }).is(Kind::Paused);
        }
        bench.send(Event::HarnessExited { code: Some(0), why: None });
        (bench.machine.stale(), bench.last.is_empty())
    };
    for pauses in [false, true] {
        assert_eq!(exits(Process::OneTurn, pauses), (1, true));
        assert_eq!(exits(Process::WholeSession, pauses), (0, false));
    }
}

#[test]
fn d9_a_retry_by_hand_begins_a_new_series() {
    let mut bench = Bench::new(vec![]);
    bench.prompt().stream_failed(TroubleKind::Passing, None).is(Kind::Error);
    bench.send(Event::RetryRequested { target: RetryTarget::Llm }).is(Kind::CallingLlm);
    bench.stream_failed(TroubleKind::Passing, None).is(Kind::Error);
    assert_eq!(bench.started_timer().1, 250, "the first delay again");
}

#[test]
fn d9_only_what_failed_can_be_repeated() {
    let mut bench = Bench::new(vec![hook("h", FailurePolicy::FailSession)]);
    let other = Seed(99).run(0);
    bench.prompt().calls(&[("a", true)]).finish("a", lost()).is(Kind::Error);
    bench.send(Event::RetryRequested { target: RetryTarget::Tool { run: other } });
    assert_eq!(bench.is(Kind::Error).error().code, ErrorCode::StateTransitionInvalid);
    let run = bench.run("a");
    bench.send(Event::RetryRequested { target: RetryTarget::Tool { run } });
    bench.finish("a", ok()).hook(Some("no")).is(Kind::Error);
    let other = Seed(99).hook_run(0);
    bench.send(Event::RetryRequested { target: RetryTarget::Hook { run: other } });
    assert_eq!(bench.is(Kind::Error).error().code, ErrorCode::StateTransitionInvalid);
}

#[test]
fn d11_late_timers_and_deltas_are_ignored_and_counted() {
    let mut bench = Bench::new(vec![]);
    let old = bench.prompt().turn();
    bench.calls(&[("a", false)]).finish("a", ok()).is(Kind::CallingLlm);
    bench.send(Event::TimerFired { timer: Timer::LlmSilence { turn: old } }).is(Kind::CallingLlm);
    let turn = bench.turn();
    bench.send(Event::StreamCompleted { turn: turn.clone(), text: None, cut_off: false });
    bench.is(Kind::ProcessingResponse);
    bench.send(Event::StreamDelta { turn });
    assert_eq!((bench.machine.stale(), bench.machine.refused()), (2, 0));
}

#[test]
fn d11_what_comes_of_a_stream_that_fell_silent_is_ignored_and_counted() {
    let mut bench = Bench::new(vec![]);
    let turn = bench.prompt().turn();
    bench.send(Event::TimerFired { timer: Timer::LlmSilence { turn } }).is(Kind::Error);
    bench.stream_failed(TroubleKind::Passing, None).is(Kind::Error);
    let turn = bench.turn();
    bench.send(Event::StreamCompleted { turn, text: None, cut_off: false }).is(Kind::Error);
    assert_eq!((bench.machine.stale(), bench.machine.refused()), (2, 0));
}

#[test]
fn a_hook_that_a_crash_cut_off_is_run_again_by_a_person_and_those_behind_it_too() {
    let hooks = ["first", "second"].map(|name| hook(name, FailurePolicy::WarnContinue)).to_vec();
    let mut bench = Bench::new(hooks);
    bench.prompt().calls(&[("a", true)]).finish("a", ok()).is(Kind::PostToolsHook);
    bench.send(Event::Restarted).is(Kind::Error);
    assert_eq!((bench.error().code, bench.actions()), (ErrorCode::Interrupted, vec![]));
    let State::Error { way_on: WayOn::Hook { hooks, .. }, .. } = bench.machine.state() else {
        panic!("no hook to run again")
    };
    let run = hooks.run.clone();
    bench.send(Event::RetryRequested { target: RetryTarget::Hook { run } });
    bench.is(Kind::PostToolsHook);
    bench.hook(None).hook(None).is(Kind::CallingLlm);
    assert_eq!(bench.outputs(), [output("a", "ok", false)]);
}

#[test]
fn d14_only_an_agent_that_is_held_is_freed() {
    let freed = |tools: Tools| {
        let hooks = vec![hook("h", FailurePolicy::FailSession)];
        let mut bench = Bench::with(Setup { tools, process: Process::WholeSession, hooks });
        bench.prompt();
        if tools == Tools::Ours {
            bench.calls(&[("a", true)]).finish("a", ok());
        } else {
            let turn = bench.turn();
            let call = call("a", true);
            bench.send(Event::ToolReported { turn: turn.clone(), call });
            let call = CallId::from("a");
            bench.send(Event::ToolEnded {
                turn: turn.clone(),
                call,
                is_error: false,
                output: None,
            });
            bench.send(Event::BatchHeld { turn });
        }
        bench.hook(Some("no")).is(Kind::Error);
        bench.send(Event::InterruptRequested).is(Kind::Ready);
        bench.actions()
    };
    let held = freed(Tools::TheirsHeld);
    assert!(held.iter().any(|action| matches!(action, Action::ReleaseHarness)), "{held:?}");
    assert!(!freed(Tools::Ours).iter().any(|action| matches!(action, Action::ReleaseHarness)));
}

#[test]
fn d9_in_ready_only_the_runs_that_failed_can_be_repeated() {
    let mut bench = Bench::new(vec![]);
    bench.prompt().calls(&[("a", false)]).finish("a", lost()).is(Kind::Error);
    bench.fire_retry().finish("a", lost()).is(Kind::Ready);
    let run = Seed(99).run(0);
    bench.send(Event::RetryRequested { target: RetryTarget::Tool { run } });
    assert_eq!(bench.is(Kind::Ready).error().code, ErrorCode::StateTransitionInvalid);
}

#[test]
fn the_operator_is_shown_what_waits_and_how_much() {
    let ask = |id: &str| judged(call(id, true), Verdict::Ask);
    let mut bench = Bench::new(vec![]);
    bench.prompt().answered(vec![ask("a"), ask("b"), ask("c")]).is(Kind::AwaitingApproval);
    let shown = |bench: &Bench| resolve_driven(&bench.machine).expect("it is on the board").context;
    let context = shown(&bench).expect("a request");
    assert_eq!((&context["requestId"], &context["waiting"]), (&json!("a"), &json!(3)));
    assert_eq!(context["tool"], json!(call("a", true).name));
    let one = Bench::new(vec![]).prompt().answered(vec![ask("a")]).machine.clone();
    let context = resolve_driven(&one).and_then(|state| state.context).expect("a request");
    assert_eq!(context.get("waiting"), None, "one is one");
    assert_eq!(shown(Bench::new(vec![]).prompt()), None, "nothing to show");
}
