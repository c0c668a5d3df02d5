//! Rules that a row cannot say: sources, titles, causes, several things at once.

use std::sync::Arc;

use qd_session::id::{CallId, ProcessKey, RequestId, ToolName};
use qd_session::limits::{
    ABOUT_BYTES_MAX, LOOPING_CALLS_MIN, REQUEST_ASKS_MAX, REQUESTS_MAX, SUBAGENTS_MAX,
    TOOL_SPANS_MAX, UNOBSERVED_KEPT_MS,
};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{
    Activity, AgentEvent, Ask, Fact, Latest, Life, Monitor, Place, Stage, Usage,
};
use qd_session::operator::{Group, SubState, next_look, resolve};
use serde_json::json;

use super::grammar::{event, heard};

fn at(ms: u64, source: Source, name: &str) -> AgentEvent {
    AgentEvent { source, ..event(name, Timestamp(ms)) }
}

fn told(events: &[AgentEvent]) -> Monitor {
    let mut monitor = Monitor::default();
    events.iter().for_each(|event| monitor.apply(event));
    monitor
}

#[test]
fn the_newest_fact_wins_whatever_its_source() {
    let monitor = told(&[
        at(10, Source::Driver, "turn_started"),
        at(30, Source::Otel, "turn_completed"),
        at(20, Source::Hook, "tool_started"),
    ]);
    let state = resolve(Timestamp(40), &monitor);
    assert_eq!((state.state, state.source), (SubState::TASK_COMPLETE, Source::Otel));
}

#[test]
fn a_source_only_breaks_ties() {
    let end = at(10, Source::Transcript, "turn_completed");
    let begun = |source| told(&[end.clone(), at(10, source, "turn_started")]);
    assert_eq!(resolve(Timestamp(10), &begun(Source::Hook)).state, SubState::THINKING);
    assert_eq!(resolve(Timestamp(10), &begun(Source::Otel)).state, SubState::TASK_COMPLETE);
    let mut counted = at(10, Source::Otel, "turn_started");
    counted.seq = 1;
    let counted = told(&[end, counted]);
    assert_eq!(resolve(Timestamp(10), &counted).state, SubState::THINKING, "the sender's counter");
}

/// So many calls, each begun and ended after the other: what it is about, and whether it did its
/// work.
fn called(calls: &[(&str, bool)]) -> Monitor {
    let mut monitor = told(&[at(1, Source::Hook, "turn_started")]);
    for (nth, (about, ok)) in calls.iter().enumerate() {
        let (call, tool) = (CallId::new(format!("c{nth}")), ToolName::new("Bash"));
        let begin = 10 + 10 * nth as u64;
        let started =
            Fact::ToolStarted { call: call.clone(), tool, about: Some(Arc::from(*about)) };
        let ended = Fact::ToolCompleted { call, ok: *ok, exit_code: None };
        monitor.apply(&AgentEvent::main(Timestamp(begin), Source::Hook, started));
        monitor.apply(&AgentEvent::main(Timestamp(begin + 5), Source::Hook, ended));
    }
    monitor
}

#[test]
fn the_same_call_that_fails_again_and_again_is_looping() {
    let failed = ("npm test", false);
    let state = |calls: &[(&str, bool)]| resolve(Timestamp(900), &called(calls)).state;
    assert_eq!(state(&[failed; LOOPING_CALLS_MIN - 1]), SubState::THINKING);
    assert_eq!(state(&[failed; LOOPING_CALLS_MIN]), SubState::LOOPING);
    let mut edited = vec![failed; 2 * LOOPING_CALLS_MIN];
    edited.insert(LOOPING_CALLS_MIN + 1, ("vi a.rs", true));
    assert_eq!(state(&edited), SubState::THINKING, "something was done in between");
    let mut passed = vec![failed; LOOPING_CALLS_MIN];
    passed.push(("npm test", true));
    assert_eq!(state(&passed), SubState::THINKING);
    let long = "x".repeat(ABOUT_BYTES_MAX);
    assert_eq!(state(&[(long.as_str(), false); 9]), SubState::THINKING, "nobody knows how it ends");
    let looping = resolve(Timestamp(900), &called(&[failed; 6]));
    assert_eq!(looping.label, "Bash failed 6 times in a row");
    assert_eq!((looping.group, looping.since), (Group::Autonomous, Timestamp(15)));
    let mut other = called(&[failed; 6]);
    let begun = |call: &str, about: &str| Fact::ToolStarted {
        call: CallId::new(call),
        tool: ToolName::new("Bash"),
        about: Some(Arc::from(about)),
    };
    other.apply(&AgentEvent::main(Timestamp(100), Source::Hook, begun("d", "npm test")));
    assert_eq!(resolve(Timestamp(900), &other).state, SubState::LOOPING, "it tries it again");
    other.apply(&AgentEvent::main(Timestamp(101), Source::Hook, begun("e", "ls")));
    assert_eq!(resolve(Timestamp(900), &other).state, SubState::ACTING);
}

