//! What must not leave this machine, taken out of a recording.
//!
//! Pure: text in, text out. Works on JSON as it is written, also on JSON inside of a JSON text;
//! no replacement has a quote or a backslash in it, and no pattern reaches past one, so what was
//! JSON stays JSON.

use std::sync::LazyLock;

use qd_harness::secret;
use regex::{Captures, Regex, RegexBuilder};

/// The home that recordings have.
const HOME: &str = "/home/me";

const USER: &str = "me";

/// Names that say nothing about a person, or that clients use as words of their own: taking them
/// out would break what is recorded.
const PLAIN_NAMES: [&str; 20] = [
    "admin",
    "agent",
    "app",
    "assistant",
    "claude",
    "code",
    "codex",
    "dev",
    "gemini",
    "home",
    "main",
    "model",
    "node",
    "root",
    "system",
    "test",
    "text",
    "tool",
    "ubuntu",
    "user",
];

/// Knows whose machine it is.
#[derive(Debug)]
pub struct Redaction {
    home: Option<Regex>,
    user: Option<Regex>,
    emails: bool,
}

impl Redaction {
    /// For the machine of a user with this home; `emails` says whether addresses go as well.
    pub fn new(home: &str, user: Option<&str>, emails: bool) -> Self {
        let home = home.trim_end_matches('/');
        // Claude Code names its folders after a path: -home-ann-acme. A longer name that begins
        // the same is somebody else's.
        let dashed = regex::escape(&home.replace(['/', '.'], "-"));
        let slashed = regex::escape(home).replace('/', r"(?:\\?/)");
        let home = (home.len() > 1).then(|| {
            pattern(&format!(r"(?P<path>{slashed})(?P<after>[^\w.-]|$)|(?P<dashed>{dashed})\b"))
        });
        let is_telling = |user: &&str| user.len() > 2 && !PLAIN_NAMES.contains(user);
        let user = user.filter(is_telling);
        Self { home, user: user.map(|user| pattern(&word(user))), emails }
    }

    pub fn text(&self, text: &str) -> String {
        let mut text = secret::redacted(text);
        if let Some(home) = &self.home {
            let named = |found: &Captures<'_>| match found.name("dashed") {
                Some(_) => HOME.replace('/', "-"),
                None => format!("{HOME}{}", &found["after"]),
            };
            text = home.replace_all(&text, named).into_owned();
        }
        if self.emails {
            text = EMAIL.replace_all(&text, "${before}someone@example.com").into_owned();
        }
        if let Some(user) = &self.user {
            text = user.replace_all(&text, format!("${{before}}{USER}")).into_owned();
        }
        text
    }
}

/// A name that is no part of a longer one. After a backslash the first letter is an escape's.
fn word(name: &str) -> String {
    format!(r"(?P<before>^|[^\w]|\\[nrtbf]){}\b", regex::escape(name))
}

fn pattern(text: &str) -> Regex {
    RegexBuilder::new(text).size_limit(1 << 22).build().expect("a pattern of ours")
}

