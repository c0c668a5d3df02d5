//! `qd run`: a session of our own, followed in this terminal.
//!
//! What the agent says goes to standard output, what happens besides to standard error, and what it
//! asks is asked here where somebody can answer. The session is the daemon's: it lives on when this
//! ends.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use qd_session::visible::visible_prose;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::daemon::{BoardEvent, Daemon, escaped};
use crate::paths::Paths;
use crate::request_text::{unread, whole};
use crate::session_line::plain;
use crate::{act, background};

/// Begin a session that Quarterdeck drives, and follow it
///
/// The session is on the board like every other; it goes on when this command ends. `qd send` gives
/// it the next prompt.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// claude-code, codex, gemini-cli, opencode, kilo-code, cline, acp or native
    harness: String,
    /// What it is told; without it, it waits for `qd send`
    prompt: Vec<String>,
    /// The folder it works in, if it is not this one
    #[arg(long, value_name = "PATH")]
    folder: Option<PathBuf>,
    /// The model, in its provider's words
    #[arg(long)]
    model: Option<String>,
    /// For native and acp: which one, as config.toml names it
    #[arg(long)]
    provider: Option<String>,
    /// What it may do without asking: manual, careful, auto-edit or yolo
    #[arg(long, default_value = "careful", value_name = "PRESET")]
    policy: String,
    /// Print its id and do not follow it
    #[arg(long)]
    detach: bool,
}

pub async fn run(args: &RunArgs, paths: &Paths) -> Result<()> {
    let daemon = Daemon::at(paths);
    background::started(&daemon, paths).await?;
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().context("cannot tell which folder this is")?,
    };
    let folder = std::path::absolute(&folder).context("cannot tell which folder that is")?;
    let prompt = args.prompt.join(" ");
    let wanted = json!({
        "harness": args.harness, "workspace": folder, "model": args.model,
        "provider": args.provider, "preset": args.policy,
        "prompt": Some(&prompt).filter(|prompt| !prompt.trim().is_empty()),
    });
    // Before it begins, so that nothing is missed.
    let mut events = daemon.stream().await?;
    let begun = daemon.post_json("/api/sessions", &wanted).await?;
    let session = begun["sessionId"].as_str().context("the daemon names no session")?;
    if args.detach || prompt.trim().is_empty() {
        writeln!(io::stdout(), "{session}")?;
        return Ok(());
    }
    writeln!(io::stderr(), "{session} begins")?;
    let mut follower = Follower::new(session);
    let mut lines = io::stdin().is_terminal().then(typed_lines);
    loop {
        let line = async {
            match &mut lines {
                Some(lines) => lines.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = events.next() => {
                let Some(event) = event? else { bail!("the daemon stopped; the session is on record") };
                if let Some(end) = follower.take(&event)? {
                    return end.told();
                }
            }
            line = line => match line {
                Some(line) => follower.answer(&daemon, &line).await?,
                // Nobody types any more; somebody else may answer.
                None => lines = None,
            },
        }
    }
}

