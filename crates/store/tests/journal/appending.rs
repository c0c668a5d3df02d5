//! Appending: numbers, order, exactly once, and what is refused at the door.

use std::collections::BTreeSet;

use qd_session::event::Event;
use qd_session::id::CallId;
use qd_session::machine::{self, Judged, ToolCall, Verdict};
use qd_session::seed::Seed;
use qd_store::limits::{DELIVERY_BYTES_MAX, ENTRY_BYTES_MAX, KEY_BYTES_MAX, QUEUE_BYTES_MAX};
use qd_store::{Alias, Batch, Delivery, Error, MetaChange, Written};

use super::sample::{delivery, entries, entry, loaded, long_entry, session, spoken};
use super::scratch::Scratch;

#[test]
fn numbers_rise_over_batches_and_restarts() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let first = journal.append(entries(1, 0..3)).wait().expect("written");
    assert_eq!(first, Written::Fresh(1..4));
    assert_eq!(journal.append(Vec::new()).wait().expect("nothing to write"), Written::Fresh(4..4));
    drop(journal);
    let journal = scratch.open();
    let next = journal.append(vec![entry(2, 3)]).wait().expect("written");
    assert_eq!(next, Written::Fresh(4..5));
    assert_eq!(next.last(), Some(4));
    assert_eq!(journal.last_seq(), 4);
    let written = journal.entries(0, 100).expect("readable");
    assert_eq!(written.iter().map(|one| one.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(written.iter().map(spoken).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let of_two = journal.history(&session(2), 0, 100).expect("readable");
    assert_eq!(of_two.iter().map(spoken).collect::<Vec<_>>(), [3]);
}

#[test]
fn many_threads_get_numbers_of_their_own_in_their_own_order() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let threads: Vec<_> = (0..8)
        .map(|of| {
            let journal = journal.clone();
            std::thread::spawn(move || {
                let receipts: Vec<_> =
                    (0..50).map(|n| journal.append(entries(of, 2 * n..2 * n + 2))).collect();
                receipts
                    .into_iter()
                    .flat_map(|receipt| match receipt.wait().expect("written") {
                        Written::Fresh(numbers) => numbers,
                        Written::Repeated => panic!("nothing was repeated"),
                    })
                    .collect::<Vec<u64>>()
            })
        })
        .collect();
    let mut all = BTreeSet::new();
    for (of, thread) in threads.into_iter().enumerate() {
        let numbers = thread.join().expect("it ends");
        assert!(numbers.is_sorted());
        let written = journal.history(&session(of as u64), 0, 1_000).expect("readable");
        assert_eq!(written.iter().map(|one| one.seq).collect::<Vec<_>>(), numbers);
        assert!(written.iter().map(spoken).eq(0..100));
        all.extend(numbers);
    }
    assert!(all.into_iter().eq(1..801));
}

#[test]
fn a_delivery_is_written_once_whatever_its_order() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let deliver = |journal: &qd_store::Journal, source: &str, n| {
        journal.append_once(delivery(source, n), vec![entry(1, n % 100)]).wait().expect("taken")
    };
    // 6 came over the socket while 5 lay in the spool.
    assert_eq!(deliver(&journal, "spool-a", 6), Written::Fresh(1..2));
    assert_eq!(deliver(&journal, "spool-a", 5), Written::Fresh(2..3));
    assert_eq!(deliver(&journal, "spool-a", 6), Written::Repeated);
    assert_eq!(deliver(&journal, "spool-b", 6), Written::Fresh(3..4));
    assert_eq!(deliver(&journal, "spool-b", u64::MAX), Written::Fresh(4..5));
    drop(journal);
    let journal = scratch.open();
    assert_eq!(deliver(&journal, "spool-a", 5), Written::Repeated);
    assert_eq!(deliver(&journal, "spool-b", u64::MAX), Written::Repeated);
    // A signal that meant nothing is remembered as delivered all the same.
    let nothing =
        |n| journal.append_once(delivery("spool-a", n), Vec::new()).wait().expect("taken");
    assert_eq!(nothing(7), Written::Fresh(5..5));
    assert_eq!(nothing(7), Written::Repeated);
    assert_eq!(journal.entries(0, 100).expect("readable").len(), 4);
}