static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    // After a backslash the first letter is an escape's.
    pattern(
        r"(?P<before>^|[^\w.%+\\-]|\\[nrtbf]|\\+[^\w])[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b",
    )
});

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let redaction = Redaction::new("/home/ann", Some("ann"), true);
        assert_eq!(redaction.text(text), expected);
        assert_eq!(redaction.text(expected), expected, "once is enough");
        // The same within JSON, and within JSON in a JSON text.
        let mut json = serde_json::to_string(text).expect("a text");
        let mut wanted = serde_json::to_string(expected).expect("a text");
        for depth in 1..=2 {
            let redacted = redaction.text(&json);
            serde_json::from_str::<serde_json::Value>(&redacted).expect("it is still JSON");
            assert_eq!(redacted, wanted, "{depth} deep");
            json = serde_json::to_string(&json).expect("a text");
            wanted = serde_json::to_string(&wanted).expect("a text");
        }
    }

    #[test]
    fn keys_of_the_usual_shapes_go() {
        for key in [
            "sk-ant-api03-AAAAAAAAAAAAAAAAAAAA-BBBB_CC",
            "sk-proj-0123456789abcdefghij",
            "sk_live_0123456789abcdefghij",
            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "github_pat_11AAAAAAA0123456789_abcdefghij",
            "glpat-0123456789abcdefghij",
            "xoxb-0123456789-abcdefghij",
            "AKIAIOSFODNN7EXAMPLE",
            "AIzaSyA0123456789abcdefghijklmnopqrstuv",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        ] {
            check(&format!("echo {key} | cat"), "echo REDACTED | cat");
        }
    }

    #[test]
    fn headers_and_addresses_with_a_password_go() {
        check("x: Bearer abcdef0123456789.x\ny", "x: Bearer REDACTED\ny");
        check("curl -H 'Authorization: token 0123'", "curl -H 'Authorization: REDACTED");
        check("git clone https://ann:hunter2@host/x", "git clone https://me:REDACTED@host/x");
        check("git clone https://host/a@b", "git clone https://host/a@b");
    }

    #[test]
    fn assignments_go_and_counters_stay() {
        check("DB_PASSWORD=hunter2 run", "DB_PASSWORD=REDACTED run");
        check("export STRIPE_KEY='abc def'", "export STRIPE_KEY='REDACTED def'");
        check("a?access_token=xyz&b=1", "a?access_token=REDACTED&b=1");
        check(r#"{"password":"hunter2","n":1}"#, r#"{"password":"REDACTED","n":1}"#);
        check(r#"{"apiKey": "abc"}"#, r#"{"apiKey": "REDACTED"}"#);
        for kept in [
            r#"{"input_tokens":12,"total_token_usage":{"x":1}}"#,
            r#"{"key":"Enter","keyboard":"de","max_tokens": "7"}"#,
            "if a == key { monkey = 1 }",
            "desk-lamp-with-a-very-long-name",
        ] {
            check(kept, kept);
        }
    }

    #[test]
    fn a_private_key_goes_whole_and_half() {
        let begin = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn";
        let end = "\n-----END OPENSSH PRIVATE KEY-----";
        check(&format!("a {begin}{end} z"), "a REDACTED z");
        check(&format!("a {begin}"), "a REDACTED");
    }

    #[test]
    fn the_home_and_its_owner_become_somebody() {
        check("/home/ann/acme and /home/ann", "/home/me/acme and /home/me");
        check(
            "/home/anna/acme /home/ann-b /home/ann.old",
            "/home/anna/acme /home/me-b /home/me.old",
        );
        check("/x/-home-ann-acme/1.jsonl", "/x/-home-me-acme/1.jsonl");
        check("chown ann:ann x\nann plans annually", "chown me:me x\nme plans annually");
        check(
            "ann@example.org wrote, bo.b+x@a.co too",
            "someone@example.com wrote, someone@example.com too",
        );
    }

    #[test]
    fn names_that_clients_use_themselves_stay() {
        for user in ["user", "me", "claude"] {
            let redaction = Redaction::new(&format!("/home/{user}"), Some(user), false);
            let text = format!(r#"{{"type":"{user}","cwd":"/home/{user}/acme","mail":"a@b.de"}}"#);
            let wanted = format!(r#"{{"type":"{user}","cwd":"/home/me/acme","mail":"a@b.de"}}"#);
            assert_eq!(redaction.text(&text), wanted);
        }
        assert_eq!(Redaction::new("/", None, false).text("/a/b"), "/a/b");
        assert_eq!(Redaction::new("/root", Some("root"), false).text("/root/b"), "/home/me/b");
    }

    /// Every recording we have, through a redaction that has something to do in it.
    #[test]
    fn a_redacted_recording_replays_to_the_same_states() {
        use qd_harness::capture::Recorded;
        use qd_harness::replay::{Replay, Scene};

        let redaction = Redaction::new("/home/user", Some("user"), true);
        let captured = concat!(env!("CARGO_MANIFEST_DIR"), "/../harness/captured");
        let folders = |path: &std::path::Path| -> Vec<std::path::PathBuf> {
            let entries = std::fs::read_dir(path).expect("a folder");
            entries
                .map(|entry| entry.expect("an entry").path())
                .filter(|path| path.is_dir())
                .collect()
        };
        let mut played = 0;
        for client in folders(captured.as_ref()) {
            for folder in folders(&client) {
                let capture = crate::capture::Capture::open(&folder).expect("a capture");
                let text = std::fs::read_to_string(folder.join("signals.jsonl")).expect("signals");
                let states = |text: &str| -> Vec<String> {
                    let mut replay = Replay::new(capture.harness);
                    let mut scenes = Vec::new();
                    for line in text.lines().filter(|line| !line.is_empty()) {
                        let recorded: Recorded = serde_json::from_str(line).expect("still a line");
                        scenes.extend(replay.play(&recorded.signal().expect("a known source")));
                    }
                    scenes.extend(replay.finish());
                    let states = scenes.into_iter().filter_map(|scene| match scene {
                        Scene::Changed { at, session, state } => {
                            Some(format!("{at:?} {session} {:?} {:?}", state.group, state.state))
                        }
                        Scene::Event { .. } => None,
                    });
                    states.collect()
                };
                assert_eq!(states(&text), states(&redaction.text(&text)), "{}", folder.display());
                played += 1;
            }
        }
        assert!(played > 100, "{played}");
    }

    proptest::proptest! {
        #[test]
        fn what_was_json_stays_json(text in r#"(sk-|Bearer |KEY=|password|token|"|\\|:|=|@|/home/ann|\n|[a-z0-9]{1,20}|-----BEGIN PRIVATE KEY-----){0,30}"#) {
            let redaction = Redaction::new("/home/ann", Some("ann"), true);
            let mut json = serde_json::json!({"a": text, "b": [text.clone()]}).to_string();
            for _ in 0..3 {
                let redacted = redaction.text(&json);
                let read = serde_json::from_str::<serde_json::Value>(&redacted);
                proptest::prop_assert!(read.is_ok(), "{redacted}");
                json = serde_json::json!({"password": json, "c": text}).to_string();
            }
        }
    }
}
