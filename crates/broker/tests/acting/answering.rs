use qd_broker::desk::{Answering, Carried, Commanding, Declined, Task};
use qd_broker::viewing::Viewing;
use qd_broker::{Broker, Input, Output, Staying};
use qd_harness::waiting_hook::Heard;
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_hook_wire::{FrameId, HookReply};
use qd_session::decision::{Answer, Body, By, Command, Decision, Refused, Standing};
use qd_session::id::{DecisionId, SessionId};
use qd_session::moment::Timestamp;
use serde_json::json;

use crate::deck::{Deck, START_MS, allow, deny};

#[test]
fn an_answer_is_on_record_then_carried_then_closed_by_the_agent() {
    let mut deck = Deck::new();
    let frame = deck.asks(1);
    assert_eq!(deck.card.as_ref().expect("a card").requests[0].way, Some("hook"));
    assert_eq!(deck.answers("a", allow()), Ok(Standing::InFlight));
    assert_eq!(deck.written(), ["given"]);
    assert_eq!(deck.answer_shown().as_deref(), Some("sending"));
    assert!(matches!(&deck.errands[0].task, Task::Reply { frame: to, .. } if *to == frame));
    deck.brings_back(&Carried::Delivered);
    assert_eq!(deck.answer_shown().as_deref(), Some("delivered"), "it is still open");
    deck.ends(1);
    assert_eq!(deck.written(), ["given", "delivered", "confirmed"]);
    assert!(deck.card.as_ref().expect("a card").requests.is_empty());
    assert_eq!(deck.released, [frame], "whoever waited is let go");
}

