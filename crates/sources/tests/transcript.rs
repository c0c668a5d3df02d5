//! Transcripts in pages: whole, whatever the pages' size; and only ever the session's own file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use proptest::prelude::*;
use qd_harness::Harness;
use qd_harness::conversation::{Entry, Role};
use qd_sources::tail::TRANSCRIPT_LINE_BYTES_MAX;
use qd_sources::transcript::{Page, Part, Unread, Whose, read};
use qd_sources::transcript::{TRANSCRIPT_ENTRIES_MAX, TRANSCRIPT_PAGE_READ_MAX};
use serde_json::{Value, json};

/// A page of a session that has no database.
fn of_file(
    harness: Harness,
    path: Option<&str>,
    part: &Part,
    limit: usize,
) -> Result<Page, Unread> {
    // Its client keeps its transcripts beside it.
    let folders: Vec<PathBuf> =
        path.and_then(|path| Some(PathBuf::from(path).parent()?.to_owned())).into_iter().collect();
    read(&Whose { harness, session: "s", path, databases: &[], folders: &folders }, part, limit)
}

struct Transcript {
    folder: PathBuf,
    path: PathBuf,
    harness: Harness,
}

impl Transcript {
    fn new(name: &str, file: &str, harness: Harness) -> Self {
        let folder =
            std::env::temp_dir().join(format!("qd-transcript-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        Self { path: folder.join(file), folder, harness }
    }

    fn of(name: &str, lines: &[Value]) -> Self {
        let transcript = Self::new(name, "s.jsonl", Harness::ClaudeCode);
        transcript.write(lines);
        transcript
    }

    fn write(&self, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&self.path, text).expect("written");
    }

    fn append(&self, text: &str) {
        let whole = fs::read_to_string(&self.path).unwrap_or_default() + text;
        fs::write(&self.path, whole).expect("written");
    }

    fn read(&self, part: Part, limit: usize) -> Result<Page, Unread> {
        of_file(self.harness, self.path.to_str(), &part, limit)
    }

    fn newest(&self, limit: usize) -> Page {
        self.read(Part::Newest, limit).expect("a page")
    }

    /// Every page from the newest back, put together as a reader does.
    fn backwards(&self, limit: usize) -> Vec<Entry> {
        let mut page = self.newest(limit);
        let mut entries = page.entries;
        while let Some(before) = page.before.take() {
            page = self.read(Part::Before(before), limit).expect("a page before");
            let mut older = std::mem::take(&mut page.entries);
            older.retain(|entry| entries.iter().all(|known| known.id != entry.id));
            entries.splice(..0, older);
        }
        assert!(!page.more);
        entries
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn user(n: usize, text: &str) -> Value {
    json!({"type": "user", "uuid": format!("u{n}"), "message": {"content": text}})
}

fn call(n: usize) -> Value {
    json!({"type": "assistant", "uuid": format!("a{n}"), "message": {"model": "m", "content": [
        {"type": "tool_use", "id": format!("c{n}"), "name": "Bash", "input": {"command": "ls"}}]}})
}

fn result(n: usize) -> Value {
    json!({"type": "user", "uuid": format!("r{n}"), "message": {"content": [
        {"type": "tool_result", "tool_use_id": format!("c{n}"), "content": "x.txt"}]}})
}

fn ids(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.id.as_str()).collect()
}

#[test]
fn pages_go_back_to_the_beginning_and_on_from_the_end() {
    let lines: Vec<Value> = (0..10).map(|n| user(n, "hello")).collect();
    let transcript = Transcript::of("pages", &lines);
    let page = transcript.newest(4);
    assert_eq!((ids(&page.entries), page.more), (vec!["u6", "u7", "u8", "u9"], true));
    let older = transcript.read(Part::Before(page.before.expect("more")), 4).expect("a page");
    assert_eq!(ids(&older.entries), ["u2", "u3", "u4", "u5"]);
    let oldest = transcript.read(Part::Before(older.before.expect("more")), 4).expect("a page");
    assert_eq!((ids(&oldest.entries), oldest.more), (vec!["u0", "u1"], false));
    assert_eq!(oldest.before, None);

    let after = page.after.expect("a place");
    let nothing = transcript.read(Part::After(after.clone()), 4).expect("a page");
    assert_eq!((nothing.entries.len(), nothing.after.as_ref()), (0, Some(&after)));
    // Half a line is not told, and told once it is whole.
    let line = user(10, "more").to_string();
    let (half, rest) = line.split_at(20);
    transcript.append(half);
    assert_eq!(transcript.read(Part::After(after.clone()), 4).expect("a page").entries, []);
    assert_eq!(ids(&transcript.newest(1).entries), ["u9"]);
    transcript.append(&format!("{rest}\n{}\n", user(11, "most")));
    let new = transcript.read(Part::After(after), 1).expect("a page");
    assert_eq!((ids(&new.entries), new.more), (vec!["u10"], true));
    let newer = transcript.read(Part::After(new.after.expect("a place")), 1).expect("a page");
    assert_eq!((ids(&newer.entries), newer.more), (vec!["u11"], false));
}

#[test]
fn a_result_is_shown_with_its_call_wherever_the_page_is_cut() {
    let lines = [user(0, "go"), call(1), call(2), result(1), result(2), user(3, "thanks")];
    let transcript = Transcript::of("joined", &lines);
    let whole = transcript.newest(50).entries;
    assert_eq!(ids(&whole), ["u0", "c1", "c2", "u3"]);
    for entry in &whole[1..3] {
        let tool = entry.tool.as_ref().expect("a tool");
        assert_eq!((tool.name.as_str(), tool.output.as_deref()), ("Bash", Some("x.txt")));
    }
    let page = transcript.newest(2);
    assert_eq!(ids(&page.entries), ["c2", "u3"]);
    let tool = page.entries[0].tool.as_ref().expect("a tool");
    assert_eq!(tool.name, "Bash");
    assert_eq!(tool.input, Some(json!({"command": "ls"})));
    // What comes after the call was shown.
    let begun = Transcript::of("begun", &lines[..3]);
    let after = begun.newest(50).after.expect("a place");
    begun.append(&format!("{}\n", result(2)));
    let new = begun.read(Part::After(after), 50).expect("a page").entries;
    assert_eq!(
        (ids(&new), new[0].tool.as_ref().map(|tool| tool.name.as_str())),
        (vec!["c2"], Some("Bash"))
    );
}

#[test]
fn a_line_that_is_too_long_is_marked_and_passed() {
    let long = user(1, &"x".repeat(TRANSCRIPT_LINE_BYTES_MAX));
    let transcript = Transcript::of("long", &[user(0, "a"), long, user(2, "b")]);
    let entries = transcript.newest(50).entries;
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[1].role, Role::System);
    let text = entries[1].text.as_deref().expect("a text");
    assert!(text.ends_with("too long to be shown."), "{text}");
    assert_eq!(transcript.backwards(1), entries);

    // One that is longer than all that may be read at once.
    let endless = "y".repeat(usize::try_from(TRANSCRIPT_PAGE_READ_MAX).expect("small") * 2);
    transcript.write(&[user(0, "a")]);
    let after = transcript.newest(50).after.expect("a place");
    transcript.append(&format!("{endless}\n{}\n", user(2, "b")));
    let back = transcript.backwards(50);
    assert_eq!(
        (back.first().map(|one| &*one.id), back.last().map(|one| &*one.id)),
        (Some("u0"), Some("u2"))
    );
    assert!(back.len() >= 3 && back.len() <= 5, "{back:?}");
    let mut page = transcript.read(Part::After(after), 50).expect("a page");
    let mut pages = 0;
    while page.more {
        page = transcript.read(Part::After(page.after.expect("a place")), 50).expect("a page");
        pages += 1;
        assert!(pages < 8);
    }
    assert_eq!(ids(&page.entries).last(), Some(&"u2"));
}

#[test]
fn a_file_that_is_not_what_it_was_is_said_to_be_so() {
    let lines: Vec<Value> = (0..10).map(|n| user(n, "hello")).collect();
    let transcript = Transcript::of("changed", &lines);
    let page = transcript.newest(2);
    let (before, after) = (page.before.expect("more"), page.after.expect("a place"));
    let both = || {
        let before = transcript.read(Part::Before(before.clone()), 2);
        let after = transcript.read(Part::After(after.clone()), 2);
        (before.map(drop), after.map(drop))
    };
    assert_eq!(both(), (Ok(()), Ok(())));
    let changed = (Err(Unread::Changed), Err(Unread::Changed));
    // Written anew in place, with other content of the same length.
    let others: Vec<Value> = (0..10).map(|n| user(n, "hallo")).collect();
    transcript.write(&others);
    assert_eq!(both(), changed);
    transcript.write(&lines[..3]);
    assert_eq!(both(), changed);
    // Another file at the same path, with the same content.
    let copy = transcript.folder.join("copy.jsonl");
    transcript.write(&lines);
    fs::copy(&transcript.path, &copy).expect("a copy");
    fs::rename(&copy, &transcript.path).expect("moved");
    assert_eq!(both(), changed);
    fs::remove_file(&transcript.path).expect("removed");
    let gone = (Err(Unread::NoTranscript), Err(Unread::NoTranscript));
    assert_eq!(both(), gone);
}

#[test]
fn a_transcript_outside_of_its_clients_folder_is_not_read() {
    let secret = Transcript::of("outside", &[user(0, "secret")]);
    let client = secret.folder.join("client");
    fs::create_dir_all(client.join("project")).expect("a folder");
    symlink(&secret.folder, client.join("way-out")).expect("a link");
    fs::copy(&secret.path, client.join("project/own.jsonl")).expect("a copy");
    let read = |path: PathBuf| {
        let (path, folders) = (path.to_str(), [client.clone()]);
        let (harness, session, databases) = (Harness::ClaudeCode, "s", &[][..]);
        let whose = Whose { harness, session, path, databases, folders: &folders };
        read(&whose, &Part::Newest, 10).map(|page| page.entries.len())
    };
    assert_eq!(read(client.join("project/own.jsonl")), Ok(1));
    for outside in ["s.jsonl", "client/way-out/s.jsonl", "client/project/../../s.jsonl"] {
        assert_eq!(read(secret.folder.join(outside)), Err(Unread::NoTranscript), "{outside}");
    }
}

#[test]
fn only_a_plain_file_that_is_called_like_a_transcript_is_opened() {
    let transcript = Transcript::of("plain", &[user(0, "secret")]);
    let folder = &transcript.folder;
    let secret = folder.join("secret.txt");
    fs::copy(&transcript.path, &secret).expect("a copy");
    symlink(&secret, folder.join("link.jsonl")).expect("a link");
    fs::create_dir(folder.join("dir.jsonl")).expect("a folder");
    let fifo = folder.join("fifo.jsonl");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("a pipe");
    let read = |path: &str| of_file(Harness::ClaudeCode, Some(path), &Part::Newest, 10).map(drop);
    for name in ["secret.txt", "link.jsonl", "dir.jsonl", "fifo.jsonl", "missing.jsonl"] {
        let path = folder.join(name);
        let refused = read(path.to_str().expect("text"));
        assert!(matches!(refused, Err(Unread::NoTranscript | Unread::Unreadable(_))), "{name}");
    }
    for path in ["", "s.jsonl", "../s.jsonl", "/dev/null", "/etc/passwd"] {
        assert_eq!(read(path), Err(Unread::NoTranscript), "{path}");
    }
    for cursor in ["../../etc/passwd", "/etc/passwd", "0.0", "ffffffffffffffff.0.0", "\0"] {
        let refused = transcript.read(Part::Before(cursor.to_owned()), 10).map(drop);
        assert!(matches!(refused, Err(Unread::NoCursor | Unread::Changed)), "{cursor}");
    }
}

#[test]
fn a_client_that_writes_no_transcript_has_an_empty_page_that_says_so() {
    let page = of_file(Harness::Acp, None, &Part::Newest, 10).expect("a page");
    assert!(page.entries.is_empty() && page.reason.is_some());
    assert_eq!(of_file(Harness::Codex, None, &Part::Newest, 10), Err(Unread::NoTranscript));
}

fn message(n: usize, kind: &str, text: &str) -> Value {
    json!({"id": format!("m{n}"), "type": kind, "content": text})
}

#[test]
fn a_chat_is_paged_in_both_forms_while_it_grows() {
    let messages: Vec<Value> = (0..10).map(|n| message(n, "user", "hello")).collect();
    let lines = Transcript::new("chat", "session-1.jsonl", Harness::GeminiCli);
    let document = Transcript::new("document", "session-1.json", Harness::GeminiCli);
    let whole = |messages: &[Value]| json!({"sessionId": "s", "messages": messages});
    lines.write(&messages);
    fs::write(&document.path, whole(&messages).to_string()).expect("written");
    let expected: Vec<String> = (0..10).map(|n| format!("m{n}")).collect();
    for chat in [&lines, &document] {
        for limit in [1, 3, 10, 50] {
            assert_eq!(ids(&chat.backwards(limit)), expected, "{limit}");
        }
        let after = chat.newest(1).after.expect("a place");
        let nothing = chat.read(Part::After(after), 5).expect("a page");
        assert_eq!((nothing.entries.len(), nothing.more), (0, false));
    }
    // The last message grows, and another one comes.
    let (at_lines, at_document) = (lines.newest(1).after, document.newest(1).after);
    let mut grown = message(9, "gemini", "I look.");
    grown["toolCalls"] = json!([{"id": "c", "name": "ls", "args": {}, "status": "success",
        "result": [{"functionResponse": {"response": {"output": "x"}}}]}]);
    let next = message(10, "gemini", "Done.");
    lines.append(&format!("{grown}\n{next}\n"));
    let grown = [&messages[..9], &[grown, next]].concat();
    fs::write(&document.path, whole(&grown).to_string()).expect("written");
    for (chat, after) in [(&lines, at_lines), (&document, at_document)] {
        let new = chat.read(Part::After(after.expect("a place")), 5).expect("a page").entries;
        assert_eq!(&ids(&new)[new.len() - 3..], ["m9", "c", "m10"]);
        assert_eq!(new[new.len() - 3].text.as_deref(), Some("I look."));
    }
    // The past is written again under other ids.
    let after = lines.newest(1).after.expect("a place");
    let past: Vec<Value> = (20..24).map(|n| message(n, "user", "hello")).collect();
    lines.append(&format!("{}\n", json!({"$set": {"messages": past}})));
    assert_eq!(lines.read(Part::After(after), 5), Err(Unread::Changed));
    assert_eq!(ids(&lines.newest(2).entries), ["m22", "m23"]);
    lines.append("{\"$rewindTo\":\"m22\"}\n");
    assert_eq!(ids(&lines.newest(2).entries), ["m20", "m21"]);
    fs::write(&document.path, "{\"messages\":[").expect("half");
    assert_eq!(document.read(Part::Newest, 5), Err(Unread::Changed));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Lines of every length, also around the windows in which the file is read.
    #[test]
    fn every_line_is_told_once_whatever_the_limit(
        lens in prop::collection::vec(prop_oneof![0usize..200, 262_000usize..262_300, 100_000usize..600_000], 0..12),
        limit in 1usize..6,
        seed in 0u32..u32::MAX,
    ) {
        let lines: Vec<Value> =
            lens.iter().enumerate().map(|(n, len)| user(n, &format!("t{}", "x".repeat(*len)))).collect();
        let transcript = Transcript::of(&format!("walk-{seed}"), &lines);
        let expected: Vec<String> = (0..lens.len()).map(|n| format!("u{n}")).collect();
        let back = transcript.backwards(limit);
        prop_assert_eq!(ids(&back), expected.clone());
        prop_assert!(transcript.newest(TRANSCRIPT_ENTRIES_MAX * 9).entries.len() <= TRANSCRIPT_ENTRIES_MAX);
        let begin = {
            fs::write(&transcript.path, "").expect("emptied");
            transcript.newest(1).after.expect("a place")
        };
        transcript.write(&lines);
        let (mut told, mut after) = (Vec::new(), begin);
        loop {
            let page = transcript.read(Part::After(after), limit).expect("a page");
            told.extend(page.entries.iter().map(|entry| entry.id.clone()));
            after = page.after.expect("a place");
            if !page.more {
                break;
            }
        }
        prop_assert_eq!(told, expected);
    }
}
