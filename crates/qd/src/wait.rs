//! `qd wait`: until a session is in a state.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;
use tokio::time::timeout;

use crate::daemon::Daemon;
use crate::exit::Exit;
use crate::paths::Paths;
use crate::session_line::line;

#[derive(Debug, Args)]
pub struct WaitArgs {
    /// A session: its id, or a beginning of it that is unique. Any session, if none is given
    session: Option<String>,
    /// A group (needs-you, autonomous, delivered) or a sub-state (needs-permission, idle, …);
    /// several with commas
    #[arg(long, value_delimiter = ',', required = true, value_name = "STATE")]
    until: Vec<String>,
    /// Give up after this many seconds, with exit code 5
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// The session's card as JSON
    #[arg(long)]
    json: bool,
}

pub async fn wait(args: &WaitArgs, paths: &Paths) -> Result<()> {
    let until: Vec<String> = args.until.iter().map(|word| word.trim().replace('-', "_")).collect();
    let daemon = Daemon::at(paths);
    let found = first_in(&daemon, args.session.as_deref(), &until);
    let card = match args.timeout {
        Some(seconds) => match timeout(Duration::from_secs(seconds), found).await {
            Ok(card) => card?,
            Err(_) => return Err(Exit::TimedOut.into()),
        },
        None => found.await?,
    };
    match args.json {
        true => println!("{card}"),
        false => println!("{}", line(&card, qd_host::now())),
    }
    Ok(())
}

/// The first card that is in one of the states.
async fn first_in(daemon: &Daemon, session: Option<&str>, until: &[String]) -> Result<Value> {
    let mut events = daemon.stream().await?;
    let mut cards: BTreeMap<String, Value> = BTreeMap::new();
    while let Some(event) = events.next().await? {
        match event.name.as_str() {
            "snapshot" => {
                let sessions = event.data["sessions"].as_array().cloned().unwrap_or_default();
                cards = sessions.into_iter().map(|card| (id(&card), card)).collect();
            }
            "session_changed" => {
                cards.insert(id(&event.data), event.data);
            }
            "session_removed" => {
                cards.remove(&id(&event.data));
            }
            _ => continue,
        }
        let mut meant = cards.values().filter(|card| is_meant(card, session));
        if let Some(card) = meant.find(|card| is_in(card, until)) {
            return Ok(card.clone());
        }
    }
    bail!("the daemon stopped")
}

fn id(card: &Value) -> String {
    card["sessionId"].as_str().unwrap_or_default().to_owned()
}

/// A session that does not exist yet can be waited for: its agent's own id is known before.
fn is_meant(card: &Value, session: Option<&str>) -> bool {
    let Some(word) = session else { return true };
    let begins = |id: &Value| {
        let id = id.as_str().unwrap_or_default();
        id.starts_with(word) || id.strip_prefix("sess_").is_some_and(|id| id.starts_with(word))
    };
    begins(&card["sessionId"]) || begins(&card["vendorId"])
}

fn is_in(card: &Value, until: &[String]) -> bool {
    let state = &card["agentState"];
    let is = |word: &String| state["group"] == **word || state["state"] == **word;
    until.iter().any(is)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn groups_and_sub_states_are_both_waited_for() {
        let card = json!({"agentState": {"group": "needs_you", "state": "idle"}});
        let is = |word: &str| is_in(&card, &[word.to_owned()]);
        assert!(is("needs_you") && is("idle"));
        assert!(!is("delivered"));
    }

    #[test]
    fn a_session_is_meant_by_either_id() {
        let card = json!({"sessionId": "sess_ab12", "vendorId": "0199-7"});
        for word in ["sess_ab12", "ab1", "0199", "sess_"] {
            assert!(is_meant(&card, Some(word)), "{word}");
        }
        assert!(is_meant(&card, None) && !is_meant(&card, Some("b12")));
    }
}
