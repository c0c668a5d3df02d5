//! Sessions of our own, counted from the journal that their answers stand in.

use qd_harness::usage::PriceTable;
use qd_history::{By, History, Progress, Query, report};
use qd_session::event::{Entry, Event};
use qd_session::logbook::{Brief, Frozen, Used};
use qd_session::machine::{self, Process, Setup, Tools};
use qd_session::moment::Timestamp;
use qd_session::policy::Preset;
use qd_session::seed::Seed;
use qd_sources::places::Place;
use qd_store::{Alias, Batch, Journal};

use super::{Home, counted};

const NOON: Timestamp = Timestamp(1_772_366_400_000);

fn entry(session: &str, event: Event) -> Entry {
    Entry::new(session.into(), NOON, event)
}

/// A session is begun, of that harness.
fn begun(session: &str, harness: &str) -> Batch {
    let brief = Brief {
        workspace: "/work/shop".into(),
        model: None,
        provider: None,
        preset: Preset::Careful,
        prompt: None,
        is_chat: false,
    };
    let setup = Setup { tools: Tools::Ours, process: Process::WholeSession, hooks: Vec::new() };
    let brief = Some(Box::new(brief));
    let (harness, vendor_id) = (harness.to_owned(), session.to_owned());
    Batch {
        entries: vec![entry(session, Event::SetUp { setup, brief })],
        aliases: vec![Alias { harness, vendor_id, session: session.into() }],
        ..Batch::default()
    }
}

/// An answer, however its turn ended.
fn answered(session: &str, model: Option<&str>, used: Used) -> Batch {
    let event = machine::Event::StreamDelta { turn: "turn_1".into() };
    let frozen = Frozen { model: model.map(Into::into), used, ..Frozen::default() };
    let frozen = Some(Box::new(frozen));
    let entries = vec![entry(session, Event::Driven { seed: Seed(1), event, frozen })];
    Batch { entries, ..Batch::default() }
}

fn used(micro_usd: u64) -> Used {
    Used { input_tokens: 1_000, output_tokens: 10, micro_usd, ..Used::default() }
}

impl Home {
    fn journal(&self) -> Journal {
        std::fs::create_dir_all(self.0.join("state")).unwrap();
        Journal::open(self.0.join("state/journal.db"), Default::default()).expect("free").0
    }

    fn ours(&self) -> History {
        let places = vec![Place::journal(self.0.join("state/journal.db"))];
        let mut history = History::open(places, Some(&self.0.join("state/usage.db")));
        history.refresh(&Progress::default());
        assert!(history.troubles().is_empty(), "{:?}", history.troubles());
        history
    }
}

#[test]
fn answers_of_our_own_sessions_count_once_and_those_of_other_clients_not_here() {
    let home = Home::new();
    assert_eq!(counted(&home.ours()), (0, 0), "there is no journal yet");
    let journal = home.journal();
    let write = |batch: Batch| journal.write(&batch).wait().expect("written");
    write(begun("sess_a", "native"));
    write(begun("sess_b", "codex"));
    write(answered("sess_a", Some("claude-opus-4-6"), used(2_500_000)));
    write(answered("sess_a", Some("claude-opus-4-6"), used(0)));
    write(answered("sess_a", None, Used::default()));
    write(answered("sess_b", None, used(1_000_000)));
    assert_eq!(counted(&home.ours()), (2, 20));
    // Read on from there, with what was counted before.
    write(answered("sess_a", None, used(500_000)));
    let mut history = home.ours();
    history.refresh(&Progress::default());
    assert_eq!(counted(&history), (3, 30));
    let query = Query { since: None, until: None, by: By::Session };
    let report = report(history.ledger(), query, &PriceTable::bundled(), |_| 0);
    let row = &report.rows[0];
    assert_eq!((row.name.as_deref(), report.rows.len()), (Some("sess_a"), 1));
    let session = row.session.as_ref().expect("a session");
    assert_eq!(session.harness.name(), "native");
    // What was told at the time, and by the table where nothing was.
    let by_table = 1_000.0 * 5e-6 + 10.0 * 25e-6;
    assert!((row.sum.dollars - 3.0 - by_table).abs() < 1e-9, "{}", row.sum.dollars);
}

#[test]
fn a_journal_that_was_begun_anew_is_read_and_the_old_one_stays_counted() {
    let home = Home::new();
    let journal = home.journal();
    journal.write(&begun("sess_a", "native")).wait().expect("written");
    journal.write(&answered("sess_a", None, used(1))).wait().expect("written");
    assert_eq!(counted(&home.ours()), (1, 10));
    drop(journal);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(home.0.join(format!("state/journal.db{end}")));
    }
    assert_eq!(counted(&home.ours()), (1, 10), "what it told is told");
    let journal = home.journal();
    journal.write(&begun("sess_b", "native")).wait().expect("written");
    assert_eq!(counted(&home.ours()), (1, 10));
    journal.write(&answered("sess_b", None, used(1))).wait().expect("written");
    assert_eq!(counted(&home.ours()), (2, 20));
}
