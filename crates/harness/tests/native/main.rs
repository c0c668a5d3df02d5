//! The native harness: conversations, requests, streams, failures, events.

mod conversations;
mod events;
mod failures;
mod names;
mod requests;
mod splits;
mod streams;

use qd_harness::native::{Piece, Provider, StreamReader};

/// A spec's table: the cells of each row below the heading of that name.
#[allow(clippy::disallowed_methods, reason = "specs are files")]
fn table(spec: &str, heading: &str) -> Vec<Vec<String>> {
    let path = format!("{}/../../spec/{spec}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a spec");
    let from = text.find(&format!("\n## {heading}\n")).expect("the heading");
    let section = text[from + 1..].split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cell = |cell: &str| cell.trim().trim_matches('`').to_owned();
    rows.map(|row| row.trim_matches('|').split('|').map(cell).collect()).collect()
}

/// All pieces of an answer whose bytes came at once.
fn pieces(provider: Provider, bytes: &[u8]) -> Vec<Piece> {
    let mut reader = StreamReader::new(provider, "turn_1".into(), Some("req_1".into()));
    let mut pieces = reader.take(bytes);
    pieces.extend(reader.end());
    pieces
}

/// A stream of data without names.
fn stream(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}
