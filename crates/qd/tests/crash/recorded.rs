//! What real clients said, from the captures, under session ids of this run and dated now.

use std::fs;
use std::path::{Path, PathBuf};

use qd_harness::Channel;
use qd_harness::capture::Recorded;
use qd_session::moment::Timestamp;

use crate::dice::Dice;

/// What one client said, in its order. Names of sessions in it are this story's own.
#[derive(Debug, Clone)]
pub struct Story {
    /// As a hook's command line spells it.
    pub harness: &'static str,
    pub lines: Vec<String>,
}

impl Story {
    /// The hooks of every capture of these clients, in an order of the dice.
    pub fn hooks(dice: &mut Dice, clients: &[(&'static str, &str)]) -> Vec<Self> {
        let told = |(harness, client): &(&'static str, &str)| {
            captures(client).into_iter().map(|capture| (*harness, capture)).collect::<Vec<_>>()
        };
        let mut captures: Vec<_> = clients.iter().flat_map(told).collect();
        dice.shuffle(&mut captures);
        let stories = captures.iter().enumerate().map(|(nth, (harness, capture))| {
            let lines = lines(capture, Channel::Hook);
            Self { harness, lines: own_names(nth, lines) }
        });
        stories.filter(|story| !story.lines.is_empty()).collect()
    }

    /// The main session files of every capture of a client.
    pub fn transcripts(harness: &'static str, client: &str) -> Vec<Self> {
        let stories = captures(client).into_iter().enumerate().map(|(nth, capture)| {
            let lines = lines(&capture, Channel::Transcript);
            Self { harness, lines: own_names(nth, lines) }
        });
        stories.filter(|story| !story.lines.is_empty()).collect()
    }
}

/// The line with its own time, if it has one, set to `now`.
pub fn dated(line: &str, now: Timestamp) -> String {
    const KEY: &str = "\"timestamp\":\"";
    let Some(begin) = line.find(KEY).map(|key| key + KEY.len()) else { return line.to_owned() };
    let Some(end) = line[begin..].find('"').map(|end| begin + end) else { return line.to_owned() };
    format!("{}{}{}", &line[..begin], spelled(now), &line[end..])
}

fn captures(client: &str) -> Vec<PathBuf> {
    let captured = Path::new(env!("CARGO_MANIFEST_DIR")).join("../harness/captured").join(client);
    let entries = fs::read_dir(captured).expect("captures of that client");
    let mut folders: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    folders.retain(|folder| folder.join("signals.jsonl").is_file());
    folders.sort();
    folders
}

/// What was recorded of one channel. Of session files only the main one.
fn lines(capture: &Path, channel: Channel) -> Vec<String> {
    let text = fs::read_to_string(capture.join("signals.jsonl")).expect("signals");
    let recorded: Vec<Recorded> =
        text.lines().map(|line| serde_json::from_str(line).expect("a signal")).collect();
    let signals = recorded.iter().filter_map(Recorded::signal);
    let of_channel = signals.filter(|signal| {
        let is_main = signal.file.is_none_or(|file| file == "transcript.jsonl");
        signal.channel == channel && is_main
    });
    of_channel.map(|signal| String::from_utf8(signal.payload.to_vec()).expect("text")).collect()
}

/// Gives every session named in the lines a name that no other story has.
fn own_names(nth: usize, lines: Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in &lines {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        for key in ["session_id", "sessionId"] {
            names.extend(value[key].as_str().map(str::to_owned));
        }
    }
    names.sort();
    names.dedup();
    let renamed = |mut line: String| {
        for name in &names {
            let tail = name.get(8..).expect("an id has more than eight letters");
            line = line.replace(name, &format!("{nth:08x}{tail}"));
        }
        line
    };
    lines.into_iter().map(renamed).collect()
}

/// RFC 3339, in UTC (Howard Hinnant's civil_from_days).
fn spelled(at: Timestamp) -> String {
    let (seconds, ms) = (at.0 / 1_000, at.0 % 1_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[test]
fn times_are_spelled_as_clients_spell_them() {
    assert_eq!(spelled(Timestamp(1_709_210_096_789)), "2024-02-29T12:34:56.789Z");
    let line = r#"{"a":1,"timestamp":"2026-11-15T18:51:44.991Z","b":2}"#;
    assert_eq!(
        dated(line, Timestamp(0)),
        r#"{"a":1,"timestamp":"1970-01-01T00:00:00.000Z","b":2}"#
    );
}
