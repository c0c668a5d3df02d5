//! What the book remembers, and for how long.

use qd_session::decision::{Book, Command, Decision, Given, Refused, Scope, Standing};
use qd_session::id::RequestKey;
use qd_session::limits::{
    BOOK_CLOSED_MAX, BOOK_DECISIONS_MAX, BOOK_REQUESTS_MAX, RECORD_BYTES_MAX,
};
use serde_json::{Value, json};

use super::sample::{NOW, deny, offer, order, request};

/// Answered, delivered and confirmed.
fn settle(book: &mut Book, nth: u64) {
    let mut offer = offer(nth, request(nth), "phone");
    offer.key = Some(format!("key-{nth}").as_str().into());
    let decision = offer.decision.clone();
    book.opened(&request(nth));
    book.give(NOW, offer).expect("it is open");
    book.delivered(NOW, &decision, "hook".into());
    book.closed(NOW, &request(nth));
}

#[test]
fn the_oldest_settled_decision_is_forgotten_and_what_is_under_way_stays() {
    let mut book = Book::default();
    book.opened(&request(0));
    book.give(NOW, offer(0, request(0), "phone")).expect("it is open");
    for nth in 1..=BOOK_DECISIONS_MAX as u64 {
        settle(&mut book, nth);
    }
    assert_eq!(book.decision(&offer(0, request(0), "").decision).map(|d| d.seq), Some(1));
    assert_eq!(book.decision(&offer(1, request(1), "").decision), None);
    assert_eq!(book.give(NOW, offer(9_999, request(1), "desk")), Err(Refused::Unknown));
    let refused = book.give(NOW, offer(9_999, request(2), "desk"));
    assert!(matches!(refused, Err(Refused::AlreadyAnswered { .. })), "{refused:?}");
}

#[test]
fn a_book_full_of_what_is_under_way_takes_no_more() {
    let mut book = Book::default();
    for nth in 0..BOOK_DECISIONS_MAX as u64 {
        book.opened(&request(nth));
        book.give(NOW, offer(nth, request(nth), "phone")).expect("there is room");
    }
    let last = offer(9_999, request(9_999), "phone");
    book.opened(&last.request);
    assert_eq!(book.give(NOW, last.clone()), Err(Refused::Full));
    book.failed(NOW, &offer(5, request(5), "").decision, "no way");
    assert!(matches!(book.give(NOW, last), Ok(Given::Fresh { .. })));
}

#[test]
fn requests_have_a_bound() {
    let mut book = Book::default();
    for nth in 0..BOOK_REQUESTS_MAX as u64 {
        assert!(book.opened(&request(nth)));
    }
    assert!(book.opened(&request(0)), "it is known");
    assert!(!book.opened(&request(9_999)));
    for nth in 0..=BOOK_CLOSED_MAX as u64 {
        book.closed(NOW, &request(nth));
    }
    assert_eq!(book.give(NOW, offer(1, request(0), "phone")), Err(Refused::Unknown));
    assert_eq!(book.give(NOW, offer(1, request(1), "phone")), Err(Refused::Closed));
    assert!(book.opened(&request(9_999)), "one was forgotten");
}

#[test]
fn what_cannot_be_recorded_is_not_given() {
    let mut book = Book::default();
    book.opened(&request(1));
    let changed = |input: Value| {
        let mut offer = offer(1, request(1), "phone");
        offer.answer = Decision::Allow { input: Some(input), scope: Scope::Once };
        offer
    };
    let long = book.give(NOW, changed(json!("x".repeat(RECORD_BYTES_MAX))));
    assert!(matches!(long, Err(Refused::Unrecordable { .. })), "{long:?}");
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let deep = book.give(NOW, changed(deep));
    assert!(matches!(deep, Err(Refused::Unrecordable { .. })), "{deep:?}");
    assert!(matches!(book.give(NOW, changed(json!({"n": 0.1}))), Ok(Given::Fresh { .. })));
}

#[test]
fn the_same_key_has_the_same_result_and_another_use_is_refused() {
    let mut book = Book::default();
    book.opened(&request(1));
    book.opened(&request(2));
    let keyed = |seed, nth, device: &str| {
        let mut offer = offer(seed, request(nth), device);
        offer.key = Some("k".into());
        offer
    };
    let first = keyed(1, 1, "phone").decision;
    book.give(NOW, keyed(1, 1, "phone")).expect("it is open");
    book.failed(NOW, &first, "no way");
    // The request is open again, and the key still means the first attempt.
    match book.give(NOW, keyed(2, 1, "phone")) {
        Ok(Given::Repeated { first: told }) => {
            assert_eq!(told.subject.decision(), &first);
            assert_eq!(told.standing, Standing::Failed { why: "no way".to_owned() });
        }
        other => panic!("{other:?}"),
    }
    let mut other = keyed(3, 1, "phone");
    other.answer = deny("never");
    for reused in [other, keyed(3, 2, "phone")] {
        let refused = book.give(NOW, reused);
        assert!(matches!(refused, Err(Refused::KeyReused { .. })), "{refused:?}");
    }
    // Somebody else's key is another one.
    assert!(matches!(book.give(NOW, keyed(4, 1, "desk")), Ok(Given::Fresh { .. })));
}

#[test]
fn a_command_is_on_record_and_ends_with_its_delivery() {
    let mut book = Book::default();
    let mut prompt = order(1, Command::Prompt { text: "go on".to_owned() });
    prompt.key = Some("k".into());
    let given = book.command(NOW, prompt.clone()).expect("there is room");
    assert!(matches!(given, Given::Fresh { .. }));
    assert_eq!(book.unsettled().count(), 1);
    let records = book.delivered(NOW, &prompt.decision, "hook".into());
    assert_eq!(records.len(), 1);
    assert_eq!(book.unsettled().count(), 0);
    let again = book.command(NOW, prompt).expect("it is the same");
    assert!(matches!(again, Given::Repeated { .. }));
}

#[test]
fn a_command_that_nobody_can_say_anything_of_is_given_up() {
    let mut book = Book::default();
    let prompt = order(1, Command::Prompt { text: "go on".to_owned() });
    book.command(NOW, prompt.clone()).expect("there is room");
    let records = book.lost(NOW, &prompt.decision);
    assert_eq!(records.len(), 1);
    let standing = book.decision(&prompt.decision).map(|decided| decided.standing.clone());
    assert_eq!(standing, Some(Standing::Unclear));
    assert_eq!(book.unsettled().count(), 0);
}

#[test]
fn a_requests_key_is_the_same_after_a_restart_and_another_one_when_asked_again() {
    let key = request(1);
    assert_eq!(key, request(1));
    assert_ne!(key, request(2));
    assert_ne!(
        RequestKey::of(&"a".into(), &"bc".into(), NOW),
        RequestKey::of(&"ab".into(), &"c".into(), NOW)
    );
    let digits = key.as_str().strip_prefix("req_").expect("the prefix");
    assert!(digits.len() == 16 && digits.chars().all(|sign| sign.is_ascii_hexdigit()));
}