#[test]
fn the_second_answer_is_told_of_the_first_and_repeating_is_free() {
    let mut deck = Deck::new();
    deck.asks(1);
    assert_eq!(deck.answers("a", allow()), Ok(Standing::InFlight));
    assert_eq!(deck.answers("a", allow()), Ok(Standing::InFlight), "the same again");
    match deck.answers("b", deny()) {
        Err(Declined::Book(Refused::AlreadyAnswered { first })) => {
            assert_eq!(first.subject.by().device, "a");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(deck.errands.len(), 1);
    assert_eq!(deck.written(), ["given"]);
}

#[test]
fn an_answer_to_what_was_shown_before_is_refused() {
    let mut deck = Deck::new();
    deck.asks(1);
    let shown = deck.card.as_ref().expect("a card").requests[0].revision.clone();
    let answers = |deck: &mut Deck, revision: Option<String>| {
        let by = By { who: "operator".into(), device: "phone".into() };
        let (decision, request) = (DecisionId::new("d"), deck.request());
        let answering =
            Answering { decision, request, by, rule: None, answer: allow(), revision, key: None };
        let now = deck.now();
        let (taken, outputs) = deck.broker.answer(now, answering);
        deck.take(outputs);
        taken.map(|taken| taken.standing)
    };
    assert_eq!(answers(&mut deck, Some("of another command".into())), Err(Declined::Replaced));
    assert_eq!(deck.written(), [""; 0]);
    assert!(deck.errands.is_empty());
    assert_eq!(answers(&mut deck, shown), Ok(Standing::InFlight));
}

#[test]
fn a_card_says_where_only_the_beginning_of_an_input_is_kept() {
    for (length, is_cut) in [(1_000, false), (1 << 20, true)] {
        let mut deck = Deck::new();
        let content = format!("{}; rm -rf ~", "a".repeat(length));
        let told = |event: &str| {
            json!({"hook_event_name": event, "tool_name": "Write", "tool_use_id": "c1",
                "tool_input": {"file_path": "/x", "content": content}})
        };
        deck.hook(told("PreToolUse"));
        let payload = deck.hook(told("PermissionRequest"));
        deck.stays(1, &payload, Some("cli"));
        let request = deck.card.as_ref().expect("a card").requests[0].clone();
        let shown = request.input.as_ref().expect("an input").to_string();
        assert_eq!((request.cut, shown.contains("rm -rf")), (is_cut, !is_cut));
        // Nobody allows what cannot be read here, whichever client asks; a denial is always taken.
        let taken = deck.answers("phone", allow());
        match is_cut {
            false => assert_eq!(taken, Ok(Standing::InFlight)),
            true => {
                let Err(Declined::Impossible { why }) = taken else { panic!("{taken:?}") };
                assert!(why.starts_with("Only the beginning of it is known here"), "{why}");
                assert_eq!(deck.answers("phone", deny()), Ok(Standing::InFlight));
            }
        }
    }
}

#[test]
fn a_plan_of_which_only_the_beginning_is_kept_says_so() {
    for (length, is_cut) in [(40_000, false), (100_000, true)] {
        let mut deck = Deck::new();
        let plan = "a".repeat(length);
        deck.hook(json!({"hook_event_name": "PermissionRequest", "tool_name": "ExitPlanMode",
            "tool_use_id": "c1", "tool_input": {"plan": plan}}));
        let request = deck.card.as_ref().expect("a card").requests[0].clone();
        let kept = request.text.unwrap_or_default().len();
        assert_eq!((request.cut, kept == length), (is_cut, !is_cut), "{kept} of {length}");
    }
}

#[test]
fn what_replaced_another_request_is_allowed_by_its_revision_only() {
    let mut deck = Deck { is_recording: true, ..Deck::new() };
    let asks = |deck: &mut Deck, command: &str| {
        for event in ["PreToolUse", "PermissionRequest"] {
            deck.hook(json!({"hook_event_name": event, "tool_name": "Bash", "tool_use_id": "c1",
                "tool_input": {"command": command}}));
        }
        deck.waits(1_000);
    };
    asks(&mut deck, "make");
    asks(&mut deck, "make clean");
    assert_eq!(deck.card.as_ref().expect("a card").requests.len(), 1);
    assert_eq!(deck.answers("phone", allow()), Err(Declined::RevisionNeeded));
    assert_eq!(deck.answers("phone", deny()), Ok(Standing::InFlight), "it lets nothing happen");
}

#[test]
fn what_did_not_arrive_is_open_again() {
    let mut deck = Deck::new();
    deck.asks(1);
    deck.answers("a", allow()).expect("taken");
    deck.brings_back(&Carried::Failed { why: "it is gone".into() });
    assert_eq!(deck.answer_shown().as_deref(), Some("failed"));
    assert_eq!(deck.answers("b", deny()), Ok(Standing::InFlight));
    deck.brings_back(&Carried::Delivered);
    assert_eq!(deck.written(), ["given", "failed", "given", "delivered"]);
}

#[test]
fn the_terminal_may_be_first() {
    let mut deck = Deck::new();
    let frame = deck.asks(1);
    let request = deck.request();
    deck.ends(1);
    assert_eq!(deck.released, [frame]);
    let answering = Answering {
        decision: DecisionId::new("late"),
        request,
        by: By { who: "operator".into(), device: "phone".into() },
        rule: None,
        answer: allow(),
        revision: None,
        key: None,
    };
    let now = deck.now();
    let (taken, outputs) = deck.broker.answer(now, answering);
    assert_eq!(taken, Err(Declined::Book(Refused::Closed)));
    assert!(outputs.is_empty(), "{outputs:?}");
    assert_eq!(deck.written(), [""; 0]);
}

#[test]
fn an_answer_that_the_terminal_overtook_says_so() {
    let mut deck = Deck::new();
    deck.asks(1);
    deck.answers("a", allow()).expect("taken");
    deck.ends(1);
    deck.brings_back(&Carried::Failed { why: "it is gone".into() });
    assert_eq!(deck.written(), ["given", "overtaken"]);
}

#[test]
fn a_restarted_broker_delivers_once_what_was_given_and_not_carried() {
    let mut deck = Deck::new();
    let payload = {
        deck.asks(1);
        deck.answers("a", allow()).expect("taken");
        json!({"hook_event_name": "PermissionRequest", "session_id": "s",
            "tool_name": "Bash", "tool_input": {"command": "make"}})
    };
    let mut again = deck.restarted();
    assert_eq!(again.request(), deck.request(), "it is the same request");
    assert!(again.errands.is_empty(), "nobody is there yet");
    again.stays(1, payload.to_string().as_bytes(), Some("cli"));
    assert_eq!(again.errands.len(), 1, "its forwarder has come back for it");
    assert!(matches!(
        again.answers("b", deny()),
        Err(Declined::Book(Refused::AlreadyAnswered { .. }))
    ));
    again.brings_back(&Carried::Delivered);
    again.ends(1);
    let bodies: Vec<&Body> = again.records.iter().map(|record| &record.body).collect();
    assert_eq!(again.written(), ["delivered", "confirmed"], "{bodies:?}");
}

/// The hook of its call comes after that of its question, so the question is told twice.
#[test]
fn a_request_keeps_its_key_over_a_restart_however_often_it_was_told() {
    let mut deck = Deck::new();
    let asked = json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": "make"}});
    let call = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": "c1", "tool_input": {"command": "make"}});
    deck.hook(asked);
    deck.hook(call);
    deck.waits(1_000);
    let again = deck.restarted();
    assert_eq!(again.request(), deck.request());
}

/// The registry tells of a dialog before the hook that opened it does.
#[test]
fn a_request_keeps_its_key_when_an_earlier_time_is_told_later() {
    for is_answered in [false, true] {
        let mut deck = Deck::new();
        deck.asks(1);
        if is_answered {
            deck.answers("a", allow()).expect("taken");
        }
        let before = deck.request();
        let late = json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
            "tool_input": {"command": "make"}});
        let now_ms = std::mem::replace(&mut deck.now_ms, START_MS + 5);
        deck.hook(late);
        deck.now_ms = now_ms;
        assert_eq!(deck.request(), before);
        let mut again = deck.restarted();
        assert_eq!(again.request(), before);
        let second = again.answers("b", deny());
        assert_eq!(
            is_answered,
            matches!(second, Err(Declined::Book(Refused::AlreadyAnswered { .. })))
        );
    }
}

