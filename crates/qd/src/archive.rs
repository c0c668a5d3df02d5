//! `qd archive`, `qd unarchive`: sessions into History and back, several at once.

use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::paths::Paths;

/// Move sessions off the board into History, until their next event
///
/// For what nobody can answer any more: a session on another machine, one whose process is gone. A
/// session whose process runs, or that can be answered from here, stays (`qd dismiss` takes it out
/// of Needs You). `qd unarchive` brings a session back.
#[derive(Debug, Args)]
pub struct ArchiveArgs {
    /// Sessions: their ids, or beginnings of them that are unique
    #[arg(required_unless_present = "older_than", conflicts_with = "older_than")]
    sessions: Vec<String>,
    /// All sessions without a sign for so long: 7d, 12h or 30m
    #[arg(long, value_name = "AGE", value_parser = age_ms)]
    older_than: Option<u64>,
    /// Print what the daemon said, as JSON
    #[arg(long)]
    json: bool,
}

/// Put sessions from History back on the board
#[derive(Debug, Args)]
pub struct UnarchiveArgs {
    /// Sessions: their ids, or beginnings of them that are unique
    #[arg(required = true)]
    sessions: Vec<String>,
    /// Print what the daemon said, as JSON
    #[arg(long)]
    json: bool,
}

pub async fn archive(args: &ArchiveArgs, paths: &Paths) -> Result<()> {
    let body = match args.older_than {
        Some(ms) => json!({ "silentForMs": ms }),
        None => json!({ "sessions": args.sessions }),
    };
    let answer = Daemon::at(paths).post_json("/api/sessions/archive", &body).await?;
    if args.json {
        writeln!(io::stdout(), "{answer}")?;
        return Ok(());
    }
    let moved = moved(&answer);
    let missing = args.sessions.len().saturating_sub(moved.len());
    match moved.len() {
        0 if args.older_than.is_some() => writeln!(io::stdout(), "Nothing to archive")?,
        0 => {}
        count => {
            writeln!(io::stdout(), "Moved to History: {}", counted(count))?;
            writeln!(io::stdout(), "Undo: qd unarchive {}", moved.join(" "))?;
        }
    }
    if missing > 0 {
        let count = counted(missing);
        bail!("{count} not archived: already in History, or still running (qd dismiss, qd stop)");
    }
    Ok(())
}

pub async fn unarchive(args: &UnarchiveArgs, paths: &Paths) -> Result<()> {
    let body = json!({ "sessions": args.sessions });
    let answer = Daemon::at(paths).post_json("/api/sessions/unarchive", &body).await?;
    match args.json {
        true => writeln!(io::stdout(), "{answer}")?,
        false => writeln!(io::stdout(), "Moved back: {}", counted(moved(&answer).len()))?,
    }
    Ok(())
}

fn moved(answer: &Value) -> Vec<&str> {
    answer["sessions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn counted(count: usize) -> String {
    format!("{count} session{}", if count == 1 { "" } else { "s" })
}

fn age_ms(text: &str) -> Result<u64, String> {
    let wrong = || "an age is a number and d, h or m: 7d, 12h, 30m".to_owned();
    let unit_ms = match text.chars().last() {
        Some('d') => 24 * 60 * 60 * 1_000,
        Some('h') => 60 * 60 * 1_000,
        Some('m') => 60 * 1_000,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    count.checked_mul(unit_ms).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_read_with_its_unit() {
        assert_eq!(age_ms("7d"), Ok(604_800_000));
        assert_eq!(age_ms("12h"), Ok(43_200_000));
        assert_eq!(age_ms("30m"), Ok(1_800_000));
        for wrong in ["", "d", "7", "-1d", "1.5h", "7é", "99999999999999999999d"] {
            assert!(age_ms(wrong).is_err(), "{wrong}");
        }
    }
}