#[test]
fn the_operator_is_told_since_when_by_whom_and_why() {
    let monitor = told(&[
        at(5, Source::Transcript, "turn_started"),
        at(10, Source::Hook, "approval_requested"),
        at(12, Source::Registry, "process_seen"),
    ]);
    let state = resolve(Timestamp(99), &monitor);
    assert_eq!(state.group, Group::NeedsYou);
    assert_eq!((state.since, state.source), (Timestamp(10), Source::Hook));
    assert_eq!(state.label, "Needs permission: Bash");
    assert_eq!(
        state.context,
        Some(json!({
            "requestId": "request-main", "tool": "Bash", "text": "may I?",
            "input": {"command": "make"},
        }))
    );
    let seen: Vec<_> = state.evidence.iter().map(|one| (one.source, one.at, &*one.event)).collect();
    assert_eq!(
        seen,
        [
            (Source::Transcript, Timestamp(5), "turn_started"),
            (Source::Hook, Timestamp(10), "approval_requested"),
            (Source::Registry, Timestamp(12), "process_seen"),
        ]
    );
}

#[test]
fn the_most_urgent_request_is_shown_and_the_others_are_counted() {
    let mut plan = event("plan_proposed", Timestamp(10));
    if let Fact::PlanProposed { request, ask } = &mut plan.fact {
        *request = RequestId::from("plan");
        *ask = Ask::default();
    }
    let monitor = told(&[
        event("turn_started", Timestamp(1)),
        plan,
        event("sub:approval_requested", Timestamp(20)),
    ]);
    let state = resolve(Timestamp(30), &monitor);
    assert_eq!(state.state, SubState::NEEDS_PERMISSION);
    let context = state.context.expect("a request has a context");
    assert_eq!((&context["agent"], &context["waiting"]), (&json!("sub"), &json!(2)));
}

#[test]
fn the_oldest_of_equals_is_shown_first() {
    let ask = |id: &str, ms| {
        let fact = Fact::ApprovalRequested {
            request: RequestId::from(id),
            stage: Stage::Waiting,
            ask: Ask::default(),
        };
        AgentEvent::main(Timestamp(ms), Source::Hook, fact)
    };
    let monitor = told(&[ask("a", 20), ask("b", 10)]);
    let state = resolve(Timestamp(30), &monitor);
    assert_eq!(state.context.expect("a request has a context")["requestId"], "b");
}

#[test]
fn a_subagents_request_outlives_the_main_agents_turn() {
    let monitor = told(&[
        event("turn_started", Timestamp(1)),
        event("sub:approval_requested", Timestamp(5)),
        event("turn_completed", Timestamp(9)),
    ]);
    assert_eq!(resolve(Timestamp(10), &monitor).state, SubState::NEEDS_PERMISSION);
}

/// When the one open request was asked, each time.
fn asks(monitor: &Monitor) -> Vec<u64> {
    let open = monitor.open_requests().next().expect("a request is open");
    open.asks().map(|stamp| stamp.at.0).collect()
}

#[test]
fn a_request_told_again_was_asked_when_it_was_first_told() {
    let ask = |ms| event("approval_requested", Timestamp(ms));
    assert_eq!(asks(&told(&[ask(10), ask(30), ask(20)])), [10, 20, 30]);
    assert_eq!(asks(&told(&[ask(30), ask(10), ask(10)])), [10, 30]);
}