#[test]
fn nobody_is_kept_waiting_for_nothing() {
    let mut deck = Deck::new();
    let asked = deck.hook(json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": "make"}}));
    let headless = deck.stays(1, &asked, Some("sdk-cli"));
    assert_eq!(deck.released, [headless], "`-p` denies what no hook answers");
    let unknown = deck.stays(2, br#"{"session_id":"nobody","hook_event_name":"Stop"}"#, None);
    let other = deck.stays(3, br#"{"session_id":"s","hook_event_name":"PreToolUse"}"#, None);
    assert_eq!(deck.released, [headless, unknown, other]);
}

/// The hook of a subagent hides its dialog from whoever sits in front of the terminal.
fn subagent_asks(viewing: impl FnOnce(&Deck) -> Viewing) -> (Deck, FrameId) {
    let mut deck = Deck::new();
    deck.hook(json!({"hook_event_name": "SubagentStart", "agent_id": "a1"}));
    let viewing = viewing(&deck);
    deck.looks_at(viewing);
    let payload = deck.hook(json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "agent_id": "a1", "tool_input": {"command": "make"}}));
    let frame = deck.stays(1, &payload, Some("cli"));
    (deck, frame)
}

fn board() -> Viewing {
    Viewing { board: true, ..Viewing::default() }
}

fn page_of(session: &SessionId) -> Viewing {
    Viewing { sessions: [session.clone()].into(), ..Viewing::default() }
}

#[test]
fn the_hook_of_a_subagent_is_held_only_for_somebody_who_looks_at_its_card() {
    let (mut deck, frame) = subagent_asks(|_| Viewing::default());
    assert_eq!(deck.released, [frame], "nobody looks");
    // A page that is open somewhere is not looked at.
    deck = Deck::new();
    deck.broker.set_presence(true);
    let payload = deck.hook(json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "agent_id": "a1", "tool_input": {"command": "make"}}));
    let frame = deck.stays(1, &payload, Some("cli"));
    assert_eq!(deck.released, [frame]);
    let (deck, frame) = subagent_asks(|_| page_of(&SessionId::new("another")));
    assert_eq!(deck.released, [frame], "the page of another session");

    let own = |deck: &Deck| page_of(&deck.card.as_ref().expect("a card").session_id);
    for viewing in [(|_: &Deck| board()) as fn(&Deck) -> Viewing, own] {
        let (mut deck, frame) = subagent_asks(viewing);
        assert_eq!(deck.released, []);
        let request = deck.card.as_ref().expect("a card").requests[0].clone();
        assert_eq!(request.way, Some("hook"));
        let until = request.hidden_until.expect("its dialog is hidden");
        assert!((deck.now_ms..=deck.now_ms + 30_000).contains(&until.0), "{until:?}");
        // Who looks away has the dialog in the terminal at once.
        deck.looks_at(Viewing::default());
        assert_eq!(deck.released, [frame]);
        let request = &deck.card.as_ref().expect("a card").requests[0];
        assert!(request.way.is_none() && request.hidden_until.is_none(), "{request:?}");
        assert!(request.why_not.is_some(), "{request:?}");
    }
}

