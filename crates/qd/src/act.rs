//! `qd approve|deny|answer|send|interrupt|stop|focus|yolo|resume`: what the operator does.

use std::io::{self, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::daemon::{Daemon, escaped};
use crate::paths::Paths;
use crate::request_text::{unread, whole};
use crate::session_line::plain;

/// How it is said what became of an answer or a command
#[derive(Debug, Clone, Copy, Args)]
pub struct Telling {
    /// Print what the daemon said, as JSON
    #[arg(long)]
    json: bool,
}

/// A command that needs no more words
#[derive(Debug, Args)]
pub struct PlainArgs {
    /// A session: its id, or a beginning of it that is unique
    session: String,
    #[command(flatten)]
    telling: Telling,
}

/// Allow what an agent asks for, or approve its plan
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// A session (its id, or a beginning of it that is unique), or a request's id
    session: String,
    /// How far it reaches
    #[arg(long, value_enum, default_value = "once")]
    scope: Scope,
    /// The mode that follows a plan, in the client's words
    #[arg(long)]
    mode: Option<String>,
    /// Do not ask whether what is shown is meant
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    telling: Telling,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Scope {
    Once,
    Session,
    /// As the client itself suggests: a rule it keeps
    Always,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}

/// Deny what an agent asks for, or reject its plan
#[derive(Debug, Args)]
pub struct DenyArgs {
    /// A session (its id, or a beginning of it that is unique), or a request's id
    session: String,
    /// What the agent is told
    #[arg(long)]
    message: Option<String>,
    /// End its turn as well
    #[arg(long)]
    interrupt: bool,
    #[command(flatten)]
    telling: Telling,
}

/// Answer an agent's question
///
/// One text for each question, in their order: the label of an option or its number, several with
/// commas between where several may be chosen, or words of your own.
#[derive(Debug, Args)]
pub struct AnswerArgs {
    /// A session (its id, or a beginning of it that is unique), or a request's id
    session: String,
    #[arg(required = true)]
    text: Vec<String>,
    #[command(flatten)]
    telling: Telling,
}

/// Give a session its next prompt
#[derive(Debug, Args)]
pub struct SendArgs {
    /// A session: its id, or a beginning of it that is unique
    session: String,
    #[arg(required = true)]
    text: Vec<String>,
    #[command(flatten)]
    telling: Telling,
}

/// Switch a session's YOLO on or off: with it, it asks nobody
#[derive(Debug, Args)]
pub struct YoloArgs {
    /// A session: its id, or a beginning of it that is unique
    session: String,
    #[arg(value_enum, default_value = "on")]
    switch: Switch,
    #[command(flatten)]
    telling: Telling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

pub async fn approve(args: &ApproveArgs, paths: &Paths) -> Result<()> {
    let daemon = Daemon::at(paths);
    let request = waiting(&daemon, &args.session, &["permission", "plan"]).await?;
    if let Some(why) = unread(&request) {
        bail!("{why}");
    }
    writeln!(io::stderr(), "{}", whole(&request))?;
    // Who names a session may have seen what it asked for before.
    let is_named = args.session.starts_with("req_");
    if !is_named && !args.yes && !args.telling.json && !confirmed("Allow it?")? {
        bail!("nothing was sent");
    }
    let decision = match request["kind"].as_str() {
        Some("plan") => json!({ "type": "approve_plan", "mode": args.mode }),
        _ => json!({ "type": "allow", "scope": args.scope.name() }),
    };
    decide(&daemon, &request, decision, args.telling).await
}

pub async fn deny(args: &DenyArgs, paths: &Paths) -> Result<()> {
    let daemon = Daemon::at(paths);
    let request = waiting(&daemon, &args.session, &["permission", "plan", "question"]).await?;
    let decision = match request["kind"].as_str() {
        Some("plan") if !args.interrupt => {
            json!({ "type": "reject_plan", "feedback": args.message })
        }
        _ => json!({ "type": "deny", "message": args.message, "interrupt": args.interrupt }),
    };
    decide(&daemon, &request, decision, args.telling).await
}

pub async fn answer(args: &AnswerArgs, paths: &Paths) -> Result<()> {
    let daemon = Daemon::at(paths);
    let request = waiting(&daemon, &args.session, &["question"]).await?;
    let questions = questions(&request);
    if questions.is_empty() {
        bail!("the questions are not known; answer them where they were asked");
    }
    if questions.len() != args.text.len() {
        let asked: Vec<&str> =
            questions.iter().filter_map(|one| one["question"].as_str()).collect();
        bail!("it asks {} questions, so give {0} answers: {}", questions.len(), asked.join(" · "));
    }
    let answers: Vec<Value> = questions
        .iter()
        .zip(&args.text)
        .map(|(question, text)| {
            let name = question["id"].as_str().or(question["question"].as_str());
            json!({ "question": name, "values": values(question, text) })
        })
        .collect();
    let decision = json!({ "type": "answer", "answers": answers });
    decide(&daemon, &request, decision, args.telling).await
}

fn questions(request: &Value) -> Vec<Value> {
    let input = &request["input"];
    let several = input["questions"].as_array().or(input.as_array()).cloned();
    // `ask_user` asks one thing.
    let one = || input["question"].is_string().then(|| vec![input.clone()]);
    several.or_else(one).unwrap_or_default()
}

/// The same words for whatever a request asks.
pub fn answer_in_words(request: &Value, text: &str) -> Value {
    let answer = |question: &Value| {
        let name = question["id"].as_str().or(question["question"].as_str());
        json!({ "question": name, "values": values(question, text) })
    };
    let answers: Vec<Value> = questions(request).iter().map(answer).collect();
    json!({ "type": "answer", "answers": answers })
}

/// The labels that a text chooses, or the text.
fn values(question: &Value, text: &str) -> Vec<String> {
    let labels: Vec<&str> = question["options"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|option| option["label"].as_str().or(option.as_str()))
        .collect();
    let chosen = |word: &str| {
        let number = word.parse::<usize>().ok().and_then(|nth| nth.checked_sub(1));
        let by_number = number.and_then(|nth| labels.get(nth));
        let by_label = labels.iter().find(|label| label.eq_ignore_ascii_case(word));
        by_label.or(by_number).map(|label| (*label).to_owned())
    };
    let many = question["multiSelect"].as_bool().or(question["multiple"].as_bool());
    match chosen(text.trim()) {
        Some(label) => vec![label],
        None if many == Some(true) => {
            let words: Option<Vec<String>> =
                text.split(',').map(|word| chosen(word.trim())).collect();
            words.unwrap_or_else(|| vec![text.to_owned()])
        }
        None => vec![text.to_owned()],
    }
}

pub async fn send(args: &SendArgs, paths: &Paths) -> Result<()> {
    let body = json!({ "text": args.text.join(" ") });
    command(paths, &args.session, "input", &body, args.telling).await
}

pub async fn yolo(args: &YoloArgs, paths: &Paths) -> Result<()> {
    let body = json!({ "on": args.switch == Switch::On });
    command(paths, &args.session, "yolo", &body, args.telling).await
}

pub async fn plain_command(args: &PlainArgs, what: &str, paths: &Paths) -> Result<()> {
    command(paths, &args.session, what, &json!({}), args.telling).await
}

/// A command to a session.
pub async fn command(
    paths: &Paths,
    session: &str,
    what: &str,
    body: &Value,
    telling: Telling,
) -> Result<()> {
    let path = format!("/api/sessions/{}/{what}", escaped(session));
    let answer = Daemon::at(paths).post_json(&path, body).await?;
    telling.tell(&answer)
}

/// Goes on with a session here, in this terminal: becomes the client's own program.
pub async fn resume(args: &PlainArgs, paths: &Paths) -> Result<()> {
    let path = format!("/api/live/sessions/{}", escaped(&args.session));
    let card = Daemon::at(paths).get(&path).await?["card"].take();
    if card["drive"].is_object() {
        return plain_command(args, "resume", paths).await;
    }
    if let Some(why) = card["capabilities"]["why"]["canResume"].as_str() {
        bail!("{why}; go on with it where it runs");
    }
    let line = card["resumeCommand"].as_str().context("its client cannot resume a session")?;
    let mut words = line.split(' ');
    let mut client = Command::new(words.next().context("a program")?);
    client.args(words);
    if let Some(folder) = card["cwd"].as_str() {
        client.current_dir(folder);
    }
    // Only a failure comes back.
    Err(client.exec()).with_context(|| format!("cannot run `{line}`"))
}

/// The one request that a word means: by its own id, or the only one of those kinds that a session
/// waits for.
async fn waiting(daemon: &Daemon, word: &str, kinds: &[&str]) -> Result<Value> {
    if word.starts_with("req_") {
        let list = daemon.get("/api/requests").await?;
        let all = list["requests"].as_array().into_iter().flatten();
        let mut found = all.map(|one| &one["request"]).filter(|one| one["key"] == word);
        let request = found.next().cloned().context("no request of that id is open")?;
        let kind = request["kind"].as_str().unwrap_or_default();
        if !kinds.contains(&kind) {
            bail!("it is a {}: it takes another answer", plain(kind));
        }
        return Ok(request);
    }
    let detail = daemon.get(&format!("/api/live/sessions/{}", escaped(word))).await?;
    let requests = detail["card"]["requests"].as_array().cloned().unwrap_or_default();
    let mut fitting = requests
        .into_iter()
        .filter(|one| one["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)));
    let Some(first) = fitting.next() else {
        bail!("it waits for nothing of that kind");
    };
    let others: Vec<Value> = fitting.collect();
    if others.is_empty() {
        return Ok(first);
    }
    let name = |request: &Value| {
        let text = |field: &str| plain(request[field].as_str().unwrap_or_default());
        format!("{} ({})", text("key"), text("tool"))
    };
    let all: Vec<String> = std::iter::once(&first).chain(&others).map(name).collect();
    bail!("it waits for several things; name one: {}", all.join(", "))
}

async fn decide(daemon: &Daemon, request: &Value, decision: Value, telling: Telling) -> Result<()> {
    let Some(key) = request["key"].as_str() else { bail!("it cannot be answered from here") };
    if request["way"].is_null() {
        bail!("{}", plain(request["whyNot"].as_str().unwrap_or("it cannot be answered from here")));
    }
    let path = format!("/api/requests/{}/decision", escaped(key));
    let body = json!({ "decision": decision, "revision": request["revision"] });
    telling.tell(&daemon.post_json(&path, &body).await?)
}

/// Asks in a terminal; where there is none, whoever wrote the script has answered.
fn confirmed(question: &str) -> Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    write!(io::stderr(), "{question} [y/N] ")?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "yes"))
}

impl Telling {
    fn tell(self, answer: &Value) -> Result<()> {
        let words = || plain(answer["state"].as_str().unwrap_or("done"));
        let said = if self.json { answer.to_string() } else { words() };
        writeln!(io::stdout(), "{said}")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_chosen_by_label_or_number_and_words_stay_words() {
        let one = json!({"options": [{"label": "SQLite"}, {"label": "Postgres"}]});
        assert_eq!(values(&one, "postgres"), ["Postgres"]);
        assert_eq!(values(&one, "1"), ["SQLite"]);
        assert_eq!(values(&one, "3"), ["3"]);
        assert_eq!(values(&one, "SQLite, Postgres"), ["SQLite, Postgres"]);
        let many = json!({"multiSelect": true, "options": [{"label": "A"}, {"label": "B"}]});
        assert_eq!(values(&many, "2, a"), ["B", "A"]);
        assert_eq!(values(&many, "A, else"), ["A, else"]);
    }
}
