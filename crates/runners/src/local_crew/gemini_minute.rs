//! When Gemini CLI can go on with a session without losing it.
//!
//! It names a chat's file after the minute and the session, and begins a fresh one before it reads
//! the old ones: within the minute in which the last was begun it overwrites what it should read.

use std::collections::BTreeMap;
use std::fs::read_dir;
use std::path::{Path, PathBuf};
use std::time::Duration;

use qd_session::moment::Timestamp;

const MINUTE_MS: u64 = 60_000;

/// Of the session's id, as much as its file is named after.
const ID_BYTES: usize = 8;

/// Projects that are looked through. More than anybody has; those behind are not protected.
const PROJECTS_MAX: usize = 4_096;

/// How long to wait before the session is loaded.
pub(super) fn left(
    environment: &BTreeMap<String, String>,
    session: &str,
    now: Timestamp,
) -> Duration {
    let home = |name: &str| environment.get(name).map(PathBuf::from);
    let Some(home) = home("GEMINI_CLI_HOME").or_else(|| home("HOME")) else {
        return Duration::ZERO;
    };
    let minute_began = now.0 / MINUTE_MS * MINUTE_MS;
    let file = format!("session-{}-{}.jsonl", minute(minute_began / 1_000), short(session));
    match has_chat(&home.join(".gemini/tmp"), &file) {
        true => Duration::from_millis(minute_began + MINUTE_MS - now.0),
        false => Duration::ZERO,
    }
}

fn has_chat(projects: &Path, file: &str) -> bool {
    let projects = read_dir(projects).into_iter().flatten().flatten().take(PROJECTS_MAX);
    projects.into_iter().any(|project| project.path().join("chats").join(file).exists())
}

fn short(session: &str) -> &str {
    &session[..session.floor_char_boundary(ID_BYTES)]
}

/// `2026-11-16T16-43`, in universal time.
fn minute(seconds: u64) -> String {
    let at = i64::try_from(seconds).ok().and_then(|it| jiff::Timestamp::from_second(it).ok());
    at.unwrap_or_default().strftime("%Y-%m-%dT%H-%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_spelled_as_files_are() {
        assert_eq!(minute(0), "1970-01-01T00-00");
        assert_eq!(minute(951_782_399), "2000-02-28T23-59");
        assert_eq!(minute(951_782_400), "2000-02-29T00-00");
        assert_eq!(minute(1_794_847_411), "2026-11-16T16-43");
    }

    #[test]
    fn only_a_chat_of_this_minute_is_waited_for() {
        let home = std::env::temp_dir().join(format!("qd-gemini-minute-{}", std::process::id()));
        let chats = home.join(".gemini/tmp/acme/chats");
        std::fs::create_dir_all(&chats).expect("a folder");
        std::fs::write(chats.join("session-2026-11-16T16-43-6b025f47.jsonl"), "").expect("a chat");
        let environment = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
        let left = |session, at| left(&environment, session, Timestamp(at));
        let id = "6b025f47-5150-465c-9906-1d0513972ffe";
        assert_eq!(left(id, 1_794_847_411_000), Duration::from_secs(29));
        assert_eq!(left(id, 1_794_847_440_000), Duration::ZERO);
        assert_eq!(left("44e42e78", 1_794_847_411_000), Duration::ZERO);
        std::fs::remove_dir_all(home).expect("ours");
    }
}
