//! `qd audit`: the records as an operator sees them, with a daemon and without one.

use qd_session::decision::{Book, By, Command, Decision, Given, Offer, Order, Record, Shown};
use qd_session::id::{RequestId, RequestKey, SessionId};
use qd_session::moment::Timestamp;
use qd_session::monitor::RequestKind;
use qd_session::seed::Seed;
use qd_store::{Batch, Journal, Settings};
use serde_json::{Value, json};

use crate::world::World;

/// A denied command and what became of it, and a prompt to another session: four records.
fn decide(world: &World) -> Journal {
    let path = world.state().join("journal.db");
    let (journal, _) = Journal::open(path, Settings::default()).expect("it opens");
    let mut book = Book::after(journal.record_ends().expect("readable").last);
    let by = By { who: "ann".to_owned(), device: "phone".to_owned() };
    let at = Timestamp(1_795_000_000_000);
    let session = SessionId::new("sess_one");
    let request = RequestKey::of(&session, &RequestId::new("toolu_1"), at);
    book.opened(&request);
    let decision = Seed(1).decision();
    let input = Some("{\"command\":\"rm \u{1b}[2J\"}");
    let offer = Offer {
        decision: decision.clone(),
        request: request.clone(),
        session,
        by: by.clone(),
        rule: None,
        shown: Shown::new(RequestKind::Permission, Some("Bash".into()), None, input),
        answer: Decision::Deny { message: Some("not here".to_owned()), interrupt: false },
        key: None,
    };
    let fresh = |given| match given {
        Given::Fresh { record } => *record,
        given @ Given::Repeated { .. } => panic!("{given:?}"),
    };
    let mut records: Vec<Record> = vec![fresh(book.give(at, offer).expect("it is open"))];
    records.extend(book.delivered(at, &decision, "hook".into()));
    records.extend(book.closed(at, &request));
    let command = Command::Prompt { text: "go on".to_owned() };
    let (decision, session) = (Seed(2).decision(), SessionId::new("sess_two"));
    let order = Order { decision, session, by, command, key: None };
    records.push(fresh(book.command(at, order).expect("there is room")));
    journal.write(&Batch { records, ..Batch::default() }).wait().expect("written");
    journal
}

#[test]
fn without_decisions_there_is_nothing_to_tell() {
    let world = World::new();
    let none = world.run(&["audit"]).expect(0);
    assert!(none.out.contains("No decision is on record"), "{none:?}");
    let verdict = world.run(&["audit", "--verify", "--json"]).expect(0).json();
    assert_eq!((&verdict["records"], &verdict["broken"]), (&json!(0), &json!([])));
    assert!(!world.state().exists(), "it only reads");
    let _daemon = world.daemon();
    world.run(&["audit", "--verify"]).expect(0);
}

#[test]
fn decisions_are_told_while_the_journal_is_held_and_after() {
    let world = World::new();
    let journal = decide(&world);
    let held = world.run(&["audit"]).expect(0);
    drop(journal);
    let told = world.run(&["audit"]).expect(0);
    assert_eq!(held.out, told.out);
    let lines: Vec<&str> = told.out.lines().collect();
    assert_eq!(lines.len(), 4, "{told:?}");
    for (line, said) in lines.iter().zip([
        "given by ann on phone: deny \u{201c}not here\u{201d} to Bash",
        "delivered through hook",
        "confirmed by the agent",
        "commanded by ann on phone: prompt \u{201c}go on\u{201d} (sess_two)",
    ]) {
        assert!(line.contains(said), "{line}");
    }
    assert!(!told.out.contains('\u{1b}'), "a terminal obeys nothing: {told:?}");
    let one = world.run(&["audit", "--session", "sess_o", "--json"]).expect(0);
    let records: Vec<Value> =
        one.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let names: Vec<&Value> = records.iter().map(|record| &record["record"]).collect();
    assert_eq!(names, ["given", "delivered", "confirmed"]);
    assert_eq!(records[1]["prev"], records[0]["hash"]);
    let verified = world.run(&["audit", "--verify"]).expect(0);
    assert!(verified.out.starts_with("4 records, each as it was written"), "{verified:?}");
    // A daemon sends no command twice: of one that a kill cut off it says that it is unclear.
    let _daemon = world.daemon();
    let mut unclear = String::new();
    while !unclear.contains("unclear: whether it arrived is not known") {
        unclear = world.run(&["audit"]).expect(0).out;
    }
    assert!(unclear.starts_with(&told.out) && unclear.lines().count() == 5, "{unclear}");
}

/// As somebody would who wants an answer to have been another one.
#[test]
fn a_changed_record_is_told_and_ends_with_6() {
    let world = World::new();
    drop(decide(&world));
    let path = world.state().join("journal.db");
    let bytes = std::fs::read(&path).expect("the journal");
    let at = bytes.windows(8).position(|window| window == b"not here").expect("the answer");
    let mut changed = bytes;
    changed[at..at + 8].copy_from_slice(b"and here");
    std::fs::write(&path, changed).expect("changed");
    for arguments in [&["audit"][..], &["audit", "--verify"], &["audit", "--json"]] {
        let told = world.run(arguments).expect(6);
        assert!(told.err.contains("record 1 was changed"), "{told:?}");
    }
    let verdict = world.run(&["audit", "--verify", "--json"]).expect(6).json();
    assert_eq!(verdict["broken"][0]["seq"], 1);
}

#[test]
fn a_journal_that_cannot_be_read_is_an_error() {
    let world = World::new();
    world.write("state/quarterdeck/journal.db", "this is no database, and it is long enough");
    let told = world.run(&["audit", "--verify"]).expect(1);
    assert!(told.err.contains("journal.db"), "{told:?}");
}