/// Lines that somebody types. The thread ends with the program.
fn typed_lines() -> mpsc::Receiver<String> {
    let (typed, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if typed.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// What has been told of a session so far.
struct Follower {
    session: String,
    /// It has begun to work: rest before that is no end.
    has_worked: bool,
    /// What it asks, if somebody can answer that here.
    asked: Option<Value>,
    /// When that was printed.
    asked_at: Instant,
    is_line_open: bool,
}

/// The turn is over.
#[derive(Debug, PartialEq, Eq)]
struct End {
    label: String,
    is_error: bool,
}

impl End {
    fn told(&self) -> Result<()> {
        match self.is_error {
            true => bail!("{}", self.label),
            false => Ok(()),
        }
    }
}

impl Follower {
    fn new(session: &str) -> Self {
        let session = session.to_owned();
        let asked_at = Instant::now();
        Self { session, has_worked: false, asked: None, asked_at, is_line_open: false }
    }

    fn take(&mut self, event: &BoardEvent) -> Result<Option<End>> {
        let BoardEvent { name, data } = event;
        if data["sessionId"] != *self.session {
            return Ok(None);
        }
        match name.as_str() {
            "agent:stream_event" => self.said(data)?,
            "agent:state_event" => self.happened(data)?,
            "session_changed" => return self.changed(data),
            "session_removed" => bail!("the session is gone from the board"),
            _ => {}
        }
        Ok(None)
    }

    fn said(&mut self, event: &Value) -> Result<()> {
        if event["type"] == "text_delta" {
            let text = visible_prose(event["payload"]["text"].as_str().unwrap_or_default());
            let mut out = io::stdout();
            write!(out, "{text}")?;
            out.flush()?;
            self.is_line_open = !text.ends_with('\n') && (self.is_line_open || !text.is_empty());
        }
        Ok(())
    }

    fn happened(&mut self, event: &Value) -> Result<()> {
        let text = |field: &str| plain(event[field].as_str().unwrap_or_default());
        let status = event["status"].as_str().unwrap_or_default();
        let error = event["error"].as_str().map(|error| format!(": {}", plain(error)));
        let error = error.unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "tool_lifecycle" if event["isError"] == true => {
                self.note(&format!("· {} returned an error", text("toolName")))
            }
            "tool_lifecycle" if status != "queued" => {
                self.note(&format!("· {} {status}{error}", text("toolName")))
            }
            "hook_lifecycle" if status != "queued" => {
                self.note(&format!("· hook {} {status}{error}", text("hookName")))
            }
            "session_error" => self.note(&format!("! {}", text("message"))),
            "state_changed" => {
                self.has_worked |= event["to"] == "CallingLlm";
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A line of its own about what happens besides.
    fn note(&mut self, line: &str) -> Result<()> {
        if std::mem::take(&mut self.is_line_open) {
            writeln!(io::stdout())?;
        }
        Ok(writeln!(io::stderr(), "{line}")?)
    }

    fn changed(&mut self, card: &Value) -> Result<Option<End>> {
        let requests = card["requests"].as_array().cloned().unwrap_or_default();
        let open = requests.into_iter().find(|request| request["way"].is_string());
        let same = |it: &Value, request: &Value| {
            it["key"] == request["key"] && it["revision"] == request["revision"]
        };
        let known = |request: &Value| self.asked.as_ref().is_some_and(|it| same(it, request));
        if let Some(request) = open.as_ref().filter(|request| !known(request)) {
            self.ask(request)?;
            self.asked_at = Instant::now();
        }
        self.asked = open;
        let state = &card["agentState"];
        let is_over = state["group"] != "autonomous" && self.asked.is_none();
        if !is_over || !(self.has_worked || is_trouble(state)) {
            return Ok(None);
        }
        if std::mem::take(&mut self.is_line_open) {
            writeln!(io::stdout())?;
        }
        let label = plain(state["label"].as_str().unwrap_or_default());
        writeln!(io::stderr(), "{}: {label}", self.session)?;
        Ok(Some(End { label, is_error: is_trouble(state) }))
    }

    fn ask(&mut self, request: &Value) -> Result<()> {
        let key = plain(request["key"].as_str().unwrap_or_default());
        self.note(&match request["kind"].as_str() {
            Some("question") => {
                let input = request["input"].to_string();
                let text = plain(request["text"].as_str().unwrap_or(&input));
                format!("? {text}\n  type an answer, or: qd answer {key} TEXT")
            }
            _ => {
                let answers = unread(request).map_or("y, n or n REASON", |why| why);
                format!("? {}\n  {answers}; or: qd approve {key}", whole(request))
            }
        })
    }

    async fn answer(&mut self, daemon: &Daemon, line: &str) -> Result<()> {
        // A line from before it was asked is no answer to it.
        let (Some(request), line) = (&self.asked, line.trim()) else { return Ok(()) };
        if self.asked_at.elapsed() < ANSWER_AFTER {
            return self.note("  That came before you could read it. Please answer again.");
        }
        let Some(decision) = decision(request, line) else {
            return self.note("  y, n or n REASON");
        };
        if let (Some(why), "allow") = (unread(request), decision["type"].as_str().unwrap_or("")) {
            return self.note(&format!("! {why}"));
        }
        let key = request["key"].as_str().unwrap_or_default();
        let path = format!("/api/requests/{}/decision", escaped(key));
        let body = json!({ "decision": decision, "revision": request["revision"] });
        // Somebody else may have been first: the board says so, and nothing is lost here.
        if let Err(error) = daemon.post_json(&path, &body).await {
            self.note(&format!("! {error:#}"))?;
        }
        Ok(())
    }
}

fn decision(request: &Value, line: &str) -> Option<Value> {
    let kind = request["kind"].as_str().unwrap_or_default();
    if kind == "question" {
        return (!line.is_empty()).then(|| act::answer_in_words(request, line));
    }
    let (word, reason) = line.split_once(' ').unwrap_or((line, ""));
    let message = Some(reason.trim()).filter(|reason| !reason.is_empty());
    match (word, kind) {
        ("y" | "yes", "plan") => Some(json!({ "type": "approve_plan" })),
        ("y" | "yes", _) => Some(json!({ "type": "allow" })),
        ("n" | "no", "plan") => Some(json!({ "type": "reject_plan", "feedback": message })),
        ("n" | "no", _) => Some(json!({ "type": "deny", "message": message })),
        _ => None,
    }
}

fn is_trouble(state: &Value) -> bool {
    let state = state["state"].as_str().unwrap_or_default();
    matches!(state, "error" | "usage_limit" | "auth_error" | "server_error" | "session_ended")
}

/// An answer sooner than this after its question was meant for another one.
const ANSWER_AFTER: Duration = Duration::from_millis(700);

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: Value) -> BoardEvent {
        BoardEvent { name: name.to_owned(), data }
    }

    fn card(group: &str, state: &str, requests: Value) -> BoardEvent {
        let state = json!({"group": group, "state": state, "label": state});
        let card = json!({"sessionId": "sess_1", "agentState": state, "requests": requests});
        event("session_changed", card)
    }

    #[test]
    fn it_ends_when_the_turn_does_and_not_before_it_began() {
        let mut follower = Follower::new("sess_1");
        let ready = card("needs_you", "idle", json!([]));
        assert_eq!(follower.take(&ready).unwrap(), None, "it has not begun");
        let began = json!({"sessionId": "sess_1", "type": "state_changed", "to": "CallingLlm"});
        assert_eq!(follower.take(&event("agent:state_event", began)).unwrap(), None);
        let asks = json!([{"key": "req_1", "kind": "permission", "way": "driver"}]);
        assert_eq!(follower.take(&card("needs_you", "needs_permission", asks)).unwrap(), None);
        assert!(follower.asked.is_some());
        assert_eq!(follower.take(&card("autonomous", "acting", json!([]))).unwrap(), None);
        let other = event("session_changed", json!({"sessionId": "sess_2"}));
        assert_eq!(follower.take(&other).unwrap(), None);
        let end = follower.take(&card("delivered", "task_complete", json!([]))).unwrap();
        assert!(!end.expect("it is over").is_error);
    }

    #[test]
    fn what_is_typed_is_a_decision() {
        let permission = json!({"kind": "permission"});
        assert_eq!(decision(&permission, "y"), Some(json!({"type": "allow"})));
        let denied = json!({"type": "deny", "message": "not here"});
        assert_eq!(decision(&permission, "n not here"), Some(denied));
        assert_eq!(decision(&permission, "maybe"), None);
        assert_eq!(decision(&json!({"kind": "question"}), ""), None);
    }
}
