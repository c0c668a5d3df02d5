//! `spec/finished-turn.md` and the code say the same, row by row.

use qd_session::finished_turn::{Ending, FinishedTurn, Judgement, Sign, judge};

struct Row {
    sign: String,
    example: String,
    ending: String,
}

/// The rows of the table. `¦` stands for the bar that would end a cell, `⏎` for a line break.
fn rows() -> Vec<Row> {
    let table = include_str!("../../../../spec/finished-turn.md")
        .lines()
        .filter(|line| line.starts_with("| "));
    let cells =
        |line: &str| line.split('|').map(|cell| cell.trim().to_string()).collect::<Vec<_>>();
    let rows = table.skip(2).map(cells).map(|cells| Row {
        sign: cells[1].clone(),
        example: cells[3].replace('⏎', "\n").replace('¦', "|"),
        ending: cells[4].clone(),
    });
    rows.collect()
}

fn read(text: &str) -> Judgement {
    judge(&FinishedTurn { last_message: Some(text), cut_off: false })
}

#[test]
fn each_example_gives_its_sign_and_ending() {
    for row in rows() {
        let cut_off = row.sign == Sign::CutOff.name();
        let found = judge(&FinishedTurn { last_message: Some(&row.example), cut_off });
        let found = (found.sign.name().to_string(), format!("{:?}", found.ending));
        assert_eq!(found, (row.sign, row.ending), "for {:?}", row.example);
    }
}

#[test]
fn every_sign_has_a_row_in_order_of_precedence() {
    let written: Vec<String> = rows().into_iter().map(|row| row.sign).collect();
    let known: Vec<&str> = Sign::ALL.iter().map(|sign| sign.name()).collect();
    assert_eq!(written, known);
}

#[test]
fn a_turn_without_text_is_mid_work() {
    for last_message in [None, Some(""), Some(" \n\t\u{3000}\n")] {
        let found = judge(&FinishedTurn { last_message, cut_off: false });
        assert_eq!((found.sign, found.ending), (Sign::NoText, Ending::MidWork));
    }
}

#[test]
fn no_message_however_odd_panics() {
    let odd = [
        "```",
        "~~~~",
        "`",
        "```\n```\n```",
        "|",
        "||\n|",
        "#",
        "-",
        "1.",
        "?",
        "？？？",
        "…",
        "\"",
        "'",
        "“",
        "((((",
        "](",
        "](x",
        "http",
        "http://",
        "\u{feff}",
        "\u{202e}?",
        "e\u{301}\u{301}?",
        "👩‍👩‍👧‍👦",
        "İ?",
        "ß",
        "\0",
        "\r\n\r\n?",
        "*",
        "**",
        "****",
        "> ",
        "- [",
        "- [ ]",
        "&nbsp;",
        "``a`b``",
        "\u{0964}",
        "한",
        "。",
        "I'll",
        "a\u{0}b?",
    ];
    for text in odd {
        read(text);
        read(&text.repeat(7));
        read(&format!("Done. {text}"));
    }
}

#[test]
fn a_huge_message_is_read_from_its_end() {
    let head = "日本語の長い報告です。 The report goes on. ".repeat(40_000);
    assert_eq!(read(&format!("{head}\n\nWhich one do you want?")).sign, Sign::Question);
    assert_eq!(read(&"é".repeat(1 << 20)).ending, read(&"é".repeat(1 << 15)).ending);
}

#[test]
fn a_fence_opened_before_the_part_that_is_read_still_counts() {
    let code = "let x = 1;\n".repeat(4_000);
    assert_eq!(read(&format!("The module:\n\n```rust\n{code}")).sign, Sign::OpenFence);
    assert_eq!(
        read(&format!("The module:\n\n```rust\n{code}```\n\nIt compiles.")).ending,
        Ending::Delivered
    );
}

#[test]
fn a_decision_that_was_made_is_not_asked_for_again() {
    assert_eq!(read("Thanks, using your choice.").ending, Ending::Delivered);
    assert_eq!(read("I went with your decision and removed the flag.").ending, Ending::Delivered);
    assert_eq!(read("I'd drop the flag. Your choice.").sign, Sign::Blocked);
}

#[test]
fn the_same_message_always_gets_the_same_judgement() {
    let text = "All set. Shall I delete the old bucket?";
    assert_eq!(read(text), read(text));
}
