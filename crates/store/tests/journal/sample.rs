//! Sessions and entries to write.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::Session;
use qd_session::event::{Entry, Event};
use qd_session::id::SessionId;
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact};
use qd_store::{Delivery, Journal, Numbered};

pub fn session(nth: u64) -> SessionId {
    SessionId::new(format!("sess_{nth}"))
}

/// An entry that says which one it is.
pub fn entry(of: u64, n: u64) -> Entry {
    observed(of, n, Fact::UserPrompt { text: Some(format!("prompt {n}").into()) })
}

pub fn entries(of: u64, numbers: std::ops::Range<u64>) -> Vec<Entry> {
    numbers.map(|n| entry(of, n)).collect()
}

/// An entry that is this long, and then some.
pub fn long_entry(of: u64, n: u64, bytes: usize) -> Entry {
    let text: Arc<str> = "x".repeat(bytes).into();
    observed(of, n, Fact::UserPrompt { text: Some(text) })
}

pub fn observed(of: u64, n: u64, fact: Fact) -> Entry {
    let event = AgentEvent::main(Timestamp(1_000 + n), Source::Hook, fact);
    Entry::new(session(of), Timestamp(1_000 + n), Event::Observed { event })
}

/// What a sender says was its `n`th.
pub fn delivery(source: &str, n: u64) -> Delivery {
    Delivery { id: format!("{source}-{n}"), body: format!("body {n}").into_bytes() }
}

/// What [`entry`] said.
pub fn spoken(numbered: &Numbered) -> u64 {
    let Event::Observed { event } = &numbered.entry.event else { panic!("{numbered:?}") };
    let Fact::UserPrompt { text: Some(text) } = &event.fact else { panic!("{event:?}") };
    text.strip_prefix("prompt ").expect("a prompt").parse().expect("a number")
}

pub fn bytes(session: &Session) -> String {
    serde_json::to_string(session).expect("a session is JSON")
}

/// Every session of the journal, as bytes.
pub fn loaded(journal: &Journal) -> BTreeMap<SessionId, String> {
    let loaded = journal.load().expect("it loads");
    assert_eq!(loaded.damaged, []);
    let mut each = Vec::new();
    let damaged = journal.load_each(|one| each.push(one.session)).expect("they load");
    assert_eq!((damaged, each.len()), (Vec::new(), loaded.sessions.len()));
    assert!(loaded.sessions.iter().all(|one| each.contains(&one.session)), "one after the other");
    loaded.sessions.iter().map(|one| (one.session.id().clone(), bytes(&one.session))).collect()
}

/// The same, folded in memory.
#[derive(Debug, Default, Clone)]
pub struct Live(pub BTreeMap<SessionId, Session>);

impl Live {
    pub fn apply(&mut self, entries: &[Entry]) {
        for entry in entries {
            let id = &entry.session;
            self.0.entry(id.clone()).or_insert_with(|| Session::new(id.clone())).apply(entry);
        }
    }

    pub fn bytes(&self) -> BTreeMap<SessionId, String> {
        self.0.iter().map(|(id, session)| (id.clone(), bytes(session))).collect()
    }
}
