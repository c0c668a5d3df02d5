//! `spec/decisions.md`, read both ways: every row happens, nothing happens without a row.

use std::collections::BTreeSet;

use qd_session::decision::{Book, Given, Record, Refused};

use super::sample::{NOW, offer, request};

const SPEC: &str = include_str!("../../../../spec/decisions.md");

/// How a request gets into each state, by inputs of the table.
const STATES: [(&str, &[&str]); 10] = [
    ("Unknown", &[]),
    ("Open", &["Opened"]),
    ("InFlight", &["Opened", "Given"]),
    ("Unsettled", &["Opened", "Given", "Lost"]),
    ("Delivered", &["Opened", "Given", "Delivered"]),
    ("Ending", &["Opened", "Given", "Closed"]),
    ("Confirmed", &["Opened", "Given", "Delivered", "Closed"]),
    ("Overtaken", &["Opened", "Given", "Closed", "Failed"]),
    ("Unclear", &["Opened", "Given", "Closed", "Lost"]),
    ("Elsewhere", &["Opened", "Closed"]),
];

const INPUTS: [&str; 9] = [
    "Opened",
    "Given",
    "Given again",
    "Sent again",
    "Delivered",
    "Failed",
    "Lost",
    "Closed",
    "Restarted",
];

/// A book with one request, and the records it has written.
struct Page {
    book: Book,
    records: Vec<Record>,
    seed: u64,
}

impl Page {
    fn in_state(inputs: &[&str]) -> Self {
        let mut page = Self { book: Book::default(), records: Vec::new(), seed: 0 };
        for input in inputs {
            page.take(input);
        }
        page
    }

    /// What the input did, as the table spells it.
    fn take(&mut self, input: &str) -> String {
        let first = offer(1, request(1), "phone");
        let decision = &first.decision;
        let records = match input {
            "Opened" => {
                assert!(self.book.opened(&request(1)));
                Vec::new()
            }
            "Given" => {
                self.seed += 1;
                let offer = offer(self.seed, request(1), "phone");
                return self.give(offer);
            }
            "Given again" => return self.give(first),
            "Sent again" => {
                return if self.book.sent_again(decision) { "deliver" } else { "-" }.to_owned();
            }
            "Delivered" => self.book.delivered(NOW, decision, "hook".into()),
            "Failed" => self.book.failed(NOW, decision, "no way"),
            "Lost" => self.book.lost(NOW, decision),
            "Closed" => self.book.closed(NOW, &request(1)),
            "Restarted" => {
                self.book = Book::default();
                self.records.iter().for_each(|record| self.book.apply(record));
                Vec::new()
            }
            _ => panic!("no input {input:?}"),
        };
        let names: Vec<&str> = records.iter().map(|record| record.body.name()).collect();
        let names = if names.is_empty() { "-".to_owned() } else { names.join(", ") };
        self.records.extend(records);
        names
    }

    fn give(&mut self, offer: qd_session::decision::Offer) -> String {
        match self.book.give(NOW, offer) {
            Ok(Given::Fresh { record }) => {
                self.records.push(*record);
                "given".to_owned()
            }
            Ok(Given::Repeated { first }) => format!("told: {}", first.standing.name()),
            Err(Refused::AlreadyAnswered { .. }) => "refused: already answered".to_owned(),
            Err(Refused::Closed) => "refused: closed".to_owned(),
            Err(Refused::Unknown) => "refused: unknown".to_owned(),
            Err(refused) => panic!("{refused:?}"),
        }
    }

    /// The state that behaves like this one: the book shows an answer's standing, and what it
    /// does with an answer tells the rest apart.
    fn state(&self) -> &'static str {
        if let Some(decided) = self.book.answer_to(&request(1)) {
            let name = decided.standing.name().replace('_', "");
            let known = STATES.iter().find(|(state, _)| state.to_lowercase() == name);
            return known.unwrap_or_else(|| panic!("no state {name}")).0;
        }
        match self.book.clone().give(NOW, offer(99, request(1), "desk")) {
            Ok(_) => "Open",
            Err(Refused::Closed) => "Elsewhere",
            Err(Refused::Unknown) => "Unknown",
            Err(refused) => panic!("{refused:?}"),
        }
    }
}

#[test]
fn every_row_happens_and_nothing_happens_without_a_row() {
    let mut seen = BTreeSet::new();
    for (state, way) in STATES {
        for input in INPUTS {
            let mut page = Page::in_state(way);
            assert_eq!(page.state(), state);
            // There is nothing to repeat or to report where nothing was given.
            let is_given = !page.records.is_empty();
            if !is_given && !["Opened", "Given", "Closed", "Restarted"].contains(&input) {
                continue;
            }
            let does = page.take(input);
            seen.insert([state.to_owned(), input.to_owned(), page.state().to_owned(), does]);
        }
    }
    let section = SPEC.split("\n## ").find(|section| section.starts_with("A request"));
    let rows = section.expect("the table").lines().filter(|line| line.starts_with('|')).skip(2);
    let written: BTreeSet<[String; 4]> = rows
        .map(|row| {
            let cells = row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
            let [from, input, to, does, _] =
                <[String; 5]>::try_from(cells.collect::<Vec<_>>()).expect("five cells");
            [from, input, to, does]
        })
        .collect();
    let never: Vec<_> = written.difference(&seen).collect();
    let spelled = |row: &[String; 4]| format!("| {} | |", row.join(" | "));
    let unwritten: Vec<String> = seen.difference(&written).map(spelled).collect();
    assert!(never.is_empty(), "rows that never happen: {never:#?}");
    assert!(unwritten.is_empty(), "happens without a row:\n{}", unwritten.join("\n"));
}
