//! What a driven session carries beside its machine.

use std::collections::BTreeMap;

use qd_session::Session;
use qd_session::event::{self, Entry};
use qd_session::id::{CallId, SessionId, TurnId};
use qd_session::limits::{CALLS_PER_ANSWER_MAX, NOTES_MAX};
use qd_session::logbook::{Brief, Called, Frozen, Message, Note, Unkeepable, Used};
use qd_session::machine::{
    Event, Judged, PauseCause, Process, Setup, ToolCall, ToolOutcome, Tools, Verdict,
};
use qd_session::moment::Timestamp;
use qd_session::monitor::RequestKind;
use qd_session::policy::Preset;
use qd_session::seed::Seed;
use serde_json::{Value, json};

pub fn brief() -> Brief {
    let workspace = "/home/u/project".into();
    let (model, provider, preset) = (None, None, Preset::Careful);
    Brief { workspace, model, provider, preset, prompt: None, is_chat: false }
}

/// A session with our tools, and the seed of the next event.
struct Driven(Session, u64);

impl Driven {
    fn ready() -> Self {
        Self::with(Tools::Ours)
    }

    fn with(tools: Tools) -> Self {
        let mut session = Session::new(SessionId::from("sess_1"));
        let setup = Setup { tools, process: Process::WholeSession, hooks: Vec::new() };
        let set_up = event::Event::SetUp { setup, brief: Some(Box::new(brief())) };
        session.apply(&Entry::new(session.id().clone(), Timestamp(1), set_up));
        let mut driven = Self(session, 0);
        driven.hears(Event::Spawned);
        driven.hears(Event::HarnessReady);
        driven
    }

    fn hears(&mut self, event: Event) {
        self.hears_with(event, None);
    }

    fn hears_with(&mut self, event: Event, frozen: Option<Frozen>) {
        self.1 += 1;
        let (seed, at) = (Seed(self.1), Timestamp(self.1 * 10));
        let frozen = frozen.map(Box::new);
        let event = event::Event::Driven { seed, event, frozen };
        self.0.apply(&Entry::new(self.0.id().clone(), at, event));
    }

    fn prompted(&mut self, text: &str) -> TurnId {
        self.hears(Event::UserInput { text: text.into() });
        Seed(self.1).turn()
    }

    fn answers(&mut self, turn: &TurnId, calls: &[&str]) {
        let event = Event::StreamCompleted {
            turn: turn.clone(),
            text: Some("Well.".into()),
            cut_off: false,
        };
        self.hears_with(event, Some(frozen(calls)));
    }

    fn parsed(&mut self, turn: &TurnId, calls: &[(&str, Verdict)]) {
        let judged = |(call, verdict): &(&str, Verdict)| Judged {
            call: ToolCall {
                call_id: CallId::from(*call),
                name: "bash".into(),
                arguments: json!({"command": "make"}),
                mutating: true,
            },
            verdict: verdict.clone(),
        };
        let calls = calls.iter().map(judged).collect();
        self.hears(Event::ResponseParsed { turn: turn.clone(), calls });
    }

    fn messages(&self) -> Vec<Message> {
        let logbook = self.0.logbook().expect("it is driven");
        logbook.conversation().messages().iter().map(|message| (**message).clone()).collect()
    }

    /// What is noted: of runs their status, of the rest what it is.
    fn noted(&self) -> Vec<Value> {
        let notes = self.0.logbook().expect("it is driven").notes().all();
        let told = |note: &Note| serde_json::to_value(note).expect("JSON");
        notes.iter().map(told).collect()
    }

    fn open(&self) -> Vec<(String, RequestKind)> {
        self.0.open_requests().iter().map(|open| (open.id.to_string(), open.kind)).collect()
    }
}

fn frozen(calls: &[&str]) -> Frozen {
    let called = |call: &&str| Called {
        call_id: CallId::from(*call),
        name: "bash".into(),
        arguments: json!({"command": "make"}),
    };
    let used = Used { input_tokens: 5, output_tokens: 2, ..Used::default() };
    let calls = calls.iter().map(called).collect();
    Frozen { calls, message: json!({"as": "it came"}), used, ..Frozen::default() }
}

