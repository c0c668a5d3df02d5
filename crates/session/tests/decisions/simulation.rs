//! Two devices, a rule and the terminal answer the same requests at once. Messages are slow, lost
//! and repeated, the daemon is killed at any moment and folds its book from disk; then calm, and
//! everything must have settled. A failure prints its seed: `SIM_SEED=42 cargo test …`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use qd_session::decision::{Body, Book, Given, Link, Record, Refused, Standing, verify};
use qd_session::id::{DecisionId, IdempotencyKey, RequestKey};
use qd_session::moment::Timestamp;

use super::sample::{deny, offer, request};

const REQUESTS: u64 = 3;
const CALLERS: [&str; 3] = ["phone", "desk", "rule"];
const STEPS: u64 = 120;

#[test]
#[expect(clippy::disallowed_methods, reason = "a seed to try again comes from the environment")]
fn whoever_answers_and_whatever_breaks_one_answer_takes_effect_and_all_see_it() {
    let one = std::env::var("SIM_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seeds = one.map_or(0..1_500, |seed: u64| seed..seed + 1);
    let mut endings = BTreeSet::new();
    for seed in seeds {
        let run = catch_unwind(AssertUnwindSafe(|| World::new(seed).run()));
        match run {
            Ok(seen) => endings.extend(seen),
            Err(panic) => {
                eprintln!("SIM_SEED={seed}");
                resume_unwind(panic);
            }
        }
    }
    if one.is_none() {
        let all = ["confirmed", "failed", "overtaken", "unclear"];
        assert!(all.iter().all(|ending| endings.contains(ending)), "only {endings:?} was tried");
    }
}

/// Who the agent listened to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Effect {
    Ours(DecisionId),
    Terminals,
}

/// Something on its way. What is sent to an agent survives the daemon; what is sent to the daemon
/// is lost with it, but for the agent's own signals, which are spooled.
#[derive(Debug, Clone)]
enum Message {
    Answer(RequestKey, DecisionId),
    Report(DecisionId, Report),
    Closed(RequestKey),
}

#[derive(Debug, Clone, Copy)]
enum Report {
    Taken,
    Refused,
    /// The connection broke after it was sent.
    Silence,
}

/// What a caller waits for until the record is on disk.
#[derive(Debug, Clone)]
struct Attempt {
    caller: &'static str,
    key: IdempotencyKey,
    request: RequestKey,
    words: u64,
}

