//! Any sequence of events: folded again to the same bytes, and every call answered exactly once.

use std::collections::BTreeSet;

use proptest::prelude::*;
use qd_session::Session;
use qd_session::event::{self, Entry};
use qd_session::id::{CallId, SessionId};
use qd_session::machine::{Action, Event, Output, Setup, Tools};
use qd_session::moment::Timestamp;
use qd_session::seed::Seed;
use qd_session::snapshot::{Snapshot, fold};

use super::logbook::brief;
use super::world::{events, setups};

fn id() -> SessionId {
    SessionId::from("sess_1")
}

fn entry(at: u64, event: event::Event) -> Entry {
    Entry::new(id(), Timestamp(at), event)
}

/// A session driven by choices, one of the events of its state at each step.
fn driven(setup: &Setup, choices: &[u16]) -> (Session, Vec<(Entry, Vec<Output>)>) {
    let mut session = Session::new(id());
    let set_up =
        entry(0, event::Event::SetUp { setup: setup.clone(), brief: Some(Box::new(brief())) });
    let mut journal = vec![(set_up.clone(), session.apply(&set_up))];
    for (nth, choice) in choices.iter().enumerate() {
        let machine = session.machine().expect("it was set up");
        let possible = events(setup, machine.state());
        let event = possible[usize::from(*choice) % possible.len()].clone();
        let seed = Seed(nth as u64 + 100);
        let entry = entry(nth as u64 * 10, event::Event::Driven { seed, event, frozen: None });
        let outputs = session.apply(&entry);
        journal.push((entry, outputs));
    }
    (session, journal)
}

fn bytes(session: &Session) -> String {
    serde_json::to_string(session).expect("a session is JSON")
}

/// Choices that mostly make progress: the first events of a state's list are its commands.
fn choices() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn folding_the_journal_gives_the_live_state_byte_for_byte(
        setup in prop::sample::select(setups()),
        choices in choices(),
        cut in any::<prop::sample::Index>(),
    ) {
        let (live, journal) = driven(&setup, &choices);
        let written: Vec<String> = journal
            .iter()
            .map(|(entry, _)| serde_json::to_string(entry).expect("an entry is JSON"))
            .collect();
        let read: Vec<Entry> = written
            .iter()
            .map(|line| serde_json::from_str(line).expect("it was just written"))
            .collect();
        let folded = fold(Session::new(id()), &read);
        prop_assert_eq!(bytes(&folded), bytes(&live));

        let cut = cut.index(read.len());
        let snapshot = Snapshot::of(&fold(Session::new(id()), &read[..cut]));
        let snapshot = serde_json::to_string(&snapshot).expect("a snapshot is JSON");
        let snapshot: Snapshot = serde_json::from_str(&snapshot).expect("it was just written");
        prop_assert_eq!(bytes(&fold(snapshot.session, &read[cut..])), bytes(&live));
        prop_assert_eq!(folded.resolve(Timestamp(9_999)), live.resolve(Timestamp(9_999)));
    }

    /// D15, over a whole life: no request leaves while a call has no output, and none has two.
    #[test]
    fn every_call_has_exactly_one_output_before_every_request(
        setup in prop::sample::select(setups()),
        choices in choices(),
    ) {
        if setup.tools != Tools::Ours {
            return Ok(());
        }
        let mut open: BTreeSet<CallId> = BTreeSet::new();
        for (entry, outputs) in driven(&setup, &choices).1 {
            let event::Event::Driven { event, .. } = &entry.event else { continue };
            let accepted = outputs.iter().any(|output| matches!(output, Output::Do(_)))
                || !is_refused(&outputs);
            if let Event::ResponseParsed { calls, .. } = event
                && accepted
                && !outputs.is_empty()
            {
                open.extend(calls.iter().map(|judged| judged.call.call_id.clone()));
            }
            for output in &outputs {
                let Output::Do(Action::SendToHarness { outputs, .. }) = output else { continue };
                for output in outputs {
                    prop_assert!(open.remove(&output.call_id), "answered twice: {:?}", output);
                }
                prop_assert!(open.is_empty(), "asked with calls open: {:?}", open);
            }
        }
    }
}

fn is_refused(outputs: &[Output]) -> bool {
    use qd_session::machine::{Change, ErrorCode};
    outputs.iter().any(|output| match output {
        Output::Show(shown) => matches!(
            &shown.change,
            Change::SessionError(error) if error.code == ErrorCode::StateTransitionInvalid
        ),
        Output::Do(_) => false,
    })
}

/// Lines of the first version, kept as they were written. They fold for ever.
#[test]
fn an_old_journal_still_folds() {
    let journal = include_str!("journal-v1.jsonl");
    let entries: Vec<Entry> =
        journal.lines().map(|line| serde_json::from_str(line).expect("version 1")).collect();
    let session = fold(Session::new(id()), &entries);
    let state = session.resolve(Timestamp(1_794_800_009_000)).expect("it is on the board");
    assert_eq!(state.state.as_str(), "needs_permission");
    assert_eq!(session.monitor().title(), Some("Port the parser"));
    let written: Vec<String> =
        entries.iter().map(|entry| serde_json::to_string(entry).expect("JSON")).collect();
    assert_eq!(written, journal.lines().collect::<Vec<_>>(), "and are written as they were");
}

#[test]
fn a_journal_of_the_future_is_not_guessed_at() {
    let future = r#"{"v":2,"session":"sess_1","at":1,"entry":"dismissed"}"#;
    let error = serde_json::from_str::<Entry>(future).expect_err("version 2 is not known");
    assert!(error.to_string().contains("journal version 2"), "{error}");
}

#[test]
fn entries_of_another_session_change_nothing() {
    let mut session = Session::new(SessionId::from("sess_2"));
    let journal = include_str!("journal-v1.jsonl");
    for line in journal.lines() {
        session.apply(&serde_json::from_str(line).expect("version 1"));
    }
    assert_eq!(session, Session::new(SessionId::from("sess_2")));
}

#[test]
fn a_dismissed_session_leaves_needs_you_until_its_next_event() {
    let mut session = Session::new(id());
    let heard = |at: u64, fact: &str| -> Entry {
        let event = format!(r#"{{"at":{at},"source":"hook","type":"{fact}"}}"#);
        let event = serde_json::from_str(&event).expect("an event");
        entry(at, event::Event::Observed { event })
    };
    let group = |session: &Session| {
        serde_json::to_value(session.resolve(Timestamp(50)).expect("observed").group)
            .expect("a group is JSON")
    };
    session.apply(&heard(10, "turn_started"));
    session.apply(&heard(11, "interrupted"));
    assert_eq!(group(&session), "needs_you");
    session.apply(&entry(12, event::Event::Dismissed));
    assert_eq!(group(&session), "delivered");
    session.apply(&heard(20, "interrupted"));
    assert_eq!(group(&session), "needs_you");
}

#[test]
fn an_archived_session_stays_in_history_until_its_next_event_or_its_operator_wants_it() {
    let heard = |at: u64| -> Entry {
        let event = format!(r#"{{"at":{at},"source":"hook","type":"interrupted"}}"#);
        let event = serde_json::from_str(&event).expect("an event");
        entry(at, event::Event::Observed { event })
    };
    let mut session = Session::new(id());
    session.apply(&heard(11));
    assert!(!session.is_archived());
    session.apply(&entry(12, event::Event::Archived));
    assert!(session.is_archived());
    session.apply(&entry(13, event::Event::Unarchived));
    assert!(!session.is_archived());
    session.apply(&entry(14, event::Event::Archived));
    session.apply(&heard(20));
    assert!(!session.is_archived());
}