#[test]
fn the_hook_of_a_subagent_is_not_held_for_long_whoever_looks() {
    let (mut deck, frame) = subagent_asks(|_| board());
    assert!(deck.broker.next_wake().is_some_and(|wake| wake.0 <= deck.now_ms + 30_000));
    deck.waits(30_000);
    assert_eq!(deck.released, [frame]);
    let request = &deck.card.as_ref().expect("a card").requests[0];
    assert!(request.way.is_none() && request.why_not.is_some(), "{request:?}");
}

#[test]
fn who_answers_and_looks_away_has_answered() {
    let (mut deck, _) = subagent_asks(|_| board());
    deck.answers("a", allow()).expect("taken");
    deck.looks_at(Viewing::default());
    assert_eq!(deck.released, []);
    assert_eq!(deck.errands.len(), 1);
}

/// Both run the same command: what one is allowed is not the other's answer.
#[test]
fn a_forwarder_waits_for_what_its_own_agent_asked() {
    for (asking, other) in [(Some("a1"), None), (None, Some("a1"))] {
        let mut deck = Deck::new();
        deck.looks_at(board());
        let hook = |agent: Option<&str>| match agent {
            Some(agent) => json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
                "tool_input": {"command": "make"}, "agent_id": agent}),
            None => json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
                "tool_input": {"command": "make"}}),
        };
        deck.hook(hook(other));
        let payload = deck.hook(hook(asking));
        deck.stays(1, &payload, Some("cli"));
        let requests = deck.card.clone().expect("a card").requests;
        let held: Vec<_> = requests.iter().filter(|one| one.way.is_some()).collect();
        assert_eq!(held.len(), 1, "{requests:?}");
        assert_eq!(held[0].agent.as_deref(), asking);
    }
}

#[test]
fn the_next_prompt_reaches_a_session_whose_turn_is_over() {
    let mut deck = Deck::new();
    let stop = json!({"hook_event_name": "Stop", "last_assistant_message": "Done.",
        "background_tasks": [], "session_crons": []});
    let payload = deck.hook(stop);
    let old = deck.stays(1, &payload, Some("cli"));
    let frame = deck.stays(2, &payload, Some("cli"));
    assert_eq!(deck.released, [old], "the newer one takes its place");
    let card = deck.card.clone().expect("a card");
    assert!(card.capabilities.can_prompt, "{:?}", card.capabilities);
    let commanding = Commanding {
        decision: DecisionId::new("p"),
        session: card.session_id,
        by: By { who: "operator".into(), device: "phone".into() },
        command: Command::Prompt { text: "go on".into() },
        key: None,
    };
    let now = deck.now();
    let (taken, outputs) = deck.broker.command(now, commanding);
    assert!(taken.is_ok(), "{taken:?}");
    deck.take(outputs);
    let reply = HookReply::rewake("go on").expect("short");
    assert_eq!(deck.errands[0].task, Task::Reply { frame, reply });
    deck.hook(json!({"hook_event_name": "UserPromptSubmit", "prompt": "<task-notification>"}));
    assert_eq!(deck.released, [old, frame]);
}

