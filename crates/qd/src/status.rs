//! `qd status`: the board, once.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::paths::Paths;
use crate::session_line::{heading, line, unreadable_lines};

#[derive(Debug, Default, Args)]
pub struct StatusArgs {
    /// The whole answer as JSON
    #[arg(long)]
    json: bool,
}

pub async fn status(args: &StatusArgs, paths: &Paths) -> Result<()> {
    let board = Daemon::at(paths).get("/api/live/sessions").await?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{board}")?;
        return Ok(());
    }
    let none = Vec::new();
    // An older daemon tells of none.
    let about = Daemon::at(paths).about().await.ok().flatten();
    for trouble in about.iter().flat_map(|about| &about.health.troubles) {
        writeln!(out, "! {}\n  {}", trouble.what, trouble.advice)?;
    }
    let sessions = board["sessions"].as_array().unwrap_or(&none);
    let unreadable = board["summary"]["unreadable"].as_array().unwrap_or(&none);
    if sessions.is_empty() && unreadable.is_empty() {
        writeln!(out, "No agent has been seen here yet. Start one, in any terminal.")?;
        return Ok(());
    }
    let now = qd_host::now();
    for group in ["needs_you", "autonomous", "delivered"] {
        let of_group: Vec<&Value> =
            sessions.iter().filter(|card| card["agentState"]["group"] == group).collect();
        if of_group.is_empty() {
            continue;
        }
        writeln!(out, "{} ({})", heading(group), of_group.len())?;
        for card in of_group {
            writeln!(out, "  {}", line(card, now))?;
        }
    }
    if !unreadable.is_empty() {
        writeln!(out, "Running, not readable ({})", unreadable.len())?;
    }
    for agent in unreadable {
        for text in unreadable_lines(agent) {
            writeln!(out, "  {text}")?;
        }
    }
    Ok(())
}
