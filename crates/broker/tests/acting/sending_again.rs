//! Answers to a client's own server whose fate nobody knows: they are sent again while they are
//! waited for, and whatever breaks, one takes effect and every one settles.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use qd_broker::desk::{Carried, Declined};
use qd_session::decision::{Body, Command, Link, Record, Refused, Standing, verify};
use qd_session::id::{DecisionId, RequestKey};

use crate::deck::{allow, deny};
use crate::served::Served;

fn gone() -> Carried {
    Carried::Failed { why: "it is not open any more".into() }
}

fn asking() -> Served {
    let mut served = Served::new();
    served.asks("per_1");
    served.waits(1_000);
    served
}

#[test]
fn an_answer_in_doubt_is_sent_again_after_a_while() {
    let mut served = asking();
    assert_eq!(served.answers("per_1", "a", allow()), Ok(Standing::InFlight));
    let (errand, _) = served.errand(0);
    served.comes_back(&errand, &Carried::Lost);
    assert!(served.errands.is_empty(), "the agent may say at once that it arrived");
    assert!(served.broker.next_wake().is_some());
    served.waits(6_000);
    let (again, request) = served.errand(0);
    assert_eq!((&again, request.as_str()), (&errand, "per_1"));
    served.comes_back(&again, &Carried::Delivered);
    served.replied("per_1");
    assert_eq!(served.written(), ["given", "delivered", "confirmed"]);
}

#[test]
fn a_second_copy_that_is_turned_away_does_not_say_that_the_first_had_failed() {
    let mut served = asking();
    served.answers("per_1", "a", allow()).expect("taken");
    let (errand, _) = served.errand(0);
    served.comes_back(&errand, &Carried::Lost);
    served.waits(6_000);
    let (again, _) = served.errand(0);
    served.comes_back(&again, &gone());
    assert_eq!(served.written(), ["given"], "the first may have arrived");
    assert!(matches!(
        served.answers("per_1", "b", deny()),
        Err(Declined::Book(Refused::AlreadyAnswered { .. }))
    ));
    served.replied("per_1");
    assert_eq!(served.written(), ["given", "unclear"]);
    served.waits(600_000);
    assert!(served.errands.is_empty(), "nobody waits for it any more");
}

#[test]
fn after_a_restart_it_is_sent_again_as_soon_as_its_server_is_heard() {
    let mut served = asking();
    served.answers("per_1", "a", allow()).expect("taken");
    served.restarts();
    assert!(served.errands.is_empty(), "nobody is in reach yet");
    served.busy();
    let (again, request) = served.errand(0);
    assert_eq!(request, "per_1");
    served.comes_back(&again, &Carried::Delivered);
    served.replied("per_1");
    assert_eq!(served.written(), ["given", "delivered", "confirmed"]);
}

#[test]
fn what_was_ending_when_it_was_killed_is_closed_at_the_start() {
    let mut served = asking();
    served.answers("per_1", "a", allow()).expect("taken");
    served.replied("per_1");
    assert_eq!(served.written(), ["given"], "the way still has to say");
    served.restarts();
    assert_eq!(served.written(), ["given", "unclear"]);
    served.restarts();
    assert_eq!(served.written(), ["given", "unclear"], "once");
}

#[test]
fn a_command_that_a_kill_cut_off_is_given_up_and_not_repeated() {
    let mut served = asking();
    served.commands(Command::Prompt { text: "go on".into() }).expect("taken");
    served.restarts();
    served.busy();
    assert_eq!(served.written(), ["commanded", "unclear"]);
    assert!(served.errands.is_empty());
    assert_eq!(served.unsettled(), 0);
}

const REQUESTS: u64 = 3;
const DEVICES: [&str; 3] = ["phone", "desk", "tablet"];

/// The same as `crates/session/tests/decisions` proves of the book, with the desk as its caller.
#[expect(clippy::disallowed_methods, reason = "a seed to try again comes from the environment")]
#[test]
fn whoever_answers_and_whatever_breaks_every_answer_on_a_server_settles() {
    let one = std::env::var("SIM_SEED").ok().map(|seed| seed.parse().expect("a number"));
    for seed in one.map_or(0..300, |seed: u64| seed..seed + 1) {
        let run = catch_unwind(AssertUnwindSafe(|| World::new(seed).run()));
        if let Err(panic) = run {
            eprintln!("SIM_SEED={seed}");
            resume_unwind(panic);
        }
    }
}

/// Whose answer the server took.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Effect {
    Ours(DecisionId),
    Terminals,
}

