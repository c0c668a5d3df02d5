//! A broker with one session on a server of OpenCode, and everything that it put out.

use std::collections::BTreeMap;

use qd_broker::desk::{Answering, Carried, Commanding, Declined, Errand, Task};
use qd_broker::{Broker, Card, Input, Output};
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_session::decision::{Book, By, Command, Decision, Record, Standing};
use qd_session::id::{DecisionId, IdempotencyKey, RequestKey, SessionId};
use qd_session::moment::Timestamp;
use serde_json::{Value, json};

use crate::deck::START_MS;

pub struct Served {
    pub broker: Broker,
    pub now_ms: u64,
    pub records: Vec<Record>,
    pub errands: Vec<Errand>,
    pub card: Option<Card>,
    /// The key that each request was shown with, by the server's name of it.
    pub keys: BTreeMap<String, RequestKey>,
}

impl Served {
    pub fn new() -> Self {
        let mut served = Self {
            broker: Broker::default(),
            now_ms: START_MS,
            records: Vec::new(),
            errands: Vec::new(),
            card: None,
            keys: BTreeMap::new(),
        };
        served.busy();
        served
    }

    pub fn now(&mut self) -> Timestamp {
        self.now_ms += 10;
        Timestamp(self.now_ms)
    }

    fn take(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Record(record) => self.records.push(*record),
                Output::Carry(errand) => self.errands.push(*errand),
                Output::Show(card) => self.card = Some(*card),
                Output::Found { .. }
                | Output::Append(_)
                | Output::Locate(_)
                | Output::Survey(_)
                | Output::LookInto { .. }
                | Output::Release(_)
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
    }

    pub fn tells(&mut self, kind: &str, properties: Value) {
        let (now, mut properties) = (self.now(), properties);
        properties["sessionID"] = "ses_1".into();
        let payload = json!({"type": kind, "properties": properties}).to_string();
        let signal = Signal {
            at: now,
            seq: 0,
            channel: Channel::Events,
            direction: Direction::FromAgent,
            file: None,
            payload: payload.as_bytes(),
        };
        let outputs = self.broker.handle(now, Input::Signal { harness: Harness::Opencode, signal });
        self.take(outputs);
    }

    pub fn busy(&mut self) {
        self.tells("session.status", json!({"status": {"type": "busy"}}));
    }

    pub fn asks(&mut self, request: &str) {
        let tool = json!({"messageID": "msg_2", "callID": format!("call_{request}")});
        self.tells(
            "permission.asked",
            json!({"id": request, "permission": "bash", "patterns": ["make"],
                "metadata": {"command": "make"}, "always": [], "tool": tool}),
        );
    }

    pub fn asks_a_question(&mut self, request: &str) {
        let question = json!({"question": "Which database?", "header": "Storage",
            "options": [{"label": "SQLite"}, {"label": "Postgres"}]});
        self.tells("question.asked", json!({"id": request, "questions": [question]}));
    }

    /// Somebody's answer took effect.
    pub fn replied(&mut self, request: &str) {
        self.tells("permission.replied", json!({"requestID": request, "reply": "once"}));
    }

    pub fn waits(&mut self, ms: u64) {
        self.now_ms += ms;
        let now = self.now();
        let outputs = self.broker.handle(now, Input::Woken);
        self.take(outputs);
    }

    pub fn answers(
        &mut self,
        request: &str,
        name: &str,
        answer: Decision,
    ) -> Result<Standing, Declined> {
        let answering = Answering {
            decision: DecisionId::new(name),
            request: self.keys[request].clone(),
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

    /// Takes an errand that is on its way: the decision, and the server's name of its request.
    pub fn errand(&mut self, nth: usize) -> (Errand, String) {
        let errand = self.errands.remove(nth);
        let Task::Answer { request, .. } = &errand.task else { panic!("{errand:?}") };
        let request = request.to_string();
        (errand, request)
    }

    pub fn brings_back(&mut self, errand: &Errand, carried: &Carried) {
        let now = self.now();
        let outputs = self.broker.carried(now, &errand.decision, &errand.task.way(), carried);
        self.take(outputs);
    }

    /// The server is not heard of for a while.
    pub fn loses_sight(&mut self) {
        let now = self.now();
        let outputs = self.broker.forget_unreached(now, |_, _| false);
        self.take(outputs);
    }

    /// As by `kill -9` and a start: another broker, that knows what this one has written.
    pub fn restarts(&mut self) {
        let restored = self.broker.session(&self.session()).expect("a session").clone();
        self.broker = Broker::default();
        self.errands.clear();
        for record in &self.records {
            self.broker.recall_record(record);
        }
        if let Some(last) = self.records.last() {
            self.broker.follow_records(last.link());
        }
        let now = self.now();
        let input = Input::Restored {
            harness: Harness::Opencode,
            vendor_id: "ses_1".into(),
            session: Box::new(restored),
        };
        let outputs = self.broker.handle(now, input);
        self.take(outputs);
        let outputs = self.broker.close_past(now);
        self.take(outputs);
    }

    pub fn written(&self) -> Vec<&'static str> {
        self.records.iter().map(|record| record.body.name()).collect()
    }

    /// How many decisions are on record of which nobody will say what became of them.
    pub fn unsettled(&self) -> usize {
        let mut book = Book::default();
        self.records.iter().for_each(|record| book.apply(record));
        book.unsettled().count()
    }

    fn session(&self) -> SessionId {
        self.card.as_ref().expect("a card").session_id.clone()
    }
}
