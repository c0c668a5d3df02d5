//! Every response once, whoever told it.
//!
//! A resumed or forked session repeats the past of another one in a file of its own, and an aside
//! may repeat its session's: of all tellings one is counted (see [`Rank`]).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use qd_broker::session_key::SessionKey;
use qd_harness::Harness;
use qd_harness::usage::{MessageKey, Rank, ResponseKey, Speed, Tokens};
use qd_session::moment::Timestamp;

use super::names::{Names, Number};
use super::portion::{Counts, Portion, Told};

#[derive(Debug, Default)]
pub struct Ledger {
    names: Names,
    entries: Vec<Entry>,
    by_response: HashMap<ResponseKey, u32, BuildHasherDefault<Mixed>>,
    by_message: HashMap<MessageKey, u32, BuildHasherDefault<Mixed>>,
    /// The responses of each session. Only where lines come in one by one: nobody else asks.
    by_session: Option<HashMap<Session, Vec<u32>>>,
}

type Session = (Harness, Number);

/// Without its key, which the maps have: a history has many.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: Timestamp,
    cost: Option<f64>,
    tokens: Counts,
    session: Number,
    model: Option<Number>,
    project: Option<Number>,
    harness: Harness,
    speed: Option<Speed>,
    aside: bool,
}

impl Entry {
    fn session(&self) -> Session {
        (self.harness, self.session)
    }

    fn rank(&self) -> Rank {
        Rank::of(self.aside, self.tokens.into(), self.speed)
    }
}

/// A response that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted<'a> {
    pub harness: Harness,
    pub project: Option<&'a Arc<str>>,
    pub session: &'a Arc<str>,
    pub model: Option<&'a Arc<str>>,
    pub speed: Option<Speed>,
    pub at: Timestamp,
    pub tokens: Tokens,
    /// As its client says.
    pub cost: Option<f64>,
    /// Of a subagent, or beside the conversation.
    pub aside: bool,
}

impl Ledger {
    /// Takes in what a file told. Of equals the first one counts, so files come in the order of
    /// their paths.
    pub fn take(&mut self, harness: Harness, project: Option<&str>, portion: &Portion) {
        self.take_each(harness, project, portion, |_| {});
    }

    /// The same, and whose sums are others now.
    pub fn take_live(
        &mut self,
        harness: Harness,
        project: Option<&str>,
        portion: &Portion,
    ) -> Vec<SessionKey> {
        if self.by_session.is_none() {
            let mut by_session: HashMap<Session, Vec<u32>> = HashMap::new();
            for (entry, number) in self.entries.iter().zip(0..) {
                by_session.entry(entry.session()).or_default().push(number);
            }
            self.by_session = Some(by_session);
        }
        let mut changed: Vec<Session> = Vec::new();
        self.take_each(harness, project, portion, |session| {
            if !changed.contains(&session) {
                changed.push(session);
            }
        });
        let key = |(harness, number): Session| SessionKey {
            harness,
            session: Arc::clone(self.names.name(number)),
        };
        changed.into_iter().map(key).collect()
    }

    pub fn counted(&self) -> impl Iterator<Item = Counted<'_>> {
        self.entries.iter().map(|entry| self.spelled(entry))
    }

    /// The responses of one session. Quick once lines have come in one by one.
    pub fn counted_of(&self, key: &SessionKey) -> impl Iterator<Item = Counted<'_>> {
        let wanted = self.names.known(&key.session).map(|number| (key.harness, number));
        let indexed: Option<&[u32]> = self.by_session.as_ref().map(|by_session| {
            wanted.and_then(|wanted| by_session.get(&wanted)).map_or(&[][..], Vec::as_slice)
        });
        let all = if indexed.is_none() { &self.entries[..] } else { &[] };
        let found = all.iter().filter(move |entry| Some(entry.session()) == wanted);
        let numbers = indexed.unwrap_or_default().iter();
        let looked_up = numbers.map(|number| &self.entries[*number as usize]);
        looked_up.chain(found).map(|entry| self.spelled(entry))
    }

    fn spelled<'a>(&'a self, entry: &Entry) -> Counted<'a> {
        Counted {
            harness: entry.harness,
            project: entry.project.map(|project| self.names.name(project)),
            session: self.names.name(entry.session),
            model: entry.model.map(|model| self.names.name(model)),
            speed: entry.speed,
            at: entry.at,
            tokens: entry.tokens.into(),
            cost: entry.cost,
            aside: entry.aside,
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn take_each(
        &mut self,
        harness: Harness,
        project: Option<&str>,
        portion: &Portion,
        mut changed: impl FnMut(Session),
    ) {
        let numbers: Vec<Number> =
            portion.names().iter().map(|name| self.names.number(name)).collect();
        let project = project.map(|project| self.names.number(project));
        self.by_response.reserve(portion.told().len());
        self.by_message.reserve(portion.told().len());
        for told in portion.told() {
            let told = told.renamed(&numbers);
            let Told { key, session, model, at, tokens, cost, speed, aside, .. } = told;
            let project = told.project.or(project);
            let entry = Entry { at, cost, tokens, session, model, project, harness, speed, aside };
            self.count(key, entry, &mut changed);
        }
    }

    fn count(
        &mut self,
        key: Option<(ResponseKey, MessageKey)>,
        entry: Entry,
        changed: &mut impl FnMut(Session),
    ) {
        let Some((response, message)) = key else {
            changed(entry.session());
            self.push(entry);
            return;
        };
        let known = self.by_response.get(&response).copied().or_else(|| {
            let of_message = *self.by_message.get(&message)?;
            let is_aside = entry.aside || self.entries[of_message as usize].aside;
            is_aside.then_some(of_message)
        });
        let number = match known {
            Some(number) => {
                let known = self.entries[number as usize];
                if entry.rank() > known.rank() {
                    changed(entry.session());
                    changed(known.session());
                    self.replace(number, entry);
                }
                number
            }
            None => {
                changed(entry.session());
                self.push(entry)
            }
        };
        self.by_response.insert(response, number);
        self.by_message.entry(message).or_insert(number);
    }

    fn push(&mut self, entry: Entry) -> u32 {
        let number = u32::try_from(self.entries.len()).expect("fewer responses than bytes");
        self.entries.push(entry);
        if let Some(by_session) = &mut self.by_session {
            by_session.entry(entry.session()).or_default().push(number);
        }
        number
    }

    fn replace(&mut self, number: u32, entry: Entry) {
        let before = std::mem::replace(&mut self.entries[number as usize], entry);
        if let Some(by_session) = &mut self.by_session
            && before.session() != entry.session()
        {
            by_session.entry(before.session()).or_default().retain(|other| *other != number);
            by_session.entry(entry.session()).or_default().push(number);
        }
    }
}

/// The keys are checksums: their own bits are mixed enough.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut part = [0; 8];
            part[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(part);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 ^= key;
    }
}
