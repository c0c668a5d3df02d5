//! `spec/manager-view.md`, read in both directions.

use super::*;
use crate::operator::Urgency;

const SPEC: &str = include_str!("../../../../../spec/manager-view.md");
const START: Timestamp = Timestamp(1_000);

#[derive(Debug)]
struct Row {
    name: &'static str,
    from: &'static str,
    event: &'static str,
    when: &'static str,
    to: ManagerState,
}

fn cells(line: &'static str) -> Vec<&'static str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

fn rows() -> Vec<Row> {
    SPEC.lines()
        .map(cells)
        .filter(|cells| cells.len() == 5 && cells[0] != "#" && !cells[0].starts_with("---"))
        .map(|cells| Row {
            name: cells[0],
            from: cells[1],
            event: cells[2],
            when: cells[3],
            to: state(cells[4]),
        })
        .collect()
}

fn state(name: &str) -> ManagerState {
    serde_json::from_value(name.into()).unwrap_or_else(|_| panic!("no state {name}"))
}

/// Every input, with the name and the condition the table has for it.
fn inputs() -> Vec<(&'static str, &'static str, Input)> {
    type Partial = fn(bool) -> Input;
    let messages: [(&str, Partial); 14] = [
        ("say:text", |partial| Input::SayText { partial }),
        ("say:completion_result", |partial| Input::SayCompletionResult { partial }),
        ("ask:tool", |partial| Input::AskTool { partial }),
        ("ask:command", |partial| Input::AskCommand { partial }),
        ("ask:followup", |partial| Input::AskFollowup { partial }),
        ("ask:completion_result", |partial| Input::AskCompletionResult { partial }),
        ("ask:api_req_failed", |partial| Input::AskApiReqFailed { partial }),
        ("ask:resume_task", |partial| Input::AskResumeTask { partial }),
        ("ask:resume_completed_task", |partial| Input::AskResumeCompletedTask { partial }),
        ("ask:mistake_limit_reached", |partial| Input::AskMistakeLimitReached { partial }),
        ("ask:payment_required_prompt", |partial| Input::AskPaymentRequiredPrompt { partial }),
        ("ask:invalid_model", |partial| Input::AskInvalidModel { partial }),
        ("ask:browser_action_launch", |partial| Input::AskBrowserActionLaunch { partial }),
        ("ask:use_mcp_server", |partial| Input::AskUseMcpServer { partial }),
    ];
    let mut inputs = Vec::new();
    for (name, input) in messages {
        inputs.push((name, "partial", input(true)));
        inputs.push((name, "complete", input(false)));
    }
    inputs.extend([
        ("session_created", "", Input::SessionCreated),
        ("api_req_started", "", Input::ApiReqStarted),
        ("api_req_retried", "", Input::ApiReqRetried),
        ("say:checkpoint_saved", "", Input::SayCheckpointSaved),
        ("welcome_with_instructions", "", Input::WelcomeWithInstructions),
        ("process_exit", "0", Input::ProcessExit { code: 0 }),
        ("process_exit", "not 0", Input::ProcessExit { code: 143 }),
        ("process_error", "", Input::ProcessError),
        ("start_session", "", Input::StartSession),
        ("send_message", "", Input::SendMessage),
        ("approve_action", "", Input::ApproveAction),
        ("reject_action", "", Input::RejectAction),
        ("cancel_session", "", Input::CancelSession),
        ("resume_session", "", Input::ResumeSession),
        ("retry", "", Input::Retry),
        ("timer", "", Input::Timer),
    ]);
    inputs
}

/// Every view a session can be in: each state, and what is remembered besides.
fn views() -> Vec<ManagerView> {
    let mut views = Vec::new();
    for state in ManagerState::ALL {
        let creating = state == ManagerState::Creating;
        let asked: &[bool] = match state {
            ManagerState::Error => &[false, true],
            ManagerState::WaitingApproval | ManagerState::WaitingInput | ManagerState::Paused => {
                &[true]
            }
            ManagerState::Idle
            | ManagerState::Creating
            | ManagerState::Streaming
            | ManagerState::Completed
            | ManagerState::Stopped => &[false],
        };
        for (&asked, misconfigured) in asked.iter().flat_map(|a| [(a, false), (a, true)]) {
            let plain = ManagerView { state, asked, misconfigured, ..ManagerView::default() };
            views.push(plain.clone());
            if creating {
                views.push(ManagerView { requested: Some(START), ..plain.clone() });
                views.push(ManagerView { created: true, ..plain });
            }
        }
    }
    views
}

/// Whether a row speaks of this input in this view, `waited_ms` after the request.
fn applies(row: &Row, view: &ManagerView, event: &str, kind: &str, waited_ms: u64) -> bool {
    let from_fits = row.from == "*" || state(row.from) == view.state;
    let holds = |condition: &str| match condition {
        "-" => true,
        "partial" | "complete" | "not 0" | "0" => kind == condition,
        "requested" => view.requested.is_some(),
        "not requested" => view.requested.is_none(),
        "created" => view.created,
        "not created" => !view.created,
        "asked" => view.asked && !view.misconfigured,
        "nothing asked" => !view.asked && !view.misconfigured,
        "misconfigured" => view.misconfigured,
        "2 s after the request" => view.requested.is_some() && waited_ms >= 2_000,
        other => panic!("the table has a condition {other:?} that the test does not know"),
    };
    row.event == event && from_fits && row.when.split(", ").all(holds)
}

#[test]
fn every_row_happens_and_nothing_moves_without_a_row() {
    let rows = rows();
    let mut happened = vec![false; rows.len()];
    for view in views() {
        for (event, kind, input) in inputs() {
            // Before the grace is over, except for the timer, which is about its end.
            let waits: &[u64] = if event == "timer" { &[0, 1_999, 2_000] } else { &[0] };
            for &waited_ms in waits {
                let at = START.plus_ms(waited_ms);
                let mut after = view.clone();
                after.apply(at, input);
                let told: Vec<usize> = (0..rows.len())
                    .filter(|row| applies(&rows[*row], &view, event, kind, waited_ms))
                    .collect();
                for row in &told {
                    assert_eq!(after.state(at), rows[*row].to, "row {:?} in {view:?}", rows[*row]);
                    happened[*row] = true;
                }
                if told.is_empty() {
                    assert_eq!(after.state, view.state, "{event} ({kind}) moved {view:?}");
                }
            }
        }
    }
    let never: Vec<&str> =
        rows.iter().zip(happened).filter(|(_, did)| !did).map(|(row, _)| row.name).collect();
    assert!(never.is_empty(), "these rows never happen: {never:?}");
    assert_eq!(rows.iter().filter(|row| !row.name.starts_with('A')).count(), 32);
}

#[test]
fn the_flags_are_those_of_the_table() {
    let mut properties = 0;
    for cells in SPEC.lines().map(cells).filter(|cells| cells.len() == 2) {
        if cells[0] == "Property" || cells[0].starts_with("---") {
            continue;
        }
        let states: Vec<ManagerState> = cells[1].split(", ").map(state).collect();
        for state in ManagerState::ALL {
            let flags = serde_json::to_value(state.flags(true)).expect("plain fields");
            assert_eq!(flags[cells[0]], states.contains(&state), "{} in {state:?}", cells[0]);
            assert!(!state.flags(false).show_auto_mode_warning);
        }
        properties += 1;
    }
    assert_eq!(properties, 6);
}

#[test]
fn a_new_session_forgets_what_the_last_one_left() {
    let mut view = ManagerView { misconfigured: true, ..ManagerView::default() };
    view.apply(START, Input::StartSession);
    view.apply(START, Input::ProcessExit { code: 0 });
    assert_eq!(view.state(START), ManagerState::Completed);
}

#[test]
fn creating_ends_by_itself_when_the_id_stays_away() {
    let mut view = ManagerView::default();
    view.apply(START, Input::StartSession);
    view.apply(START, Input::ApiReqStarted);
    assert_eq!(view.next_look(), Some(START.plus_ms(2_000)));
    assert_eq!(view.state(START.plus_ms(1_999)), ManagerState::Creating);
    assert_eq!(view.state(START.plus_ms(2_000)), ManagerState::Streaming);
    view.apply(START.plus_ms(3_000), Input::AskFollowup { partial: false });
    assert_eq!(view.state(START.plus_ms(3_000)), ManagerState::WaitingInput);
}

#[test]
fn sessions_of_other_harnesses_are_shown_by_their_operator_state() {
    let of_state = |group, name: &'static str| {
        of(&AgentState {
            group,
            state: serde_json::from_value(name.into()).expect("a sub-state"),
            label: String::new(),
            core_label: None,
            urgency: Urgency::Usual,
            confidence: 1.0,
            source: crate::moment::Source::Hook,
            rule: "".into(),
            context: None,
            since: START,
            evidence: Vec::new(),
        })
    };
    assert_eq!(of_state(Group::NeedsYou, "needs_permission"), ManagerState::WaitingApproval);
    assert_eq!(of_state(Group::NeedsYou, "usage_limit"), ManagerState::Error);
    assert_eq!(of_state(Group::NeedsYou, "interrupted"), ManagerState::Paused);
    assert_eq!(of_state(Group::NeedsYou, "something_new"), ManagerState::WaitingInput);
    assert_eq!(of_state(Group::Autonomous, "starting"), ManagerState::Creating);
    assert_eq!(of_state(Group::Autonomous, "acting"), ManagerState::Streaming);
    assert_eq!(of_state(Group::Autonomous, "unknown"), ManagerState::Idle);
    assert_eq!(of_state(Group::Delivered, "task_complete"), ManagerState::Completed);
    assert_eq!(of_state(Group::Delivered, "session_ended"), ManagerState::Stopped);
}
