//! A broker with one session, of Claude Code where nothing else is said, and everything that it
//! put out.

use std::collections::BTreeMap;

use qd_broker::desk::{Answering, Carried, Commanding, Declined, Errand};
use qd_broker::survey::{Followed, Survey, Surveyed};
use qd_broker::viewing::Viewing;
use qd_broker::{Broker, Card, Input, Output, Staying};
use qd_harness::waiting_hook::Heard;
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_hook_wire::FrameId;
use qd_session::Session;
use qd_session::decision::{By, Command, Decision, Record, Scope, Standing};
use qd_session::event::Entry;
use qd_session::id::{DecisionId, IdempotencyKey, RequestKey, SessionId};
use qd_session::moment::Timestamp;
use qd_session::policy::Tightening;
use serde_json::{Value, json};

pub const START_MS: u64 = 1_800_000_000_000;

#[derive(Default)]
pub struct Deck {
    pub broker: Broker,
    pub now_ms: u64,
    pub records: Vec<Record>,
    pub errands: Vec<Errand>,
    pub released: Vec<FrameId>,
    pub card: Option<Card>,
    pub journal: Vec<Entry>,
    /// The key that each request was shown with, by its agent's name of it.
    pub keys: BTreeMap<String, RequestKey>,
    /// Nobody is there: it is played.
    pub is_recording: bool,
    /// What the files of every folder say.
    pub repository: Tightening,
    /// Files that are somewhere else than they say.
    pub links: Vec<(String, String)>,
}

impl Deck {
    pub fn new() -> Self {
        Self { now_ms: START_MS, ..Self::default() }
    }

    pub fn now(&mut self) -> Timestamp {
        self.now_ms += 10;
        Timestamp(self.now_ms)
    }

    pub fn take(&mut self, outputs: Vec<Output>) {
        let mut surveys = Vec::new();
        for output in outputs {
            match output {
                Output::Record(record) => self.records.push(*record),
                Output::Carry(errand) => self.errands.push(*errand),
                Output::Release(frame) => self.released.push(frame),
                Output::Show(card) => self.card = Some(*card),
                Output::Append(entry) => self.journal.push(entry),
                Output::Survey(survey) => surveys.push(survey),
                Output::Found { .. }
                | Output::Locate(_)
                | Output::LookInto { .. }
                | Output::Settled(_)
                | Output::Run(_)
                | Output::Changed(_)
                | Output::Streamed(_)
                | Output::Remove(_) => {}
            }
        }
        let requests = self.card.iter().flat_map(|card| &card.requests);
        let shown = requests.filter_map(|one| Some((one.request_id.clone(), one.key.clone()?)));
        self.keys.extend(shown.collect::<Vec<_>>());
        for Survey { folder, request } in surveys {
            let (now, tightening) = (self.now(), self.repository.clone());
            let followed = request.map(|(request, named)| {
                let led_to = self.links.iter().filter(|(from, _)| named.contains(from));
                let led_to = led_to.map(|(_, to)| Some(to.clone())).collect();
                Followed { request, named, led_to }
            });
            let surveyed = Surveyed { folder, tightening, followed };
            let outputs = self.broker.handle(now, Input::Surveyed(surveyed));
            self.take(outputs);
        }
    }

    pub fn hook(&mut self, mut payload: Value) -> Vec<u8> {
        payload["session_id"] = "s".into();
        payload["cwd"] = "/work/shop".into();
        let payload = payload.to_string().into_bytes();
        self.hears(Harness::ClaudeCode, Channel::Hook, &payload);
        payload
    }

    pub fn hears(&mut self, harness: Harness, channel: Channel, payload: &[u8]) {
        let now = self.now();
        let direction = Direction::FromAgent;
        let signal = Signal { at: now, seq: 0, channel, direction, file: None, payload };
        let input = match self.is_recording {
            true => Input::Played { harness, signal },
            false => Input::Signal { harness, signal },
        };
        let outputs = self.broker.handle(now, input);
        self.take(outputs);
    }

    /// The agent asks, and its forwarder stays.
    pub fn asks(&mut self, nth: u64) -> FrameId {
        let call = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_use_id": format!("c{nth}"), "tool_input": {"command": "make"}});
        self.hook(call);
        let payload = self.hook(json!({"hook_event_name": "PermissionRequest",
            "tool_name": "Bash", "tool_input": {"command": "make"}}));
        self.stays(nth, &payload, Some("cli"))
    }