#[test]
fn asked_again_after_it_was_settled_it_is_asked_anew() {
    let ask = |ms| event("approval_requested", Timestamp(ms));
    let settlements =
        ["approval_resolved", "turn_started", "turn_completed", "interrupted", "session_ended"];
    for settled in settlements {
        let settled = event(settled, Timestamp(20));
        assert_eq!(asks(&told(&[ask(10), settled.clone(), ask(30), ask(40)])), [30, 40]);
        assert_eq!(asks(&told(&[ask(10), ask(30), ask(40), settled])), [30, 40], "told late");
    }
}

/// Some requests have no id but that of a dialog: another call is another request.
#[test]
fn asked_for_another_call_it_is_asked_anew() {
    let ask = |ms, id: &str| {
        let mut asked = event("approval_requested", Timestamp(ms));
        if let Fact::ApprovalRequested { ask, .. } = &mut asked.fact {
            ask.call = (!id.is_empty()).then(|| CallId::from(id));
        }
        asked
    };
    let end = event("tool_completed", Timestamp(25));
    let first = [ask(10, ""), ask(20, "call-main"), end];
    assert_eq!(asks(&told(&[&first[..], &[ask(30, "other")]].concat())), [30]);
    assert_eq!(asks(&told(&[&first[..], &[ask(30, ""), ask(40, "")]].concat())), [30, 40]);
}

#[test]
fn of_too_many_asks_the_oldest_are_forgotten() {
    let max = u64::try_from(REQUEST_ASKS_MAX).expect("a small number");
    let all: Vec<AgentEvent> =
        (1..=max + 5).rev().map(|ms| event("approval_requested", Timestamp(ms))).collect();
    let kept: Vec<u64> = (5..=max + 5).collect();
    assert_eq!(asks(&told(&all)), kept);
}

#[test]
fn a_snapshot_from_before_asks_were_kept_is_read() {
    let before = r#"{"main":{"id":null,"work":{"at":10,"source":"hook"}},"requests":[{
        "id":"request-main","agent":null,"waiting":{"at":10,"source":"hook"},
        "asked":{"at":10,"source":"hook","value":{"kind":"permission","tool":"Bash"}}}]}"#;
    let mut monitor: Monitor = serde_json::from_str(before).expect("a snapshot");
    assert_eq!(asks(&monitor), [10]);
    monitor.apply(&event("approval_requested", Timestamp(20)));
    assert_eq!(asks(&monitor), [10, 20]);
}

#[test]
fn a_question_stamped_after_the_end_of_its_call_opens_nothing() {
    let monitor = told(&[
        event("turn_started", Timestamp(1)),
        event("tool_completed", Timestamp(10)),
        event("approval_requested", Timestamp(11)),
    ]);
    assert_eq!(monitor.open_requests().count(), 0);
}

#[test]
fn what_was_asked_in_the_last_moment_of_a_session_is_over_with_it() {
    let monitor = told(&[
        event("approval_requested", Timestamp(5)),
        event("session_ended", Timestamp(5)),
        event("session_started", Timestamp(9)),
    ]);
    assert_eq!(monitor.open_requests().count(), 0);
    assert_eq!(resolve(Timestamp(9), &monitor).state, SubState::INTERRUPTED);
}

#[test]
fn a_second_process_may_end_without_ending_the_session() {
    let mut events = vec![
        process(1, "terminal", "process_seen"),
        event("turn_started", Timestamp(2)),
        event("approval_requested", Timestamp(3)),
        process(4, "second", "process_seen"),
        process(5, "second", "process_gone"),
    ];
    let monitor = told(&events);
    assert_eq!(monitor.life(), Life::Alive);
    assert_eq!(monitor.open_requests().count(), 1, "the terminal still asks");
    events.push(process(9, "terminal", "process_seen"));
    assert_eq!(told(&events).open_requests().count(), 1, "seen again later");
    events.push(process(10, "terminal", "process_gone"));
    let ended = told(&events);
    assert!(matches!(ended.life(), Life::Ended { at } if at.at == Timestamp(10)));
    assert_eq!(ended.open_requests().count(), 0);
}