#[test]
fn two_deliveries_of_one_number_in_one_group_are_one() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let receipts: Vec<_> = (0..100)
        .map(|n| journal.append_once(delivery("spool", n / 2), vec![entry(1, n / 2)]))
        .collect();
    let repeated = receipts
        .into_iter()
        .map(|receipt| receipt.wait().expect("taken"))
        .filter(|written| *written == Written::Repeated)
        .count();
    assert_eq!(repeated, 50);
    let kept = journal.deliveries().expect("readable");
    assert_eq!(kept, (0..50).map(|n| delivery("spool", n)).collect::<Vec<_>>());
    assert!(journal.entries(0, 100).expect("readable").iter().map(spoken).eq(0..50));
}

#[test]
fn a_batch_is_one_thing() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let alias = |session| Alias { harness: "codex".into(), vendor_id: "v-1".into(), session };
    let offset = |value: &str| MetaChange::Set { key: "offset/a".into(), value: value.into() };
    let batch = Batch {
        entries: entries(1, 0..2),
        aliases: vec![alias(session(1))],
        meta: vec![offset("10")],
        deliveries: vec![delivery("scan", 1), delivery("scan", 2)],
        ..Batch::default()
    };
    assert_eq!(journal.write(&batch).wait().expect("written"), Written::Fresh(1..3));
    let again = Batch {
        meta: vec![offset("99")],
        aliases: vec![alias(session(9))],
        deliveries: vec![delivery("scan", 3), delivery("scan", 2)],
        ..batch
    };
    assert_eq!(journal.write(&again).wait().expect("taken"), Written::Repeated);
    assert_eq!(journal.meta("offset/a").expect("readable").as_deref(), Some("10"));
    assert_eq!(journal.alias("codex", "v-1").expect("readable"), Some(session(1)));

    // A part that is too long takes the others with it.
    let entries = vec![entry(1, 2), long_entry(1, 3, ENTRY_BYTES_MAX)];
    let refused = journal.write(&Batch { entries, meta: vec![offset("20")], ..Batch::default() });
    assert!(matches!(refused.wait(), Err(Error::TooLong { what: "an entry", .. })));
    assert_eq!(journal.meta("offset/a").expect("readable").as_deref(), Some("10"));
    assert_eq!(journal.last_seq(), 2);
}

#[test]
fn aliases_and_meta_are_changed_and_found() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let alias = |vendor_id: &str, of| Alias {
        harness: "claude_code".into(),
        vendor_id: vendor_id.into(),
        session: session(of),
    };
    for one in [alias("b", 1), alias("a", 1), alias("b", 2)] {
        journal.set_alias(one).wait().expect("written");
    }
    for (key, value) in [("offset/x", "1"), ("offset/y", "2"), ("offset/x", "3"), ("other", "4")] {
        let change = MetaChange::Set { key: key.into(), value: value.into() };
        journal.set_meta(change).wait().expect("written");
    }
    drop(journal);
    let journal = scratch.open();
    assert_eq!(journal.aliases().expect("readable"), [alias("a", 1), alias("b", 2)]);
    assert_eq!(journal.alias("claude_code", "b").expect("readable"), Some(session(2)));
    assert_eq!(journal.alias("codex", "b").expect("readable"), None);
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(
        journal.meta_with_prefix("offset/").expect("readable"),
        [pair("offset/x", "3"), pair("offset/y", "2")]
    );
    journal.set_meta(MetaChange::Removed { key: "offset/x".into() }).wait().expect("written");
    assert_eq!(journal.meta("offset/x").expect("readable"), None);
    // A session of which only a name is known is none yet.
    assert!(loaded(&journal).is_empty());
}

