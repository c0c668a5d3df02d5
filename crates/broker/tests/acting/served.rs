//! The same with a session on a server of OpenCode.

use std::ops::{Deref, DerefMut};

use qd_broker::Broker;
use qd_broker::desk::{Declined, Errand, Task};
use qd_harness::{Channel, Harness};
use qd_session::decision::{Book, Decision, Standing};
use serde_json::{Value, json};

use crate::deck::Deck;

pub struct Served(Deck);

impl Deref for Served {
    type Target = Deck;

    fn deref(&self) -> &Deck {
        &self.0
    }
}

impl DerefMut for Served {
    fn deref_mut(&mut self) -> &mut Deck {
        &mut self.0
    }
}

impl Served {
    pub fn new() -> Self {
        let mut served = Self(Deck::new());
        served.busy();
        served
    }

    pub fn tells(&mut self, kind: &str, mut properties: Value) {
        properties["sessionID"] = "ses_1".into();
        let payload = json!({"type": kind, "properties": properties}).to_string();
        self.hears(Harness::Opencode, Channel::Events, payload.as_bytes());
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

    pub fn answers(
        &mut self,
        request: &str,
        name: &str,
        answer: Decision,
    ) -> Result<Standing, Declined> {
        let request = self.keys[request].clone();
        self.answers_to(request, name, answer)
    }

    /// Takes an errand that is on its way: the decision, and the server's name of its request.
    pub fn errand(&mut self, nth: usize) -> (Errand, String) {
        let errand = self.errands.remove(nth);
        let Task::Answer { request, .. } = &errand.task else { panic!("{errand:?}") };
        let request = request.to_string();
        (errand, request)
    }

    /// The server is not heard of for a while.
    pub fn loses_sight(&mut self) {
        let now = self.now();
        let outputs = self.broker.forget_unreached(now, |_, _| false);
        self.take(outputs);
    }

    /// As by `kill -9` and a start: another broker, that knows what this one has written.
    pub fn restarts(&mut self) {
        let session = self.broker.session(&self.session()).expect("a session").into_owned();
        self.broker = Broker::default();
        self.errands.clear();
        let records = self.records.clone();
        self.restores(Harness::Opencode, "ses_1", session, &records);
        let now = self.now();
        let outputs = self.broker.close_past(now);
        self.take(outputs);
    }

    /// How many decisions are on record of which nobody will say what became of them.
    pub fn unsettled(&self) -> usize {
        let mut book = Book::default();
        self.records.iter().for_each(|record| book.apply(record));
        book.unsettled().count()
    }
}