#[test]
fn the_title_is_the_operators_then_the_clients_then_the_first_prompt() {
    let mut monitor = told(&[event("user_prompt", Timestamp(10))]);
    assert_eq!(monitor.title(), Some("build it"));
    let mut second = event("user_prompt", Timestamp(20));
    second.fact = Fact::UserPrompt { text: Some("and test it".into()) };
    monitor.apply(&second);
    assert_eq!(monitor.title(), Some("build it"), "the first prompt, not the last");
    monitor.apply(&event("title_known", Timestamp(30)));
    assert_eq!(monitor.title(), Some("A title"));
    let mut custom = event("title_known", Timestamp(5));
    custom.fact = Fact::TitleKnown { title: "Mine".into(), custom: true };
    monitor.apply(&custom);
    assert_eq!(monitor.title(), Some("Mine"), "also when it is older");
}

#[test]
fn what_is_not_understood_is_counted_and_changes_nothing() {
    let (mut monitor, now) = heard("turn_started tool_started");
    let before = resolve(now, &monitor);
    assert_eq!(monitor.unrecognised(), 0);
    monitor.apply(&event("unrecognised", now.plus_ms(1)));
    monitor.apply(&event("unrecognised", now.plus_ms(1)));
    assert_eq!(monitor.unrecognised(), 2);
    assert!(resolve(now.plus_ms(1), &monitor).looks_like(&before));
}

#[test]
fn usage_mode_and_task_are_kept_with_the_session() {
    let mut usage = event("usage_reported", Timestamp(3));
    let known = Usage { model: Some("m".into()), context_tokens: Some(9), context_window: None };
    usage.fact = Fact::UsageReported { usage: known.clone() };
    let monitor =
        told(&[usage, event("mode_changed", Timestamp(4)), event("task_completed", Timestamp(5))]);
    let about = monitor.about().expect("something is known");
    assert_eq!(about.usage.as_ref().map(|usage| &usage.value), Some(&known));
    assert_eq!(about.mode.as_ref().map(|mode| &*mode.value), Some("plan"));
    let task = about.task.as_ref().and_then(|task| task.value.as_deref());
    assert_eq!(task, Some("step 1"));
}

#[test]
fn a_place_is_learnt_part_by_part() {
    let place = |ms, cwd: Option<&str>, branch: Option<&str>| {
        let place = Place {
            cwd: cwd.map(Into::into),
            branch: branch.map(Into::into),
            transcript: Some("t.jsonl".into()),
            forked_from: Some("before".into()),
            version: Some("1.2.3".into()),
        };
        AgentEvent::main(Timestamp(ms), Source::Hook, Fact::PlaceKnown { place })
    };
    let monitor = told(&[place(2, Some("/w"), None), place(1, Some("/old"), Some("main"))]);
    let about = monitor.about().expect("something is known");
    let read = |part: &Option<Box<Latest<Arc<str>>>>| part.as_ref().map(|p| p.value.to_string());
    assert_eq!(read(&about.cwd).as_deref(), Some("/w"));
    assert_eq!(read(&about.branch).as_deref(), Some("main"));
    assert_eq!(read(&about.transcript).as_deref(), Some("t.jsonl"));
    assert_eq!(read(&about.forked_from).as_deref(), Some("before"));
    assert_eq!(read(&about.version).as_deref(), Some("1.2.3"));
}

#[test]
fn a_session_is_carried_by_the_processes_that_live() {
    let process = |ms, name: &str, seen: bool| {
        let process = ProcessKey::new(name);
        let fact = match seen {
            true => Fact::ProcessSeen { process },
            false => Fact::ProcessGone { process },
        };
        AgentEvent::main(Timestamp(ms), Source::Process, fact)
    };
    let carriers = |events: &[AgentEvent]| {
        let monitor = told(events);
        monitor.carriers().map(ToString::to_string).collect::<Vec<_>>()
    };
    let (one, other) = (process(1, "7:42", true), process(2, "8:42", true));
    assert_eq!(carriers(&[one.clone(), other.clone()]), ["7:42", "8:42"]);
    assert_eq!(carriers(&[one.clone(), other.clone(), process(3, "7:42", false)]), ["8:42"]);
    let gone = [one, other, process(3, "7:42", false), process(4, "8:42", false)];
    assert_eq!(carriers(&gone), [""; 0]);
    // Seen and gone in one moment: it is gone, as far as anybody knows.
    let other = process(9, "9:42", true);
    assert_eq!(carriers(&[process(1, "7:42", true), process(1, "7:42", false), other]), ["9:42"]);
    // Whoever is heard of first.
    let (one, other) = (process(1, "7:42", true), process(2, "8:42", true));
    assert_eq!(told(&[one.clone(), other.clone()]), told(&[other, one]));
}