struct World {
    dice: Dice,
    now: u64,
    book: Book,
    disk: Vec<String>,
    /// Records that are not on disk yet, and what is to happen when they are.
    unwritten: Vec<Record>,
    then: Vec<Message>,
    told_then: Vec<(IdempotencyKey, DecisionId)>,
    wire: Vec<Message>,
    /// The agents: what each request came to.
    effects: BTreeMap<RequestKey, Effect>,
    /// What a way refused once it never takes: no copy of it is under way any more.
    turned_away: BTreeSet<DecisionId>,
    /// Decisions that ever reached an agent.
    arrived: BTreeMap<RequestKey, BTreeSet<DecisionId>>,
    /// The daemon has heard of the closing, on disk.
    heard: BTreeSet<RequestKey>,
    attempts: Vec<Attempt>,
    /// What each key was told, and which answers were named as the first.
    told: BTreeMap<IdempotencyKey, DecisionId>,
    firsts: BTreeMap<RequestKey, BTreeSet<DecisionId>>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut book = Book::default();
        for nth in 0..REQUESTS {
            assert!(book.opened(&request(nth)));
        }
        Self {
            dice: Dice(seed),
            now: 0,
            book,
            disk: Vec::new(),
            unwritten: Vec::new(),
            then: Vec::new(),
            told_then: Vec::new(),
            wire: Vec::new(),
            effects: BTreeMap::new(),
            turned_away: BTreeSet::new(),
            arrived: BTreeMap::new(),
            heard: BTreeSet::new(),
            attempts: Vec::new(),
            told: BTreeMap::new(),
            firsts: BTreeMap::new(),
        }
    }

    fn run(mut self) -> BTreeSet<&'static str> {
        for _ in 0..STEPS {
            self.now += 1;
            match self.dice.below(16) {
                0..=3 => self.somebody_answers(),
                4 => self.somebody_repeats(),
                5 if self.dice.below(3) == 0 => {
                    let request = request(self.dice.below(REQUESTS));
                    self.terminal_answers(request);
                }
                6..=8 => self.write(),
                9 => self.way_comes_back(),
                10 if self.dice.below(4) == 0 => self.kill(),
                _ => self.message_arrives(true),
            }
            self.check();
            if self.dice.below(10) == 0 {
                self.check_fold();
            }
        }
        self.calm()
    }

    fn somebody_answers(&mut self) {
        let caller = CALLERS[self.dice.below(3) as usize];
        let request = request(self.dice.below(REQUESTS));
        let key = format!("{caller}-{}", self.now).as_str().into();
        let attempt = Attempt { caller, key, request, words: self.dice.below(2) };
        self.attempts.push(attempt.clone());
        self.give(&attempt);
    }

    fn somebody_repeats(&mut self) {
        if !self.attempts.is_empty() {
            let nth = self.dice.below(self.attempts.len() as u64) as usize;
            self.give(&self.attempts[nth].clone());
        }
    }

    fn give(&mut self, attempt: &Attempt) {
        let Attempt { caller, key, request, words } = attempt;
        let mut offer = offer(self.dice.roll(), request.clone(), caller);
        offer.answer = deny(&format!("{words}"));
        offer.rule = (*caller == "rule").then(|| "no-rm".into());
        offer.key = Some(key.clone());
        let decision = offer.decision.clone();
        match self.book.give(Timestamp(self.now), offer) {
            Ok(Given::Fresh { record }) => {
                self.unwritten.push(*record);
                self.then.push(Message::Answer(request.clone(), decision.clone()));
                self.told_then.push((key.clone(), decision));
            }
            Ok(Given::Repeated { first }) => {
                self.told_then.push((key.clone(), first.subject.decision().clone()));
            }
            Err(Refused::AlreadyAnswered { first }) => {
                // What is not on disk yet is told when it is; so a refusal waits for it, too.
                if self.unwritten.is_empty() {
                    let first = first.subject.decision().clone();
                    self.firsts.entry(request.clone()).or_default().insert(first);
                }
            }
            Err(Refused::Closed) => {
                assert!(self.effects.contains_key(request), "the agent closed it");
            }
            Err(refused) => panic!("{refused:?}"),
        }
    }

    fn terminal_answers(&mut self, request: RequestKey) {
        if let Entry::Vacant(open) = self.effects.entry(request.clone()) {
            open.insert(Effect::Terminals);
            self.wire.push(Message::Closed(request));
        }
    }

    /// Everything that waits is on disk; what waited for it happens.
    fn write(&mut self) {
        self.disk.extend(self.unwritten.drain(..).map(|record| record.line()));
        for (key, decision) in self.told_then.drain(..) {
            let told = self.told.entry(key).or_insert_with(|| decision.clone());
            assert_eq!(*told, decision, "the same key has the same result");
        }
        self.wire.append(&mut self.then);
    }

    fn message_arrives(&mut self, may_break: bool) {
        if self.wire.is_empty() {
            return;
        }
        let nth = self.dice.below(self.wire.len() as u64) as usize;
        if may_break && self.dice.below(6) == 0 {
            // Once more, later.
            self.wire.push(self.wire[nth].clone());
        }
        match self.wire.swap_remove(nth) {
            Message::Answer(request, decision) => self.answer_arrives(request, decision, may_break),
            Message::Report(decision, report) => {
                let now = Timestamp(self.now);
                let records = match report {
                    Report::Taken => self.book.delivered(now, &decision, "hook".into()),
                    Report::Refused => self.book.failed(now, &decision, "gone"),
                    Report::Silence => self.book.lost(now, &decision),
                };
                self.unwritten.extend(records);
            }
            Message::Closed(request) => {
                self.heard.insert(request.clone());
                let records = self.book.closed(Timestamp(self.now), &request);
                self.unwritten.extend(records);
                // The signals go to disk with what they caused.
                self.write();
            }
        }
    }

    /// At the way: it takes one answer, once, and only while the agent waits.
    fn answer_arrives(&mut self, request: RequestKey, decision: DecisionId, may_break: bool) {
        let report = match self.effects.get(&request) {
            Some(Effect::Ours(taken)) if *taken == decision => Report::Taken,
            Some(_) => Report::Refused,
            None if self.turned_away.contains(&decision) => Report::Refused,
            None if may_break && self.dice.below(5) == 0 => {
                self.turned_away.insert(decision.clone());
                Report::Refused
            }
            None => {
                self.arrived.entry(request.clone()).or_default().insert(decision.clone());
                self.effects.insert(request.clone(), Effect::Ours(decision.clone()));
                self.wire.push(Message::Closed(request));
                Report::Taken
            }
        };
        let is_lost = may_break && self.dice.below(5) == 0;
        let report = if is_lost { Report::Silence } else { report };
        self.wire.push(Message::Report(decision, report));
    }

    /// Delivers again what nobody is delivering.
    fn way_comes_back(&mut self) {
        let unsettled: Vec<_> = self
            .book
            .unsettled()
            .filter(|decided| decided.standing == Standing::Unsettled)
            .filter_map(|one| {
                Some((one.subject.request()?.clone(), one.subject.decision().clone()))
            })
            .collect();
        for (request, decision) in unsettled {
            assert!(self.book.sent_again(&decision));
            self.wire.push(Message::Answer(request, decision));
        }
    }

    /// `kill -9`, and a start: what is not on disk never was.
    fn kill(&mut self) {
        self.unwritten.clear();
        self.then.clear();
        self.told_then.clear();
        self.wire.retain(|message| !matches!(message, Message::Report(..)));
        self.book = folded(&self.disk);
        let now = Timestamp(self.now);
        for nth in 0..REQUESTS {
            let request = request(nth);
            if self.heard.contains(&request) {
                // Its journal says so, and the book may know an answer to it.
                self.book.opened(&request);
                let records = self.book.closed(now, &request);
                self.unwritten.extend(records);
            } else {
                assert!(self.book.opened(&request));
            }
        }
    }

    /// Nothing breaks any more: everything that is under way arrives.
    fn calm(mut self) -> BTreeSet<&'static str> {
        for nth in 0..REQUESTS {
            self.terminal_answers(request(nth));
        }
        for _ in 0..1_000 {
            self.now += 1;
            self.write();
            self.way_comes_back();
            self.message_arrives(false);
            self.check();
            if self.wire.is_empty() {
                break;
            }
        }
        assert_eq!(self.book.unsettled().count(), 0, "everything settles");
        self.write();
        self.check_fold();
        self.check_truth()
    }

    /// What holds at every moment.
    fn check(&self) {
        for (request, decisions) in &self.arrived {
            assert!(decisions.len() <= 1, "{request} was answered twice: {decisions:?}");
        }
    }

    /// A restart at this moment forgets who is delivering, and nothing else.
    fn check_fold(&self) {
        let mut refolded = folded(&self.disk);
        self.unwritten.iter().for_each(|record| refolded.apply(record));
        assert_eq!(self.book.last(), refolded.last());
        for decision in self.told.values() {
            let live = self.book.decision(decision).expect("it is remembered");
            let again = refolded.decision(decision).expect("it is on record");
            match &live.standing {
                Standing::InFlight | Standing::Ending => {
                    assert_eq!(again.standing, Standing::Unsettled);
                }
                standing => assert_eq!(again.standing, *standing),
            }
        }
    }

    /// What is on record is what happened.
    fn check_truth(self) -> BTreeSet<&'static str> {
        let mut failed = BTreeSet::new();
        let mut delivered: BTreeMap<RequestKey, u32> = BTreeMap::new();
        let mut requests: BTreeMap<DecisionId, RequestKey> = BTreeMap::new();
        let mut endings = BTreeSet::new();
        for line in &self.disk {
            let (record, _) = Record::read(line).expect("a record");
            let ours = |decision: &DecisionId| {
                self.effects.get(&requests[decision]) == Some(&Effect::Ours(decision.clone()))
            };
            match &record.body {
                Body::Given(offer) => {
                    let before = delivered.get(&offer.request);
                    assert_eq!(before, None, "answered after it was delivered");
                    requests.insert(offer.decision.clone(), offer.request.clone());
                }
                Body::Delivered { decision, .. } => {
                    assert!(ours(decision), "{decision} was not delivered");
                    *delivered.entry(requests[decision].clone()).or_default() += 1;
                }
                Body::Confirmed { decision } => assert!(ours(decision)),
                Body::Failed { decision, .. } => {
                    assert!(!ours(decision), "{decision} arrived");
                    failed.insert(decision.clone());
                }
                Body::Overtaken { decision } => {
                    assert!(!ours(decision), "{decision} arrived");
                    failed.insert(decision.clone());
                }
                Body::Unclear { .. } | Body::Commanded(_) | Body::Ruled(_) => {}
            }
            endings.insert(record.body.name());
        }
        assert!(delivered.values().all(|count| *count == 1), "{delivered:?}");
        for (request, firsts) in &self.firsts {
            let standing: Vec<_> = firsts.difference(&failed).collect();
            assert!(standing.len() <= 1, "{request}: callers were told of {standing:?}");
            if let (Effect::Ours(decision), [first]) = (&self.effects[request], &standing[..]) {
                assert_eq!(*first, decision, "all are told of the one that took effect");
            }
        }
        let lines = (1..).zip(self.disk.iter().map(String::as_str));
        verify(Link::default(), lines, self.book.last()).expect("the chain is whole");
        endings
    }
}

fn folded(disk: &[String]) -> Book {
    let mut book = Book::default();
    for line in disk {
        book.apply(&Record::read(line).expect("a record").0);
    }
    book
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }
}
