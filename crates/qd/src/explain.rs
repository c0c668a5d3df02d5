//! `qd explain SESSION`: what it is believed to be, and why.

use std::io::{self, Write};

use anyhow::Result;
use qd_session::moment::Timestamp;
use serde_json::Value;

use crate::daemon::{Daemon, escaped};
use crate::paths::Paths;
use crate::session_line::{age, heading, plain};

pub async fn explain(word: &str, json: bool, paths: &Paths) -> Result<()> {
    let path = format!("/api/live/sessions/{}", escaped(word));
    let card = Daemon::at(paths).get(&path).await?;
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{card}")?;
        return Ok(());
    }
    tell(&mut out, &card, qd_broker::runtime::now())?;
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
