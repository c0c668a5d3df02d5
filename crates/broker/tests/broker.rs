//! The broker over captured sessions: it says what a replay says, and its journal folds to it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use qd_broker::{Broker, Card, Input, NotFound, Output, Past, REST_AFTER_MS};
use qd_harness::capture::{Recorded, Scenario};
use qd_harness::replay::{Replay, Scene};
use qd_harness::{Harness, Signal};
use qd_session::Session;
use qd_session::event::{Entry, Event};
use qd_session::id::{RequestId, SessionId};
use qd_session::limits::UNOBSERVED_KEPT_MS;
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Ask, Fact, Stage};
use qd_session::operator::{Group, SubState};
use qd_session::snapshot::fold;

/// Outputs that neither journal nor show.
macro_rules! others {
    () => {
        Output::Found { .. }
            | Output::Locate(_)
            | Output::LookInto { .. }
            | Output::Survey(_)
            | Output::Run(_)
            | Output::Changed(_)
            | Output::Streamed(_)
            | Output::Record(_)
            | Output::Carry(_)
            | Output::Release(_)
            | Output::Settled(_)
            | Output::Remove(_)
    };
}

struct Capture {
    harness: Harness,
    signals: Vec<Recorded>,
}

#[expect(clippy::disallowed_methods, reason = "captures are files")]
fn capture(name: &str) -> Capture {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../harness/captured").join(name);
    let text = |file: &str| std::fs::read_to_string(folder.join(file)).expect(file);
    let scenario: Scenario = serde_json::from_str(&text("scenario.json")).expect("a scenario");
    let signals = text("signals.jsonl");
    let signals = signals.lines().map(|line| serde_json::from_str(line).expect("a signal"));
    Capture { harness: scenario.harness, signals: signals.collect() }
}

/// A broker on a virtual clock, as its loop would run it.
#[derive(Default)]
struct World {
    broker: Broker,
    outputs: Vec<(Timestamp, Output)>,
}

impl World {
    fn play(&mut self, capture: &Capture) -> Timestamp {
        let mut now = Timestamp::ZERO;
        for recorded in &capture.signals {
            let signal = recorded.signal().expect("a known source");
            self.run_until(now, signal.at);
            now = now.max(signal.at);
            self.hand_in(now, Input::Signal { harness: capture.harness, signal });
        }
        let end = now.plus_ms(5_000);
        self.run_until(now, end);
        end
    }

    fn run_until(&mut self, mut now: Timestamp, until: Timestamp) {
        while let Some(wake) = self.broker.next_wake().filter(|wake| *wake <= until) {
            now = now.max(wake);
            self.hand_in(now, Input::Woken);
        }
    }

    fn hand_in(&mut self, now: Timestamp, input: Input<'_>) {
        let outputs = self.broker.handle(now, input);
        self.outputs.extend(outputs.into_iter().map(|output| (now, output)));
    }

    fn entries(&self) -> Vec<Entry> {
        let entries = self.outputs.iter().filter_map(|(_, output)| match output {
            Output::Append(entry) => Some(entry.clone()),
            Output::Show(_) | others!() => None,
        });
        entries.collect()
    }

    fn shown(&self) -> Vec<(Timestamp, Arc<str>, String)> {
        let shown = self.outputs.iter().filter_map(|(at, output)| match output {
            Output::Show(card) => Some((*at, card.vendor_id.clone(), seen_as(card))),
            Output::Append(_) | others!() => None,
        });
        changes(shown.collect())
    }
}

/// In the core's words: a replay has no layers.
fn seen_as(card: &Card) -> String {
    let state = &card.agent_state;
    let label = state.core_label.as_ref().unwrap_or(&state.label);
    format!("{:?}/{} {label}", state.group, state.state.as_str())
}

/// A card is shown again for other reasons than its state; a replay is not.
fn changes(shown: Vec<(Timestamp, Arc<str>, String)>) -> Vec<(Timestamp, Arc<str>, String)> {
    let mut last: BTreeMap<Arc<str>, String> = BTreeMap::new();
    shown
        .into_iter()
        .filter(|(_, id, state)| last.insert(id.clone(), state.clone()).as_ref() != Some(state))
        .collect()
}

const CAPTURES: [&str; 6] = [
    "claude-code/tui-permission-allow",
    "claude-code/tui-background-agent",
    "codex/daemon-tui-approves",
    "codex/app-subagent",
    "gemini/interactive-permission",
    "opencode/question",
];