#[test]
fn a_source_is_trusted_by_how_it_hears() {
    let sure = |source| {
        let monitor = told(&[at(1_000, source, "llm_started")]);
        resolve(Timestamp(1_001), &monitor).confidence
    };
    let trusted = [
        (Source::Registry, 0.9),
        (Source::Hook, 0.9),
        (Source::Transcript, 0.7),
        (Source::Otel, 0.6),
        (Source::Fallback, 0.3),
    ];
    for (source, expected) in trusted {
        assert!((sure(source) - expected).abs() < f32::EPSILON, "{source:?}");
    }
}

#[test]
fn silence_is_nobodys_word() {
    let monitor = told(&[at(1_000, Source::Hook, "llm_started")]);
    let state = resolve(Timestamp(1_000 + 60 * 60 * 1_000), &monitor);
    assert_eq!((state.state, state.source), (SubState::UNKNOWN, Source::Fallback));
}

#[test]
fn what_nobody_can_observe_is_history_after_a_week() {
    let asked = told(&[at(1_000, Source::Hook, "approval_requested")]);
    let due = Timestamp(1_000).plus_ms(UNOBSERVED_KEPT_MS);
    let seen = |monitor: &Monitor, now: Timestamp| {
        let state = resolve(now, monitor);
        (state.group, state.state, state.since)
    };
    let waits = (Group::NeedsYou, SubState::NEEDS_PERMISSION, Timestamp(1_000));
    let history = (Group::Delivered, SubState::SESSION_ENDED, Timestamp(1_000));
    assert_eq!(seen(&asked, Timestamp(due.0 - 1)), waits);
    assert_eq!(next_look(Timestamp(due.0 - 1), &asked), Some(due));
    assert_eq!(seen(&asked, due), history);

    let mut slept = asked.clone();
    slept.slept_until(Timestamp(due.0 - 1));
    assert_eq!(seen(&slept, due), history, "it waited while the machine slept, too");

    let mut alive = asked.clone();
    alive.apply(&at(2_000, Source::Process, "process_seen"));
    assert_eq!(seen(&alive, due.plus_ms(UNOBSERVED_KEPT_MS)), waits, "its process lives");

    let mut back = asked;
    back.apply(&at(due.0, Source::Hook, "llm_started"));
    assert_eq!(resolve(due, &back).group, Group::NeedsYou, "its next signal brings it back");
}

#[test]
fn of_too_many_tools_the_end_that_is_longest_past_is_forgotten() {
    let mut monitor = told(&[event("turn_started", Timestamp(1))]);
    // Their names fall while their times rise.
    let calls: Vec<CallId> = (0..=TOOL_SPANS_MAX)
        .map(|nth| CallId::from(format!("c{:04}", 9_999 - nth).as_str()))
        .collect();
    for (at, call) in (10..).zip(&calls) {
        let (call, ok) = (call.clone(), true);
        let fact = Fact::ToolCompleted { call, ok, exit_code: None };
        monitor.apply(&AgentEvent::main(Timestamp(at), Source::Hook, fact));
    }
    let kept: Vec<bool> = calls.iter().map(|call| monitor.main_agent().tool_ended(call)).collect();
    assert!(!kept[0] && kept[1..].iter().all(|kept| *kept));
}