/// What each call of the conversation got.
fn outputs(messages: &[Message]) -> BTreeMap<String, Vec<String>> {
    let mut outputs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in messages {
        match message {
            Message::Agent { calls, .. } => {
                for call in calls {
                    outputs.entry(call.call_id.to_string()).or_default();
                }
            }
            Message::Operator { outputs: given, .. } => {
                for output in given {
                    let of = outputs.entry(output.call_id.to_string()).or_default();
                    of.push(output.content.to_string());
                }
            }
        }
    }
    outputs
}

#[test]
fn calls_that_nobody_looked_at_before_the_turn_was_ended_are_answered() {
    let mut driven = Driven::ready();
    let turn = driven.prompted("Build it");
    driven.answers(&turn, &["a", "b"]);
    driven.hears(Event::InterruptRequested);
    driven.prompted("Rather not");
    let canceled = vec!["canceled".to_owned()];
    let expected = BTreeMap::from([("a".into(), canceled.clone()), ("b".into(), canceled)]);
    assert_eq!(outputs(&driven.messages()), expected);
}

#[test]
fn a_request_waits_until_the_machine_waits_no_more() {
    let mut driven = Driven::ready();
    let turn = driven.prompted("Build it");
    driven.answers(&turn, &["a", "b"]);
    driven.parsed(&turn, &[("a", Verdict::Ask), ("b", Verdict::Question)]);
    assert_eq!(driven.open(), [("a".to_owned(), RequestKind::Permission)]);
    driven.hears(Event::ApprovalDecided {
        call: "a".into(),
        approved: true,
        message: None,
        mode: None,
    });
    assert_eq!(driven.open(), []);
    let outcome = ToolOutcome::Succeeded { output: "done".into(), is_error: false };
    let run = Seed(driven.1).run(0);
    driven.hears(Event::ToolFinished { run, outcome });
    assert_eq!(driven.open(), [("b".to_owned(), RequestKind::Question)]);
    driven.hears(Event::InputGiven { call: "b".into(), text: "Blue".into(), answers: Vec::new() });
    assert_eq!(driven.open(), []);
    let expected = BTreeMap::from([
        ("a".to_owned(), vec!["done".to_owned()]),
        ("b".to_owned(), vec!["Blue".to_owned()]),
    ]);
    assert_eq!(outputs(&driven.messages()), expected);
    assert_eq!(driven.0.logbook().expect("driven").used().tokens(), 7);
}

#[test]
fn a_run_is_noted_once_as_it_ended() {
    let mut driven = Driven::ready();
    let turn = driven.prompted("Build it");
    driven.answers(&turn, &["a"]);
    driven.parsed(&turn, &[("a", Verdict::Allow)]);
    let run = Seed(driven.1).run(0);
    driven.hears(Event::ToolStarted { run: run.clone() });
    assert_eq!(driven.noted().len(), 1);
    assert_eq!(driven.noted()[0]["status"], "running");
    let outcome = ToolOutcome::Succeeded { output: "done".into(), is_error: false };
    driven.hears(Event::ToolFinished { run: run.clone(), outcome });
    let [noted] = &driven.noted()[..] else { panic!("{:?}", driven.noted()) };
    assert_eq!(noted["runId"], json!(run));
    assert_eq!(noted["status"], "succeeded");
    assert_eq!(noted["sessionId"], "sess_1");
    assert_eq!(noted.get("arguments"), None, "its answer has them");
}

#[test]
fn a_session_that_was_prompted_and_came_up_again_waits_for_the_next_prompt() {
    let label = |driven: &Driven| driven.0.resolve(Timestamp(1)).expect("it is driven").label;
    let mut driven = Driven::ready();
    assert_eq!(label(&driven), "Waiting for your first prompt");
    for prompt in [None, Some("Build it")] {
        if let Some(prompt) = prompt {
            driven.prompted(prompt);
        }
        driven.hears(Event::StopRequested);
        driven.hears(Event::HarnessExited { code: Some(0), why: None });
        driven.hears(Event::ResumeRequested);
        driven.hears(Event::HarnessReady);
        let expected = match prompt {
            None => "Waiting for your first prompt",
            Some(_) => "Waiting for your next prompt",
        };
        assert_eq!(label(&driven), expected);
    }
}