    pub fn stays(&mut self, nth: u64, payload: &[u8], entry: Option<&str>) -> FrameId {
        let frame = FrameId(u128::from(self.now_ms * 1_000_000) << 64 | u128::from(nth));
        let harness = Harness::ClaudeCode;
        let now = self.now();
        let outputs = self.broker.arrived(
            now,
            &Staying { harness, frame, entry, pid: None, heard: Heard::all(payload) },
        );
        self.take(outputs);
        self.waits(1_000);
        frame
    }

    /// The operator has this before them from now on.
    pub fn looks_at(&mut self, viewing: Viewing) {
        let now = self.now();
        let outputs = self.broker.set_viewing(now, viewing);
        self.take(outputs);
    }

    pub fn waits(&mut self, ms: u64) {
        self.now_ms += ms;
        let now = self.now();
        let outputs = self.broker.handle(now, Input::Woken);
        self.take(outputs);
    }

    pub fn ends(&mut self, nth: u64) {
        self.hook(json!({"hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_use_id": format!("c{nth}"), "tool_input": {"command": "make"}}));
    }

    pub fn request(&self) -> RequestKey {
        let card = self.card.as_ref().expect("a card");
        card.requests[0].key.clone().expect("a key")
    }

    /// Somebody answers what the card shows first.
    pub fn answers(&mut self, name: &str, answer: Decision) -> Result<Standing, Declined> {
        self.answers_to(self.request(), name, answer)
    }

    pub fn answers_to(
        &mut self,
        request: RequestKey,
        name: &str,
        answer: Decision,
    ) -> Result<Standing, Declined> {
        let answering = Answering {
            decision: DecisionId::new(name),
            request,
            by: By { who: "operator".into(), device: name.into() },
            rule: None,
            answer,
            revision: None,
            key: Some(IdempotencyKey::new(name)),
        };
        let now = self.now();
        let (taken, outputs) = self.broker.answer(now, answering);
        self.take(outputs);
        taken.map(|taken| taken.standing)
    }

    pub fn brings_back(&mut self, carried: &Carried) {
        let errand = self.errands.remove(0);
        self.comes_back(&errand, carried);
    }

    pub fn comes_back(&mut self, errand: &Errand, carried: &Carried) {
        let now = self.now();
        let outputs = self.broker.carried(now, &errand.decision, &errand.task.way(), carried);
        self.take(outputs);
    }

    /// Another broker, that knows what this one has written.
    pub fn restarted(&self) -> Self {
        let mut again = Self { now_ms: self.now_ms, ..Self::default() };
        let session = self.broker.session(&self.session()).expect("a session").into_owned();
        again.restores(Harness::ClaudeCode, "s", session, &self.records);
        again
    }

    /// A new broker learns what one before it has written.
    pub fn restores(
        &mut self,
        harness: Harness,
        vendor_id: &str,
        session: Session,
        records: &[Record],
    ) {
        for record in records {
            self.broker.recall_record(record);
        }
        if let Some(last) = records.last() {
            self.broker.follow_records(last.link());
        }
        let (now, session) = (self.now(), Box::new(session));
        let input = Input::Restored { harness, vendor_id: vendor_id.into(), session };
        let outputs = self.broker.handle(now, input);
        self.take(outputs);
    }

    pub fn session(&self) -> SessionId {
        self.card.as_ref().expect("a card").session_id.clone()
    }

    pub fn written(&self) -> Vec<&'static str> {
        self.records.iter().map(|record| record.body.name()).collect()
    }

    pub fn answer_shown(&self) -> Option<String> {
        let request = self.card.as_ref()?.requests.first()?;
        let answer = serde_json::to_value(request.answer.as_ref()?).expect("JSON");
        answer["state"].as_str().map(str::to_owned)
    }

    pub fn commands(&mut self, command: Command) -> Result<Standing, Declined> {
        let commanding = Commanding {
            decision: DecisionId::new(format!("c{}", self.now_ms)),
            session: self.session(),
            by: By { who: "operator".into(), device: "phone".into() },
            command,
            key: None,
        };
        let now = self.now();
        let (taken, outputs) = self.broker.command(now, commanding);
        self.take(outputs);
        taken.map(|taken| taken.standing)
    }
}

pub fn allow() -> Decision {
    Decision::Allow { input: None, scope: Scope::Once }
}

pub fn deny() -> Decision {
    Decision::Deny { message: None, interrupt: false }
}
