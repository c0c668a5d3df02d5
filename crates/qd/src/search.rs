//! `qd search`: prompts and answers by their words.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use clap::Args;
use qd_harness::Harness;
use qd_history::{Hit, Search, SearchQuery};
use qd_session::moment::Timestamp;
use qd_session::visible::visible_prose;
use qd_sources::places::places;
use serde_json::{Value, json};

use crate::config::Config;
use crate::paper::Paper;
use crate::paths::Paths;
use crate::progress_bar::while_drawn;
use crate::session_line::{plain, plain_code};
use crate::zone::Zone;

/// Find what was said in any session: prompts and answers
///
/// All words must stand in one message; the last may go on. Nothing in them has another meaning.
/// The first search reads all session files, later ones what is new. `[search] enabled = false` in
/// config.toml turns it off.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// The words
    #[arg(required = true)]
    words: Vec<String>,
    /// Only in this project: its folder, or a part of the path
    #[arg(long)]
    project: Option<String>,
    /// Only what this agent's sessions hold, as claude_code
    #[arg(long, value_parser = harness)]
    harness: Option<Harness>,
    /// From this day on: 2026-11-16, today, or 7d
    #[arg(long)]
    since: Option<String>,
    /// How many to show
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn search(args: &SearchArgs, paths: &Paths) -> Result<()> {
    if !Config::read(&paths.config)?.is_search_enabled() {
        bail!("search is off: `enabled = false` under [search] in {}", paths.config.display());
    }
    let mut zone = Zone::of_operator();
    let since = match &args.since {
        Some(text) => {
            let day = zone.day(text).map_err(anyhow::Error::msg)?;
            // Of that day's own clock, where summer time has changed since.
            let offset = zone.offset(day.begin(0));
            Some(day.begin(offset).0)
        }
        None => None,
    };
    let places = places(&paths.home, &std::env::vars_os().collect());
    let index = paths.search_index();
    let mut search =
        Search::open(places, &index).with_context(|| format!("cannot use {}", index.display()))?;
    while_drawn(|progress| search.refresh(progress, &AtomicBool::new(false)));
    let query = SearchQuery {
        words: args.words.join(" "),
        harness: args.harness.map(|harness| harness.name().to_owned()),
        project: args.project.clone(),
        since_ms: since,
        hits_max: args.limit,
    };
    let hits = search.find(&query).with_context(|| format!("cannot search {}", index.display()))?;
    for trouble in search.troubles() {
        eprintln!("! {}: {}", trouble.path.display(), trouble.what);
    }
    let mut out = io::stdout().lock();
    if args.json {
        let hits: Vec<Value> = hits.iter().map(spelled).collect();
        writeln!(out, "{:#}", json!({"hits": hits}))?;
        return Ok(());
    }
    if hits.is_empty() {
        writeln!(out, "Nothing was said with these words.")?;
    }
    let paper = Paper::of_stdout();
    for hit in &hits {
        write_hit(&mut out, hit, &mut zone, paper)?;
    }
    Ok(())
}

fn spelled(hit: &Hit) -> Value {
    json!({
        "harness": hit.harness, "sessionId": hit.session, "project": hit.project,
        "who": hit.who, "atMs": hit.at_ms, "snippet": marked(&hit.snippet, "[", "]"),
    })
}

fn write_hit(out: &mut impl Write, hit: &Hit, zone: &mut Zone, paper: Paper) -> io::Result<()> {
    let when = zone.clock(Timestamp(hit.at_ms));
    let project = plain_code(hit.project.as_deref().unwrap_or(""));
    let head = format!("{when}  {}  {}  {project}", hit.harness, plain(&hit.session));
    writeln!(out, "{}", paper.dim(head.trim_end()))?;
    let snippet = if paper.has_colours() {
        marked(&hit.snippet, "\x1b[1;33m", "\x1b[0m")
    } else {
        marked(&hit.snippet, "[", "]")
    };
    writeln!(out, "  {}: {snippet}\n", if hit.who == "operator" { "you" } else { "agent" })
}

/// With the words between two signs. What an agent wrote cannot write on the terminal.
fn marked(snippet: &str, begin: &str, end: &str) -> String {
    let pieces = snippet.split_inclusive([Hit::BEGIN, Hit::END]);
    let marked = pieces.map(|piece| {
        let (text, sign) = match piece.chars().last() {
            Some(Hit::BEGIN) => (&piece[..piece.len() - 1], begin),
            Some(Hit::END) => (&piece[..piece.len() - 1], end),
            _ => (piece, ""),
        };
        format!("{}{sign}", visible_prose(text).replace(['\n', '\t'], " "))
    });
    marked.collect()
}

fn harness(name: &str) -> Result<Harness, String> {
    Harness::named(&name.replace('-', "_")).ok_or_else(|| {
        let all: Vec<&str> = Harness::ALL.iter().map(|harness| harness.name()).collect();
        format!("one of {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked_and_a_terminal_obeys_nothing() {
        let snippet = "a\x1b[2J \u{2}word\u{3}\r\n\u{9b}31m end";
        assert_eq!(marked(snippet, "[", "]"), "a⟨U+001B⟩[2J [word] ⟨U+009B⟩31m end");
    }
}