#[test]
fn the_broker_shows_what_a_replay_shows() {
    for name in CAPTURES {
        let capture = capture(name);
        let mut world = World::default();
        let end = world.play(&capture);
        let mut replay = Replay::new(capture.harness);
        let mut scenes = Vec::new();
        for recorded in &capture.signals {
            scenes.extend(replay.play(&recorded.signal().expect("a known source")));
        }
        scenes.extend(replay.run_until(end));
        let told = scenes.into_iter().filter_map(|scene| match scene {
            Scene::Changed { at, session, state } => {
                let state = format!("{:?}/{} {}", state.group, state.state.as_str(), state.label);
                Some((at, session, state))
            }
            Scene::Event { .. } => None,
        });
        assert_eq!(world.shown(), told.collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn the_journal_folds_to_what_is_shown_and_comes_first() {
    for name in CAPTURES {
        let mut world = World::default();
        let end = world.play(&capture(name));
        let mut journaled: BTreeMap<SessionId, usize> = BTreeMap::new();
        for (_, output) in &world.outputs {
            match output {
                Output::Append(entry) => *journaled.entry(entry.session.clone()).or_default() += 1,
                Output::Show(card) => {
                    assert!(journaled.contains_key(&card.session_id), "shown before it is kept");
                }
                others!() => {}
            }
        }
        let entries = world.entries();
        for card in world.broker.cards(end) {
            let own = entries.iter().filter(|entry| entry.session == card.session_id);
            let folded = fold(Session::new(card.session_id.clone()), own);
            assert_eq!(folded.resolve(end).as_ref(), Some(&card.agent_state), "{name}");
        }
    }
}

#[test]
fn a_board_at_rest_is_the_board_that_is_awake() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    for name in CAPTURES {
        let (capture, mut awake, mut rested) = (capture(name), World::default(), World::default());
        let mut now = Timestamp::ZERO;
        for recorded in &capture.signals {
            let at = recorded.signal().expect("a known source").at;
            now = now.max(at);
            for world in [&mut awake, &mut rested] {
                world.run_until(now, at);
                let signal = recorded.signal().expect("a known source");
                world.hand_in(now, Input::Signal { harness: capture.harness, signal });
            }
            rested.broker.rest_all();
            assert_eq!(rested.broker.resting(), rested.broker.len(), "{name}");
            assert_eq!(awake.broker.cards(now), rested.broker.cards(now), "{name}");
            assert_eq!(awake.broker.next_wake().is_some(), rested.broker.next_wake().is_some());
        }
        // Until everything that time alone changes has changed.
        let end = now.plus_ms(3 * DAY_MS);
        for world in [&mut awake, &mut rested] {
            world.run_until(now, end);
        }
        assert_eq!(awake.outputs, rested.outputs, "{name}");
        assert_eq!(awake.broker.cards(end), rested.broker.cards(end), "{name}");
        for card in awake.broker.past(end, &everything()) {
            let id = &card.session_id;
            assert_eq!(awake.broker.session(id), rested.broker.session(id), "{name}");
        }
    }
}

#[test]
fn a_session_rests_once_nothing_is_heard_of_it_and_wakes_with_its_next_signal() {
    let capture = capture("claude-code/tui-permission-allow");
    let mut world = World::default();
    let end = world.play(&capture);
    assert_eq!(world.broker.resting(), 0);
    world.run_until(end, end.plus_ms(2 * REST_AFTER_MS));
    assert_eq!(world.broker.resting(), world.broker.len());
    let asleep = end.plus_ms(2 * REST_AFTER_MS);
    let wake = world.broker.next_wake();
    assert!(wake.is_none_or(|at| at > asleep.plus_ms(2 * REST_AFTER_MS)), "it wakes for nothing");
    let last = capture.signals.last().expect("one").signal().expect("a known source");
    let payload = String::from_utf8_lossy(last.payload).replace("SessionEnd", "SessionStart");
    let signal = Signal { at: asleep, payload: payload.as_bytes(), ..last };
    world.hand_in(asleep, Input::Signal { harness: capture.harness, signal });
    assert_eq!(world.broker.resting() + 1, world.broker.len());
}

fn everything() -> Past {
    Past { count_max: usize::MAX, ..Past::default() }
}

#[test]
fn a_restored_session_is_the_same_session() {
    let capture = capture("claude-code/tui-permission-allow");
    let mut world = World::default();
    let end = world.play(&capture);
    let card = world.broker.cards(end).remove(0);
    let session = world.broker.session(&card.session_id).expect("it has a card").into_owned();

    let mut later = World::default();
    let restored = Input::Restored {
        harness: card.harness,
        vendor_id: card.vendor_id.clone(),
        session: Box::new(session),
    };
    later.hand_in(end, restored);
    assert_eq!(later.broker.cards(end), std::slice::from_ref(&card));
    let first = capture.signals[0].signal().expect("a known source");
    later.hand_in(end, Input::Signal { harness: capture.harness, signal: first });
    assert_eq!(later.broker.cards(end).len(), 1, "the same id finds the same session");
}

#[test]
fn a_session_is_found_by_its_ids_and_by_unique_prefixes() {
    let mut world = World::default();
    let end = world.play(&capture("claude-code/tui-resume-clear"));
    let cards = world.broker.cards(end);
    assert_eq!(cards.len(), 2);
    for card in &cards {
        let id = &card.session_id;
        assert_eq!(world.broker.find(id.as_str()), Ok(id));
        assert_eq!(world.broker.find(&card.vendor_id), Ok(id));
        assert_eq!(world.broker.find(&card.vendor_id[..8]), Ok(id));
        assert_eq!(world.broker.find(&id.as_str()[5..13]), Ok(id));
    }
    assert_eq!(world.broker.find("sess_"), Err(NotFound::Several));
    assert_eq!(world.broker.find("nobody"), Err(NotFound::Nobody));
}

#[test]
fn a_dismissed_session_leaves_needs_you() {
    let mut world = World::default();
    let end = world.play(&capture("claude-acp/plan-approval-yolo-error"));
    let card = |world: &World| world.broker.cards(end).remove(0);
    let waiting = card(&world);
    assert_eq!(waiting.agent_state.group, Group::NeedsYou);
    world.hand_in(end, Input::Dismissed { session: waiting.session_id });
    assert_eq!(card(&world).agent_state.group, Group::Delivered);
    let nobody = SessionId::from("sess_nobody");
    assert_eq!(world.broker.handle(end, Input::Dismissed { session: nobody }), []);
}

/// A session that waits for a permission, as a hook told, and of whose process this is known.
fn asking(world: &mut World, vendor_id: &str, at: Timestamp, process: Option<&str>) -> SessionId {
    let id = SessionId::new(format!("sess_{vendor_id}"));
    let mut session = Session::new(id.clone());
    let ask = Ask::default();
    let (request, stage) = (RequestId::from("r-1"), Stage::Waiting);
    let asked = Fact::ApprovalRequested { request, stage, ask };
    let seen = process.map(|process| Fact::ProcessSeen { process: process.into() });
    for fact in [asked].into_iter().chain(seen) {
        let event = AgentEvent::main(at, Source::Hook, fact);
        session.apply(&Entry::new(id.clone(), at, Event::Observed { event }));
    }
    let (harness, vendor_id, session) = (Harness::Codex, vendor_id.into(), Box::new(session));
    world.hand_in(at, Input::Restored { harness, vendor_id, session });
    id
}

#[test]
fn what_is_old_and_lives_nowhere_goes_to_history_and_comes_back() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let now = Timestamp(1_800_000_000_000);
    let mut world = World::default();
    let old = asking(&mut world, "old", now.minus_ms(2 * DAY_MS), None);
    let new = asking(&mut world, "new", now, None);
    let alive = asking(&mut world, "alive", now.minus_ms(2 * DAY_MS), Some("7:42"));
    let on_board = |world: &World, now: Timestamp| -> Vec<SessionId> {
        let mut ids: Vec<_> =
            world.broker.cards(now).into_iter().map(|card| card.session_id).collect();
        ids.sort();
        ids
    };
    assert_eq!(on_board(&world, now), [alive.clone(), new.clone(), old.clone()]);
    let archivable = world.broker.archivable(now, DAY_MS);
    assert_eq!(archivable, std::slice::from_ref(&old), "old, and nothing of it lives");

    world.hand_in(now, Input::Archived { session: old.clone() });
    world.hand_in(now, Input::Archived { session: alive.clone() });
    assert_eq!(on_board(&world, now), [alive.clone(), new.clone()], "what lives stays");
    let why = &world.broker.card(now, &alive).expect("a card").capabilities.why["canArchive"];
    assert_eq!(why, "its process still runs; dismiss it instead");
    let gone = world.broker.card(now, &old).expect("still known");
    assert!(gone.archived, "History has it");
    assert!(matches!(world.outputs.last(), Some((_, Output::Remove(id))) if *id == old));
    let journaled = |event: Event| {
        world.entries().iter().any(|entry| entry.session == old && entry.event == event)
    };
    assert!(journaled(Event::Archived) && !journaled(Event::Unarchived));

    world.hand_in(now, Input::Unarchived { session: old.clone() });
    assert_eq!(on_board(&world, now), [alive.clone(), new.clone(), old.clone()], "undone");
    let week = now.plus_ms(UNOBSERVED_KEPT_MS);
    world.hand_in(week, Input::Woken);
    assert_eq!(on_board(&world, week), [alive], "after a week by itself");
}

#[test]
fn a_session_that_no_command_goes_on_with_says_so() {
    let now = Timestamp(1_800_000_000_000);
    let resumable = |harness: Harness| {
        let id = SessionId::from("sess_ended");
        let mut session = Session::new(id.clone());
        for fact in [
            Fact::SessionStarted { process: None },
            Fact::SessionEnded { process: None, exit_code: None },
        ] {
            let event = AgentEvent::main(now, Source::Hook, fact);
            session.apply(&Entry::new(id.clone(), now, Event::Observed { event }));
        }
        let (vendor_id, session) = ("v-1".into(), Box::new(session));
        let mut world = World::default();
        world.hand_in(now, Input::Restored { harness, vendor_id, session });
        let card = world.broker.card(now, &id).expect("a card");
        assert_eq!(card.agent_state.state, SubState::SESSION_ENDED);
        assert_eq!(card.capabilities.can_resume, card.resume_command.is_some());
        card.capabilities.why.get("canResume").cloned()
    };
    assert_eq!(resumable(Harness::Codex), None);
    let why = Some("its client has no command that goes on with it".to_owned());
    assert_eq!(resumable(Harness::Cline), why);
    assert_eq!(resumable(Harness::Acp), why);
}
