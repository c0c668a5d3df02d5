//! The walk: every state that can be reached, each event tried in it, the invariants at each step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use qd_session::machine::{
    Change, Declined, Effect, ErrorCode, ErrorSource, Event, Kind, Setup, State, Step, Timer,
    transition,
};

use super::table::Row;
use super::world::{NOW, events, fresh_seed, key, setups, step};
use super::{invariants, operator};

/// One thing that happened.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    pub setup: &'a Setup,
    pub from: &'a State,
    pub event: &'a Event,
    pub result: &'a Result<Step, Declined>,
}

/// What the walk saw.
#[derive(Debug, Default)]
pub struct Seen {
    pub states: usize,
    pub steps: usize,
    pub kinds: BTreeSet<Kind>,
    /// Event names, and whether one was ever accepted.
    pub events: BTreeMap<&'static str, bool>,
    pub rows: BTreeSet<Row>,
    /// Errors that were told: the code, whether it is worth another try, and whose it is.
    pub errors: BTreeSet<(ErrorCode, bool, ErrorSource)>,
    /// Each state as the operator sees it, with the label.
    pub views: BTreeSet<(Kind, String, String)>,
    /// Each state in the words of the agent monitor.
    pub monitored: BTreeSet<(Kind, String)>,
}

/// Every event in every reachable state, for every setup, with the invariants checked at each
/// step. It ends by itself only because retries are counted and bounded.
pub fn seen() -> &'static Seen {
    static SEEN: OnceLock<Seen> = OnceLock::new();
    SEEN.get_or_init(|| {
        let mut seen = Seen::default();
        for setup in setups() {
            visit(&setup, &mut seen);
        }
        seen
    })
}

fn visit(setup: &Setup, seen: &mut Seen) {
    let mut known = BTreeSet::from([key(&State::Idle)]);
    let mut open = vec![State::Idle];
    while let Some(from) = open.pop() {
        seen.states += 1;
        seen.kinds.insert(from.kind());
        seen.views.extend(operator::view(setup, &from));
        seen.monitored.insert(operator::monitored(setup, &from));
        let seed = fresh_seed(&from);
        for event in events(setup, &from) {
            seen.steps += 1;
            let result = transition(setup, &from, NOW, seed, &event);
            *seen.events.entry(event.name()).or_default() |= result.is_ok();
            let taken = Taken { setup, from: &from, event: &event, result: &result };
            invariants::check(&taken);
            stop_and_exit_are_legal(&taken);
            seen.rows.extend(Row::of(&taken));
            if let Ok(step) = result {
                seen.errors.extend(step.effects.iter().filter_map(|effect| match effect {
                    Effect::Show(Change::SessionError(it)) => {
                        Some((it.code, it.retryable, it.source))
                    }
                    _ => None,
                }));
                if event == Event::StopRequested && from.kind() != Kind::Stopping {
                    stops_by_itself(setup, &step.state);
                }
                if known.insert(key(&step.state)) {
                    open.push(step.state);
                }
            }
        }
    }
}

/// However stuck: two timers after a stop it is over, without anybody's help.
fn stops_by_itself(setup: &Setup, state: &State) {
    let mut state = state.clone();
    for _ in 0..2 {
        let State::Stopping { phase, .. } = state else { panic!("not stopping: {state:?}") };
        let timer = Timer::Stop { phase };
        let next = step(setup, &state, &Event::TimerFired { timer });
        state = next.expect("a stop timer is awaited").state;
    }
    assert_eq!(state.kind(), Kind::Stopped);
}

/// Stop and exit are refused only where nothing lives.
fn stop_and_exit_are_legal(taken: &Taken<'_>) {
    let living = !matches!(taken.from.kind(), Kind::Idle | Kind::Stopped);
    let legal = match taken.event {
        Event::StopRequested => living,
        Event::HarnessExited { .. } => taken.from.kind() != Kind::Idle,
        _ => return,
    };
    let refused = *taken.result == Err(Declined::Refused);
    assert_eq!(refused, !legal, "{:?} in {:?}", taken.event, taken.from);
}

#[test]
fn the_walk_ends_and_the_invariants_hold_at_every_step() {
    let seen = seen();
    assert!(seen.states > 1_000, "the walk saw only {} states", seen.states);
    println!("{} states, {} steps", seen.states, seen.steps);
}

#[test]
fn every_state_is_reached() {
    assert_eq!(seen().kinds, BTreeSet::from(Kind::ALL));
}

#[test]
fn every_event_does_something_somewhere() {
    let events = &seen().events;
    let idle: Vec<&&str> = events.iter().filter(|(_, did)| !**did).map(|(name, _)| name).collect();
    assert!(idle.is_empty(), "never accepted: {idle:?}");
}