struct World {
    dice: Dice,
    served: Served,
    effects: BTreeMap<String, Effect>,
    /// What the server has yet to tell.
    events: Vec<String>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut served = Served::new();
        for nth in 0..REQUESTS {
            served.asks(&format!("per_{nth}"));
        }
        served.waits(1_000);
        Self { dice: Dice(seed), served, effects: BTreeMap::new(), events: Vec::new() }
    }

    fn run(mut self) {
        for _ in 0..80 {
            match self.dice.below(16) {
                0..=3 => self.somebody_answers(),
                4 if self.dice.below(3) == 0 => self.terminal_answers(),
                5..=8 => self.errand_arrives(true),
                9 | 10 => self.server_tells(),
                11 | 12 => {
                    let ms = self.dice.below(20_000);
                    self.served.waits(ms);
                }
                13 => self.served.busy(),
                14 => self.served.loses_sight(),
                _ if self.dice.below(3) == 0 => self.kill(),
                _ => {}
            }
        }
        self.calm();
        self.check();
    }

    fn somebody_answers(&mut self) {
        let nth = self.dice.below(REQUESTS);
        let device = DEVICES[self.dice.below(3) as usize];
        let name = format!("{device}-{}", self.served.now_ms);
        match self.served.answers(&format!("per_{nth}"), &name, allow()) {
            Ok(_) | Err(Declined::Impossible { .. }) => {}
            Err(Declined::Book(Refused::AlreadyAnswered { .. } | Refused::Closed)) => {}
            // The terminal answered it before a restart.
            Err(Declined::Book(Refused::Unknown)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }

    fn terminal_answers(&mut self) {
        let request = format!("per_{}", self.dice.below(REQUESTS));
        if !self.effects.contains_key(&request) {
            self.effects.insert(request.clone(), Effect::Terminals);
            self.events.push(request);
        }
    }

    /// The server takes one answer to each request and turns the others away.
    fn reaches_server(&mut self, decision: &DecisionId, request: &str) -> Carried {
        if self.effects.contains_key(request) {
            return gone();
        }
        self.effects.insert(request.to_owned(), Effect::Ours(decision.clone()));
        self.events.push(request.to_owned());
        Carried::Delivered
    }

    fn errand_arrives(&mut self, may_break: bool) {
        if self.served.errands.is_empty() {
            return;
        }
        let nth = self.dice.below(self.served.errands.len() as u64) as usize;
        let (errand, request) = self.served.errand(nth);
        let carried = match self.dice.below(6) {
            0 if may_break => Carried::Failed { why: "it cannot be reached".into() },
            1 if may_break => Carried::Lost,
            2 if may_break => {
                self.reaches_server(&errand.decision, &request);
                Carried::Lost
            }
            _ => self.reaches_server(&errand.decision, &request),
        };
        self.served.comes_back(&errand, &carried);
    }

    fn server_tells(&mut self) {
        if !self.events.is_empty() {
            let request = self.events.remove(0);
            self.served.replied(&request);
        }
    }

    /// What was on its way may have arrived, and nobody hears of it.
    fn kill(&mut self) {
        for nth in (0..self.served.errands.len()).rev() {
            let (errand, request) = self.served.errand(nth);
            if self.dice.below(2) == 0 {
                self.reaches_server(&errand.decision, &request);
            }
        }
        self.served.restarts();
    }

    /// Nothing breaks any more, and the terminal answers what is left.
    fn calm(&mut self) {
        self.served.busy();
        for _ in 0..20 {
            self.served.waits(400_000);
            while !self.served.errands.is_empty() {
                self.errand_arrives(false);
            }
        }
        for nth in 0..REQUESTS {
            let request = format!("per_{nth}");
            if !self.effects.contains_key(&request) {
                self.effects.insert(request.clone(), Effect::Terminals);
                self.events.push(request);
            }
        }
        while !self.events.is_empty() {
            self.server_tells();
        }
    }

    /// What is on record is what happened, and all of it is settled.
    fn check(&self) {
        let mut requests: BTreeMap<DecisionId, RequestKey> = BTreeMap::new();
        let mut delivered: BTreeMap<RequestKey, u32> = BTreeMap::new();
        let named = |key: &RequestKey| {
            let mut names = self.served.keys.iter().filter(|(_, known)| *known == key);
            names.next().map(|(name, _)| name.clone()).expect("a request")
        };
        for record in &self.served.records {
            let ours = |decision: &DecisionId| {
                let effect = self.effects.get(&named(&requests[decision]));
                effect == Some(&Effect::Ours(decision.clone()))
            };
            match &record.body {
                Body::Given(offer) => {
                    assert_eq!(delivered.get(&offer.request), None, "answered after all");
                    requests.insert(offer.decision.clone(), offer.request.clone());
                }
                Body::Delivered { decision, .. } => {
                    assert!(ours(decision), "{decision} was not delivered");
                    *delivered.entry(requests[decision].clone()).or_default() += 1;
                }
                Body::Confirmed { decision } => assert!(ours(decision)),
                Body::Failed { decision, .. } | Body::Overtaken { decision } => {
                    assert!(!ours(decision), "{decision} arrived");
                }
                Body::Unclear { .. } | Body::Commanded(_) | Body::Ruled(_) => {}
            }
        }
        assert!(delivered.values().all(|count| *count == 1), "{delivered:?}");
        assert_eq!(self.served.unsettled(), 0, "every answer settles");
        let lines: Vec<String> = self.served.records.iter().map(Record::line).collect();
        let lines = (1..).zip(lines.iter().map(String::as_str));
        let last = self.served.records.last().map(Record::link).unwrap_or_default();
        verify(Link::default(), lines, last).expect("the chain is whole");
    }
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