#[test]
fn what_could_not_be_read_back_is_refused() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let mut newer = entry(1, 0);
    newer.version = 99;
    assert!(matches!(journal.append(vec![newer]).wait(), Err(Error::UnknownVersion(99))));

    let deep = (0..120).fold(serde_json::Value::Null, |inner, _| serde_json::json!([inner]));
    let call = ToolCall {
        call_id: CallId::from("call_1"),
        name: "read_file".into(),
        arguments: deep,
        mutating: false,
    };
    let calls = vec![Judged { call, verdict: Verdict::Allow }];
    let event = machine::Event::ResponseParsed { turn: Seed(1).turn(), calls };
    let mut parsed = entry(1, 0);
    parsed.event = Event::Driven { seed: Seed(1), event, frozen: None };
    assert!(matches!(journal.append(vec![parsed.clone()]).wait(), Err(Error::TooDeep { .. })));

    // It costs the others nothing.
    let (session, kept) = (parsed.session.clone(), entry(2, 0));
    let mut batch = Batch::from(vec![parsed, kept.clone()]);
    assert_eq!(batch.sift(), [session]);
    assert_eq!(batch, Batch::from(vec![kept]));

    let named = |id: String| Delivery { id, body: Vec::new() };
    let long = Delivery { body: vec![0; DELIVERY_BYTES_MAX + 1], ..named("s".to_owned()) };
    for refused in [named("s".repeat(KEY_BYTES_MAX + 1)), long] {
        let refused = journal.append_once(refused, Vec::new()).wait();
        assert!(matches!(refused, Err(Error::TooLong { .. })));
    }
    assert_eq!(journal.last_seq(), 0);
    assert!(loaded(&journal).is_empty());
}

#[test]
fn a_full_queue_holds_the_sender_back_and_drops_nothing() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let bytes = 1 << 20;
    // Made before the lock is taken: the writer waits for that no longer than it does for anybody.
    let most = 2 * QUEUE_BYTES_MAX / bytes;
    let batch = |nth: u64| Batch::from(vec![long_entry(1, nth, bytes)]);
    let mut batches: Vec<Batch> = (0..=most as u64).rev().map(batch).collect();
    // Somebody else's transaction keeps the writer waiting.
    let other = scratch.sql();
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let mut receipts = Vec::new();
    let batch = loop {
        let batch = batches.pop().expect("the queue is bounded");
        match journal.try_write(&batch) {
            Some(receipt) => receipts.push(receipt),
            None => break batch,
        }
    };
    let held_back = std::thread::spawn({
        let journal = journal.clone();
        move || journal.write(&batch).wait()
    });
    other.execute_batch("COMMIT").expect("the lock is free");
    let count = receipts.len() as u64;
    for (nth, receipt) in receipts.into_iter().enumerate() {
        assert_eq!(receipt.wait().expect("written").last(), Some(nth as u64 + 1));
    }
    assert_eq!(held_back.join().expect("it ends").expect("written").last(), Some(count + 1));
    assert_eq!(journal.queue_len(), 0);
}

#[test]
fn a_program_that_keeps_the_lock_is_named_as_the_cause() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let other = scratch.sql();
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let refused = journal.append(entries(1, 0..1)).wait();
    assert!(matches!(refused, Err(Error::Locked)), "{refused:?}");
    assert!(journal.health().write_error.is_some());
    other.execute_batch("COMMIT").expect("the lock is free");
    assert_eq!(journal.append(entries(1, 0..1)).wait().expect("written"), Written::Fresh(1..2));
    assert!(journal.health().write_error.is_none());
}

#[test]
fn the_last_handle_writes_what_is_queued() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let receipts: Vec<_> = (0..500).map(|n| journal.append(vec![entry(1, n)])).collect();
    drop(journal);
    for receipt in receipts {
        receipt.wait().expect("written before the end");
    }
    assert_eq!(scratch.open().entries(0, 1_000).expect("readable").len(), 500);
}