#[test]
fn of_a_place_only_what_is_new_is_told() {
    let place = |cwd: &str, branch: Option<&str>| Place {
        cwd: Some(cwd.into()),
        branch: branch.map(Into::into),
        ..Place::default()
    };
    let mut known = Place::default();
    assert_eq!(known.learn(Place::default()), None);
    assert_eq!(known.learn(place("/w", None)), Some(place("/w", None)));
    assert_eq!(known.learn(place("/w", None)), None);
    let branch = Place { branch: Some("main".into()), ..Place::default() };
    assert_eq!(known.learn(place("/w", Some("main"))), Some(branch));
    assert_eq!(known.learn(place("/v", None)), Some(place("/v", None)));
    assert_eq!(known, place("/v", Some("main")));
}

#[test]
fn what_can_grow_is_bounded() {
    let mut monitor = told(&[event("turn_started", Timestamp(1))]);
    for nth in 0..600_u64 {
        let call = CallId::from(format!("c{nth}").as_str());
        let tool = ToolName::from("Bash");
        let fact = Fact::ToolStarted { call, tool, about: None };
        monitor.apply(&AgentEvent::main(Timestamp(10 + nth), Source::Hook, fact));
        let request = RequestId::from(format!("r{nth:04}").as_str());
        let stage = Stage::Waiting;
        let fact = Fact::ApprovalRequested { request, stage, ask: Ask::default() };
        monitor.apply(&AgentEvent::main(Timestamp(10 + nth), Source::Hook, fact));
        let mut sub = event("sub:subagent_started", Timestamp(10 + nth));
        sub.agent = qd_session::id::AgentId::sub(format!("s{nth}").as_str());
        monitor.apply(&sub);
    }
    assert_eq!(monitor.open_requests().count(), REQUESTS_MAX);
    assert_eq!(monitor.subagents().count(), SUBAGENTS_MAX);
    assert_eq!(monitor.main_agent().tools.len(), TOOL_SPANS_MAX);
}

#[test]
fn what_is_forgotten_first_is_what_matters_least() {
    let mut monitor = told(&[event("turn_started", Timestamp(1))]);
    monitor.apply(&event("tool_started", Timestamp(2)));
    for nth in 0..2 * TOOL_SPANS_MAX as u64 {
        let call = CallId::from(format!("c{nth}").as_str());
        let fact = Fact::ToolCompleted { call, ok: true, exit_code: None };
        monitor.apply(&AgentEvent::main(Timestamp(10 + nth), Source::Hook, fact));
    }
    let now = Timestamp(10_000);
    assert_eq!(resolve(now, &monitor).state, SubState::ACTING, "an open call outlives ended ones");
    let ended =
        |nth: usize| monitor.main_agent().tool_ended(&CallId::from(format!("c{nth}").as_str()));
    assert!(ended(2 * TOOL_SPANS_MAX - 1), "the newest end is kept");
    assert!(!ended(0), "the oldest is forgotten");
}

/// What begins and ends in one moment is over; what begins in the moment of an end is over too.
#[test]
fn in_a_tie_the_end_wins() {
    let at_5 = |names: &[&str]| {
        let events: Vec<_> = names.iter().map(|name| event(name, Timestamp(5))).collect();
        resolve(Timestamp(5), &told(&events)).state
    };
    let turn = event("turn_started", Timestamp(1));
    let after_turn = |names: &[&str]| {
        let mut events = vec![turn.clone()];
        events.extend(names.iter().map(|name| event(name, Timestamp(5))));
        resolve(Timestamp(5), &told(&events)).state
    };
    assert_eq!(after_turn(&["compaction_started", "compaction_ended"]), SubState::THINKING);
    assert_eq!(at_5(&["turn_completed", "compaction_started"]), SubState::TASK_COMPLETE);
    assert_eq!(after_turn(&["llm_retrying", "llm_started"]), SubState::THINKING);
    assert_eq!(after_turn(&["tool_started", "tool_completed"]), SubState::THINKING);
    assert_eq!(after_turn(&["tool_started", "turn_completed"]), SubState::TASK_COMPLETE);
    assert_eq!(after_turn(&["approval_requested", "approval_resolved"]), SubState::THINKING);
}