#[test]
fn a_turn_is_ended_by_a_request_of_its_own_that_nobody_has_answered() {
    let mut deck = Deck::new();
    deck.looks_at(board());
    let payload = deck.hook(json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "agent_id": "a1", "tool_input": {"command": "make"}}));
    deck.stays(1, &payload, Some("cli"));
    assert!(!deck.card.as_ref().expect("a card").capabilities.can_interrupt);
    assert!(matches!(deck.commands(Command::Interrupt), Err(Declined::Impossible { .. })));

    let mut deck = Deck::new();
    deck.asks(1);
    deck.answers("a", allow()).expect("taken");
    assert!(!deck.card.as_ref().expect("a card").capabilities.can_interrupt);
    assert!(matches!(deck.commands(Command::Interrupt), Err(Declined::Impossible { .. })));
    deck.brings_back(&Carried::Failed { why: "it is gone".into() });
    assert_eq!(deck.commands(Command::Interrupt), Ok(Standing::InFlight));
}

/// What is on record is what the operator saw last.
#[test]
fn a_request_that_is_told_anew_is_recorded_as_it_is_shown() {
    let mut deck = Deck { is_recording: true, ..Deck::new() };
    deck.hook(json!({"hook_event_name": "Elicitation", "mcp_server_name": "db",
        "message": "Which one?"}));
    deck.hook(json!({"hook_event_name": "Elicitation", "mcp_server_name": "db",
        "message": "Which one, of the three?"}));
    let shown = deck.card.as_ref().expect("a card").requests[0].text.clone();
    assert_eq!(shown.as_deref(), Some("Which one, of the three?"));
    let answers = vec![Answer { question: "Which one?".into(), values: vec!["first".into()] }];
    deck.answers("a", Decision::Answer { answers }).expect("taken");
    let Body::Given(offer) = &deck.records[0].body else { panic!("{:?}", deck.records) };
    assert_eq!(offer.shown.text, shown);
}

/// The hook of Codex keeps it from asking in its terminal; its daemon does not.
#[test]
fn a_hook_of_codex_is_let_go_once_its_daemon_is_heard() {
    let mut broker = Broker::default();
    let (harness, mut now) = (Harness::Codex, Timestamp(START_MS));
    broker.set_viewing(now, board());
    let mut hears = |broker: &mut Broker, channel: Channel, payload: &str| {
        now = now.plus_ms(1_000);
        let (direction, payload) = (Direction::FromAgent, payload.as_bytes());
        let signal = Signal { at: now, seq: 0, channel, direction, file: None, payload };
        broker.handle(now, Input::Signal { harness, signal })
    };
    let hook = |event: &str| {
        json!({"session_id": "T", "turn_id": "U", "cwd": "/w", "hook_event_name": event,
            "tool_name": "Bash", "tool_input": {"command": "touch x"}, "prompt": "go"})
        .to_string()
    };
    hears(&mut broker, Channel::Hook, &hook("UserPromptSubmit"));
    let asked = hook("PermissionRequest");
    hears(&mut broker, Channel::Hook, &asked);
    let frame = FrameId(1);
    let staying =
        Staying { harness, frame, entry: None, pid: None, heard: Heard::all(asked.as_bytes()) };
    let outputs = broker.arrived(Timestamp(START_MS + 5_000), &staying);
    assert!(!outputs.contains(&Output::Release(frame)), "{outputs:?}");
    let waiting = json!({"method": "thread/status/changed", "params": {"threadId": "T",
        "status": {"type": "active", "activeFlags": ["waitingOnApproval"]}}});
    let outputs = hears(&mut broker, Channel::AppServer, &waiting.to_string());
    assert!(outputs.contains(&Output::Release(frame)), "{outputs:?}");
}

#[test]
fn what_cannot_be_done_is_refused_with_a_sentence() {
    let mut deck = Deck::new();
    deck.hook(json!({"hook_event_name": "UserPromptSubmit", "prompt": "go"}));
    let session = deck.card.clone().expect("a card").session_id;
    for command in [Command::Interrupt, Command::Stop, Command::Focus, Command::Resume] {
        let commanding = Commanding {
            decision: DecisionId::new("c"),
            session: session.clone(),
            by: By { who: "operator".into(), device: "phone".into() },
            command,
            key: None,
        };
        let now = deck.now();
        let (taken, outputs) = deck.broker.command(now, commanding);
        let Err(Declined::Impossible { why }) = taken else { panic!("{taken:?}") };
        assert!(!why.is_empty());
        assert!(outputs.is_empty(), "{outputs:?}");
    }
}
