//! Messages with a known ending, and how many of them are read rightly.

use qd_session::finished_turn::{Ending, FinishedTurn, judge};

fn ending_named(name: &str) -> Ending {
    match name {
        "asks" => Ending::Asks,
        "mid_work" => Ending::MidWork,
        "delivered" => Ending::Delivered,
        other => panic!("no ending is called {other}"),
    }
}

/// How many messages are read rightly, printing those that are not. Never fewer than were: a rule
/// that mends one message must not spoil another.
fn check(file: &str, messages: &str, floor: f32) {
    let (mut total, mut right, mut group) = (0.0_f32, 0.0_f32, 0.0_f32);
    for (at, line) in messages.lines().enumerate() {
        let message: serde_json::Value = serde_json::from_str(line).expect("each line is JSON");
        let text = message["text"].as_str().expect("a message has a text");
        let expected = ending_named(message["ending"].as_str().expect("a message has an ending"));
        let found = judge(&FinishedTurn { last_message: Some(text), cut_off: false });
        total += 1.0;
        let agrees =
            |ending: Ending| (ending == Ending::Delivered) == (expected == Ending::Delivered);
        group += f32::from(u8::from(agrees(found.ending)));
        if found.ending == expected {
            right += 1.0;
        } else {
            let end: String =
                text.chars().rev().take(160).collect::<Vec<_>>().into_iter().rev().collect();
            println!(
                "{file}:{} is {expected:?}, read as {:?} by {}: …{end:?}",
                at + 1,
                found.ending,
                found.sign.name()
            );
        }
    }
    println!(
        "{file}: {right} of {total} exact ({:.1} %), group {:.1} %",
        100.0 * right / total,
        100.0 * group / total
    );
    assert!(right >= floor, "{file}: {right} are read rightly, there were {floor}");
}

#[test]
fn labelled_messages_are_read_rightly() {
    check("labelled", include_str!("labelled.jsonl"), 177.0);
}

#[test]
fn held_out_messages_are_read_rightly() {
    check("endings", include_str!("endings.jsonl"), 441.0);
}

/// The rules were made with these in view.
#[test]
fn messages_in_twelve_languages_are_read_rightly() {
    check("practised", include_str!("practised.jsonl"), 628.0);
}

/// Measured only: when one of these is read wrongly, look for its like elsewhere before a rule
/// is made, or the number below says nothing about messages that are still to come. Four of them
/// (a report after a wait, "anything else" behind "before", what the agent does not have, twice)
/// were in view when rules were made: without those it is 451.
#[test]
fn messages_that_no_rule_was_made_for_are_read_rightly() {
    check("unseen", include_str!("unseen.jsonl"), 455.0);
}

/// As agents write them at the end of a turn, in fourteen languages. The last 43 came after the
/// rules: 42 of them were read rightly at once.
#[test]
fn messages_of_agents_at_work_are_read_rightly() {
    check("agents", include_str!("agents.jsonl"), 158.0);
}