#[test]
fn a_call_that_is_in_no_answer_is_noted_with_what_it_is_about() {
    let mut driven = Driven::with(Tools::Theirs);
    let turn = driven.prompted("Build it");
    for (nth, content) in ["short".to_owned(), "x".repeat(9_000)].into_iter().enumerate() {
        let call = ToolCall {
            call_id: CallId::new(format!("call_{nth}")),
            name: "Write".into(),
            arguments: json!({"content": content, "file_path": "a.rs", "lines": [1]}),
            mutating: true,
        };
        driven.hears(Event::ToolReported { turn: turn.clone(), call });
    }
    let [whole, cut] = &driven.noted()[..] else { panic!("{:?}", driven.noted()) };
    let expected = json!({"content": "short", "file_path": "a.rs", "lines": [1]});
    assert_eq!(whole["arguments"], expected);
    let expected = json!({"content": "x".repeat(600), "file_path": "a.rs"});
    assert_eq!(cut["arguments"], expected);
}

#[test]
fn a_pause_is_noted_and_the_usual_round_is_not() {
    let mut driven = Driven::ready();
    driven.hears(Event::PauseRequested { cause: PauseCause::Operator });
    driven.hears(Event::ResumeRequested);
    let reasons = |driven: &Driven| {
        let noted = driven.noted();
        noted.iter().map(|note| note["reason"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(reasons(&driven), ["paused", "resumed"]);
    driven.prompted("Build it");
    assert_eq!(reasons(&driven), ["paused", "resumed"]);
    for _ in 0..NOTES_MAX {
        driven.hears(Event::PauseRequested { cause: PauseCause::Operator });
        driven.hears(Event::InterruptRequested);
        driven.hears(Event::ResumeRequested);
    }
    assert!(driven.noted().len() <= NOTES_MAX);
}

#[test]
fn an_answer_of_an_old_turn_is_no_part_of_the_conversation() {
    let mut driven = Driven::ready();
    let turn = driven.prompted("Build it");
    driven.hears(Event::InterruptRequested);
    let before = driven.messages();
    driven.answers(&turn, &["a"]);
    assert_eq!(driven.messages(), before);
}

#[test]
fn yolo_that_is_switched_off_asks_again() {
    let mut driven = Driven::ready();
    let preset = |driven: &Driven| driven.0.logbook().expect("driven").preset();
    assert_eq!(preset(&driven), Preset::Careful);
    driven.hears(Event::YoloSwitched { on: true });
    assert_eq!(preset(&driven), Preset::Yolo);
    driven.hears(Event::YoloSwitched { on: false });
    assert_eq!(preset(&driven), Preset::Careful);
}

#[test]
fn what_cannot_be_kept_is_told_before_it_is_acted_on() {
    assert_eq!(frozen(&["a", "b"]).trouble(), None);
    assert_eq!(frozen(&["a", "a"]).trouble(), Some(Unkeepable::CallsAlike));
    let names: Vec<String> = (0..=CALLS_PER_ANSWER_MAX).map(|nth| nth.to_string()).collect();
    let many: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(frozen(&many).trouble(), Some(Unkeepable::TooManyCalls));
    let deep = (0..100).fold(Value::Null, |inner, _| json!([inner]));
    assert_eq!(Frozen { message: deep, ..frozen(&[]) }.trouble(), Some(Unkeepable::TooDeep));
    let long = Value::from("x".repeat(5 << 20));
    assert_eq!(Frozen { message: long, ..frozen(&[]) }.trouble(), Some(Unkeepable::TooLong));
}

#[test]
fn entries_from_before_the_logbook_are_read() {
    let set_up = r#"{"v":1,"session":"sess_1","at":1,"entry":"set_up",
        "setup":{"tools":"ours","process":"whole_session"}}"#;
    let driven = r#"{"v":1,"session":"sess_1","at":2,"entry":"driven","seed":1,
        "event":{"type":"spawned"}}"#;
    let mut session = Session::new(SessionId::from("sess_1"));
    for line in [set_up, driven] {
        session.apply(&serde_json::from_str(line).expect("an entry"));
    }
    assert!(session.machine().is_some());
    assert!(session.logbook().is_none());
}
