//! The broker answers: what is carried is on record first, once, and closes by the agent's own
//! signals alone.

use qd_broker::desk::{Answering, Carried, Commanding, Declined, Errand, Task};
use qd_broker::hook_intake::{FrameId, HookReply};
use qd_broker::{Broker, Card, Input, Output, Staying};
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_session::decision::{Body, By, Command, Decision, Record, Refused, Scope, Standing};
use qd_session::id::{DecisionId, IdempotencyKey, RequestKey, SessionId};
use qd_session::moment::Timestamp;
use serde_json::{Value, json};

const START_MS: u64 = 1_800_000_000_000;

/// A broker with one session of Claude Code, and everything that it put out.
#[derive(Default)]
struct Deck {
    broker: Broker,
    now_ms: u64,
    records: Vec<Record>,
    errands: Vec<Errand>,
    released: Vec<FrameId>,
    card: Option<Card>,
}

impl Deck {
    fn new() -> Self {
        Self { now_ms: START_MS, ..Self::default() }
    }

    fn now(&mut self) -> Timestamp {
        self.now_ms += 10;
        Timestamp(self.now_ms)
    }

    fn take(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Record(record) => self.records.push(*record),
                Output::Carry(errand) => self.errands.push(*errand),
                Output::Release(frame) => self.released.push(frame),
                Output::Show(card) => self.card = Some(*card),
                Output::Found { .. }
                | Output::Append(_)
                | Output::Locate(_)
                | Output::Settled(_)
                | Output::Remove(_) => {}
            }
        }
    }

    fn hook(&mut self, mut payload: Value) -> Vec<u8> {
        payload["session_id"] = "s".into();
        let (now, payload) = (self.now(), payload.to_string().into_bytes());
        let signal = Signal {
            at: now,
            seq: 0,
            channel: Channel::Hook,
            direction: Direction::FromAgent,
            file: None,
            payload: &payload,
        };
        let harness = Harness::ClaudeCode;
        let outputs = self.broker.handle(now, Input::Signal { harness, signal });
        self.take(outputs);
        payload
    }

    /// The agent asks, and its forwarder stays.
    fn asks(&mut self, nth: u64) -> FrameId {
        let call = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_use_id": format!("c{nth}"), "tool_input": {"command": "make"}});
        self.hook(call);
        let payload = self.hook(json!({"hook_event_name": "PermissionRequest",
            "tool_name": "Bash", "tool_input": {"command": "make"}}));
        self.stays(nth, &payload, Some("cli"))
    }

    fn stays(&mut self, nth: u64, payload: &[u8], entry: Option<&str>) -> FrameId {
        let frame = FrameId(u128::from(self.now_ms * 1_000_000) << 64 | u128::from(nth));
        let harness = Harness::ClaudeCode;
        let now = self.now();
        let outputs = self.broker.arrived(now, &Staying { harness, frame, entry, payload });
        self.take(outputs);
        self.waits(1_000);
        frame
    }

    fn waits(&mut self, ms: u64) {
        self.now_ms += ms;
        let now = self.now();
        let outputs = self.broker.handle(now, Input::Woken);
        self.take(outputs);
    }

    fn ends(&mut self, nth: u64) {
        self.hook(json!({"hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_use_id": format!("c{nth}"), "tool_input": {"command": "make"}}));
    }

    fn request(&self) -> RequestKey {
        let card = self.card.as_ref().expect("a card");
        card.requests[0].key.clone().expect("a key")
    }

    fn answers(&mut self, name: &str, answer: Decision) -> Result<Standing, Declined> {
        let answering = Answering {
            decision: DecisionId::new(name),
            request: self.request(),
            by: By { who: "operator".into(), device: name.into() },
            rule: None,
            answer,
            key: Some(IdempotencyKey::new(name)),
        };
        let now = self.now();
        let (taken, outputs) = self.broker.answer(now, answering);
        self.take(outputs);
        taken.map(|taken| taken.standing)
    }

    fn brings_back(&mut self, carried: &Carried) {
        let errand = self.errands.remove(0);
        let now = self.now();
        let outputs = self.broker.carried(now, &errand.decision, &errand.task.way(), carried);
        self.take(outputs);
    }

    fn written(&self) -> Vec<&'static str> {
        self.records.iter().map(|record| record.body.name()).collect()
    }

    fn answer_shown(&self) -> Option<String> {
        let request = self.card.as_ref()?.requests.first()?;
        let answer = serde_json::to_value(request.answer.as_ref()?).expect("JSON");
        answer["state"].as_str().map(str::to_owned)
    }
}

fn allow() -> Decision {
    Decision::Allow { input: None, scope: Scope::Once }
}

fn deny() -> Decision {
    Decision::Deny { message: None, interrupt: false }
}

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
    let session: SessionId = deck.card.as_ref().expect("a card").session_id.clone();
    let restored = deck.broker.session(&session).expect("a session").clone();
    let mut again = Deck { now_ms: deck.now_ms, ..Deck::default() };
    for record in &deck.records {
        again.broker.recall_record(record);
    }
    again.broker.follow_records(deck.records.last().expect("a record").link());
    let now = again.now();
    let vendor_id = "s".into();
    let input =
        Input::Restored { harness: Harness::ClaudeCode, vendor_id, session: Box::new(restored) };
    let outputs = again.broker.handle(now, input);
    again.take(outputs);
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

#[test]
fn the_hook_of_a_subagent_stays_only_while_somebody_looks_and_not_for_long() {
    let asked = json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "agent_id": "a1", "tool_input": {"command": "make"}});
    let mut deck = Deck::new();
    let payload = deck.hook(asked.clone());
    let alone = deck.stays(1, &payload, Some("cli"));
    assert_eq!(deck.released, [alone]);

    let mut deck = Deck::new();
    deck.broker.set_presence(true);
    let payload = deck.hook(asked);
    let frame = deck.stays(1, &payload, Some("cli"));
    assert_eq!(deck.released, []);
    assert!(deck.broker.next_wake().is_some_and(|wake| wake.0 < deck.now_ms + 30_000));
    deck.waits(30_000);
    assert_eq!(deck.released, [frame]);
    let request = &deck.card.as_ref().expect("a card").requests[0];
    assert!(request.way.is_none() && request.why_not.is_some(), "{request:?}");
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
fn what_cannot_be_done_is_refused_with_a_sentence() {
    let mut deck = Deck::new();
    deck.hook(json!({"hook_event_name": "UserPromptSubmit", "prompt": "go"}));
    let session = deck.card.clone().expect("a card").session_id;
    for command in [Command::Interrupt, Command::Stop, Command::Focus, Command::Yolo { on: true }] {
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
