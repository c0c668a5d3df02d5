//! A journal that an earlier build wrote, kept as it was: it opens, and what persons and scripts
//! have written down of it, ids and keys, still names the same.

use std::path::Path;
use std::sync::Arc;

use qd_broker::{Broker, Input};
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_session::moment::Timestamp;
use qd_store::{Journal, Remembered, Settings};

/// A moment after its last entry.
const NOW: Timestamp = Timestamp(1_795_006_800_000);

/// How the hooks of its sessions spelled their ids, all but the last digit.
const VENDOR_ID: &str = "01a0b2c3-0000-4000-8000-00000000000";

#[test]
fn an_old_journal_opens_with_the_ids_that_it_had() {
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old_journal/journal.db");
    let folder = std::env::temp_dir().join(format!("qd-old-journal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let copy = folder.join("journal.db");
    std::fs::copy(written, &copy).expect("a copy");
    let (journal, _) = Journal::open(copy, Settings::default()).expect("it opens");
    let mut broker = Broker::default();
    let restored = journal.load_each(|Remembered { session, aliases }| {
        let [(harness, vendor_id)] = &aliases[..] else { panic!("{aliases:?}") };
        let harness = Harness::named(harness).expect("a harness");
        let (vendor_id, session) = (Arc::from(vendor_id.as_str()), Box::new(session));
        broker.handle(NOW, Input::Restored { harness, vendor_id, session });
    });
    assert_eq!(restored.expect("it is read"), [], "nothing is damaged");
    let seen = broker.cards(NOW).into_iter().map(|card| {
        let keys = card.requests.iter().filter_map(|request| Some(request.key.as_ref()?.as_str()));
        let state = card.agent_state.state.as_str();
        format!("{} {state} {}", card.session_id, keys.collect::<String>())
    });
    let mut seen: Vec<String> = seen.collect();
    seen.sort();
    assert_eq!(
        seen,
        [
            "sess_e162982b-474e-835c-ae8b-a226a0372c6a needs_permission req_bdf329a4965e04e8",
            "sess_fbf3ba78-2d43-868f-848a-88b1cb98ac39 task_complete ",
            "sess_fdb99cb9-c14f-8158-927c-c221560fa5be thinking ",
        ]
    );
    let _ = std::fs::remove_dir_all(&folder);
}

/// Also a daemon that lost its journal calls a session as before.
#[test]
fn a_session_that_is_heard_of_again_has_the_id_that_it_had() {
    let ids = [
        (Harness::ClaudeCode, 1, "sess_e162982b-474e-835c-ae8b-a226a0372c6a"),
        (Harness::Codex, 2, "sess_fbf3ba78-2d43-868f-848a-88b1cb98ac39"),
        (Harness::GeminiCli, 3, "sess_fdb99cb9-c14f-8158-927c-c221560fa5be"),
    ];
    let mut broker = Broker::default();
    for (harness, nth, id) in ids {
        let payload = format!(
            r#"{{"hook_event_name":"SessionStart","session_id":"{VENDOR_ID}{nth}","cwd":"/srv/acme","source":"startup"}}"#
        );
        let (channel, direction) = (Channel::Hook, Direction::FromAgent);
        let payload = payload.as_bytes();
        let signal = Signal { at: NOW, seq: 0, channel, direction, file: None, payload };
        broker.handle(NOW, Input::Signal { harness, signal });
        let ids = broker.cards(NOW).into_iter().map(|card| card.session_id);
        assert!(ids.map(|id| id.to_string()).any(|known| known == id), "{harness:?}");
    }
}
