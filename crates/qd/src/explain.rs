//! `qd explain SESSION`: what it is believed to be, and why.

use std::io::{self, Write};

use anyhow::Result;
use qd_session::moment::Timestamp;
use serde_json::Value;

use crate::daemon::{Daemon, escaped};
use crate::paths::Paths;
use crate::request_text::hidden;
use crate::session_line::{age, heading, plain};

pub async fn explain(word: &str, json: bool, paths: &Paths) -> Result<()> {
    let path = format!("/api/live/sessions/{}", escaped(word));
    let detail = Daemon::at(paths).get(&path).await?;
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{detail}")?;
        return Ok(());
    }
    let now = qd_host::now();
    tell(&mut out, &detail["card"], now)?;
    tell_spans(&mut out, &detail["groups"], now)?;
    Ok(())
}

fn tell(out: &mut impl Write, card: &Value, now: Timestamp) -> io::Result<()> {
    let text = |value: &Value| plain(value.as_str().unwrap_or_default());
    let ago = |value: &Value| age(now.ms_since(Timestamp(value.as_u64().unwrap_or_default())));
    let state = &card["agentState"];
    writeln!(
        out,
        "{} ({} {})",
        text(&card["sessionId"]),
        text(&card["harness"]),
        text(&card["vendorId"])
    )?;
    if let Some(title) = card["title"].as_str() {
        writeln!(out, "  title     {title:?}")?;
    }
    writeln!(
        out,
        "  state     {} / {}: {}",
        heading(&text(&state["group"])),
        text(&state["state"]),
        text(&state["label"])
    )?;
    writeln!(out, "  rule      {}", text(&state["rule"]))?;
    writeln!(out, "  since     {} ago, told by {}", ago(&state["since"]), text(&state["source"]))?;
    let confidence = state["confidence"].as_f64().unwrap_or_default();
    writeln!(out, "  sure      {:.0} %", confidence * 100.0)?;
    for request in card["requests"].as_array().into_iter().flatten() {
        writeln!(
            out,
            "  waits     {} {} {} since {}",
            text(&request["kind"]),
            text(&request["tool"]),
            text(&request["requestId"]),
            ago(&request["since"])
        )?;
        if let Some(hidden) = hidden(request, now.0) {
            writeln!(out, "            {hidden}")?;
        }
    }
    for evidence in state["evidence"].as_array().into_iter().flatten() {
        let (source, event) = (text(&evidence["source"]), text(&evidence["event"]));
        writeln!(out, "  evidence  {source}: {event}, {} ago", ago(&evidence["at"]))?;
    }
    match card["unrecognised"].as_u64() {
        None | Some(0) => Ok(()),
        Some(count) => writeln!(out, "  not understood: {count} signals"),
    }
}

/// The last states it was in, and for how long.
fn tell_spans(out: &mut impl Write, spans: &Value, now: Timestamp) -> io::Result<()> {
    let none = Vec::new();
    let spans = spans.as_array().unwrap_or(&none);
    let first = spans.len().saturating_sub(SPANS_SHOWN);
    for span in &spans[first..] {
        let from = Timestamp(span["from"].as_u64().unwrap_or_default());
        let to = span["to"].as_u64().map_or(now, Timestamp);
        let state = plain(span["state"].as_str().unwrap_or_default());
        let (began, lasted) = (age(now.ms_since(from)), age(to.ms_since(from)));
        writeln!(out, "  was       {state} for {lasted}, from {began} ago")?;
    }
    Ok(())
}

/// Enough for a turn or two.
const SPANS_SHOWN: usize = 8;