#[test]
fn a_subagent_that_ended_is_ended_until_it_works_again() {
    let sub = |monitor: &Monitor| {
        let sub = monitor.subagents().next().expect("there is one");
        matches!(sub.activity(monitor.last_end()), Activity::Ended)
    };
    let mut monitor = told(&[event("sub:subagent_started", Timestamp(1))]);
    assert!(!sub(&monitor));
    monitor.apply(&event("sub:subagent_ended", Timestamp(2)));
    assert!(sub(&monitor));
    monitor.apply(&event("sub:tool_started", Timestamp(3)));
    assert!(!sub(&monitor));
    assert_eq!(monitor.working_subagents().len(), 1);
}

#[test]
fn a_tool_begun_in_the_last_moment_of_a_session_is_over_with_it() {
    let monitor = told(&[
        event("tool_started", Timestamp(5)),
        event("session_ended", Timestamp(5)),
        event("llm_started", Timestamp(9)),
    ]);
    assert_eq!(resolve(Timestamp(9), &monitor).state, SubState::THINKING);
}

/// An earlier message does not answer a tool that failed after it; one of the same moment does.
#[test]
fn a_failed_tool_is_answered_only_by_what_is_said_after_it() {
    let (monitor, now) = heard("turn_started turn_completed tool_started tool_failed +10s");
    assert_eq!(resolve(now, &monitor).state, SubState::ERROR);
    let answered = told(&[
        event("turn_started", Timestamp(1)),
        event("tool_failed", Timestamp(5)),
        event("turn_completed", Timestamp(5)),
    ]);
    assert_eq!(answered.main_agent().stuck_on_failed_tool(), None);
}

/// A process of that name, seen or gone.
fn process(ms: u64, key: &str, name: &str) -> AgentEvent {
    let mut event = event(name, Timestamp(ms));
    if let Fact::ProcessSeen { process } | Fact::ProcessGone { process } = &mut event.fact {
        *process = ProcessKey::from(key);
    }
    event
}

#[test]
fn an_end_while_another_process_lives_settles_nothing_even_after_that_one_ended() {
    let events = [
        process(1, "terminal", "process_seen"),
        event("turn_started", Timestamp(2)),
        event("approval_requested", Timestamp(3)),
        process(4, "second", "process_seen"),
        process(5, "second", "process_gone"),
        process(15, "third", "process_seen"),
        process(20, "terminal", "process_gone"),
    ];
    let monitor = told(&events);
    assert_eq!((monitor.life(), monitor.open_requests().count()), (Life::Alive, 1));
    let mut backwards = events.to_vec();
    backwards.reverse();
    assert_eq!(told(&backwards), monitor, "processes are kept in an order of their own");
}

#[test]
fn a_process_seen_in_the_moment_of_its_end_has_ended() {
    let monitor = told(&[process(5, "p", "process_seen"), process(5, "p", "process_gone")]);
    assert!(matches!(monitor.life(), Life::Ended { .. }), "{:?}", monitor.life());
    assert_eq!(monitor.last_end().at, Timestamp(5));
}

#[test]
fn work_in_the_moment_of_a_vain_look_is_a_sign_of_life() {
    let monitor =
        told(&[event("turn_started", Timestamp(5)), event("process_missing", Timestamp(5))]);
    assert_eq!(monitor.life(), Life::Unobserved);
}

/// Whoever waits for the next look is never told to look now, and not at all where nothing can
/// change by itself.
#[test]
fn the_next_look_is_always_ahead() {
    let look = |names: &str| {
        let (monitor, now) = heard(names);
        next_look(now, &monitor).map(|look| look.ms_since(now))
    };
    assert_eq!(look("turn_started"), Some(600_000));
    assert_eq!(look("turn_started +10m"), Some(UNOBSERVED_KEPT_MS - 600_000));
    assert_eq!(look("turn_started process_missing"), Some(60_000));
    assert_eq!(look("process_seen turn_started"), None);
    assert_eq!(look("process_seen turn_started tool_started tool_failed"), Some(10_000));
}

#[test]
fn what_is_unknown_is_unknown_since_the_last_signal() {
    let (monitor, now) = heard("title_known");
    let state = resolve(now.plus_ms(9), &monitor);
    assert_eq!((state.state, state.since), (SubState::UNKNOWN, now));
}
