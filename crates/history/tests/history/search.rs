//! Words that were said are found, whatever happened to the files.

use std::fs;
use std::sync::atomic::AtomicBool;

use qd_history::{Progress, Search};
use qd_sources::places::places;
use qd_store::{Hit, SearchQuery};
use serde_json::json;

use super::Home;

fn search(home: &Home) -> Search {
    let places = places(&home.0, &Default::default());
    let mut search = Search::open(places, &home.0.join("state/search.db")).unwrap();
    search.refresh(&Progress::default(), &AtomicBool::new(false));
    search
}

fn find(search: &Search, words: &str) -> Vec<Hit> {
    let query = SearchQuery { words: words.to_owned(), hits_max: 10, ..SearchQuery::default() };
    search.find(&query).unwrap()
}

fn said(kind: &str, session: &str, second: u32, text: &str) -> String {
    let content = json!([{"type": "text", "text": text}]);
    json!({
        "type": kind, "sessionId": session, "cwd": "/home/ann/acme",
        "timestamp": format!("2026-03-01T10:00:{second:02}.000Z"),
        "message": {"role": kind, "content": content},
    })
    .to_string()
        + "\n"
}

#[test]
fn what_was_said_is_found_once_and_as_it_grows() {
    let home = Home::new();
    let first =
        said("user", "s1", 1, "fix the parser") + &said("assistant", "s1", 2, "It is mended");
    home.write("-p/s1.jsonl", &first);
    // A fork repeats it under its own id.
    home.write("-p/s2.jsonl", first.replace("\"s1\"", "\"s2\""));
    // Half a line is none.
    home.write("-p/s3.jsonl", &said("user", "s3", 3, "parser")[..60]);
    let hits = find(&search(&home), "parser");
    let [hit] = &hits[..] else { panic!("{hits:?}") };
    assert_eq!((hit.who.as_str(), hit.project.as_deref()), ("operator", Some("/home/ann/acme")));
    assert_eq!(hit.snippet, "fix the \u{2}parser\u{3}");
    home.append("-p/s1.jsonl", &said("user", "s1", 4, "now the lexer"));
    let again = search(&home);
    assert_eq!((find(&again, "lexer").len(), find(&again, "parser mended").len()), (1, 0));
    assert_eq!((find(&again, "parser").len(), find(&again, "mended").len()), (1, 1));
    // What was said stays said.
    fs::remove_file(home.path("-p/s1.jsonl")).unwrap();
    assert_eq!(find(&search(&home), "lexer").len(), 1);
}

#[test]
fn it_stops_when_it_is_told_to() {
    let home = Home::new();
    home.write("-p/s1.jsonl", said("user", "s1", 1, "fix the parser"));
    let places = places(&home.0, &Default::default());
    let mut search = Search::open(places, &home.0.join("state/search.db")).unwrap();
    search.refresh(&Progress::default(), &AtomicBool::new(true));
    assert_eq!(find(&search, "parser").len(), 0);
    search.refresh(&Progress::default(), &AtomicBool::new(false));
    assert_eq!(find(&search, "parser").len(), 1);
}
