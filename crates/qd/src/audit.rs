//! `qd audit`: every decision on record, and whether the records are as they were written.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anyhow::{Context, Result};
use clap::Args;
use qd_daemon::runtime::gaps;
use qd_session::decision::{
    Body, Broken, By, Chain, Command, Decision, Record, RetryTarget, Shown,
};
use qd_session::id::DecisionId;
use qd_session::visible::visible_code;
use qd_store::{DecisionLog, Ends, Head};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::paper::Paper;
use crate::paths::Paths;
use crate::zone::Zone;

/// Show who decided what: every answer and command on record, the newest last
///
/// Each record has the hash of the one before it. They are checked whenever they are shown; what
/// does not fit together is told on standard error, and the command ends with 6. Reads the journal
/// only, with a daemon or without one.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only what concerns this session: its id, or a beginning of it
    #[arg(long)]
    session: Option<String>,
    /// As JSON, one record on a line, as it was written
    #[arg(long)]
    json: bool,
    /// Only check that no record was changed or taken away
    #[arg(long)]
    verify: bool,
}

pub fn audit(args: &AuditArgs, paths: &Paths) -> Result<()> {
    let path = paths.journal();
    let found = read(args, paths).with_context(|| format!("cannot read {}", path.display()))?;
    let mut out = io::stdout().lock();
    if args.verify {
        write_verdict(&mut out, args, &found)?;
    } else {
        write_records(&mut out, args, &found)?;
    }
    out.flush()?;
    for flaw in &found.flaws {
        eprintln!("! {flaw}");
    }
    for missing in &found.missing {
        eprintln!("! {missing}");
    }
    match found.flaws.len() + found.missing.len() {
        0 => Ok(()),
        count => Err(Exit::Broken(count).into()),
    }
}

/// What the journal holds, as far as it is asked for.
#[derive(Debug, Default)]
struct Found {
    shown: Vec<(Record, String)>,
    flaws: Vec<Broken>,
    /// What was written once and is not there, a sentence each.
    missing: Vec<String>,
    count: u64,
    ends: Ends,
}

/// Read to the end before anything is printed: a reader who pauses in a pager must not keep the
/// journal's log from being tidied.
fn read(args: &AuditArgs, paths: &Paths) -> Result<Found, qd_store::Error> {
    let mut found = Found::default();
    let path = paths.journal();
    let gaps = gaps(&path).into_iter();
    found.missing.extend(gaps.map(|gap| format!("{}. {}", gap.what, gap.advice)));
    // Before the journal: what is written meanwhile is in the journal first.
    let head = Head::read(&path)?;
    let Some(log) = DecisionLog::open(&path)? else {
        found.missing.extend(head.map(|head| lacks(head.entries, head.last.seq)));
        return Ok(found);
    };
    let missing = head.map(|head| log.missing(&head)).transpose()?.flatten();
    found.missing.extend(missing.map(|(entries, records)| lacks(entries, records)));
    let mut decisions = BTreeSet::new();
    let mut chain = None;
    found.ends = log.follow(|ends, stored| {
        found.count += 1;
        let chain = chain.get_or_insert_with(|| Chain::after(ends.dropped));
        found.flaws.extend(chain.take(stored.seq, &stored.line).err());
        // One that does not fit is shown all the same, with the flaw beside it.
        if let Ok((record, _)) = Record::read(&stored.line)
            && !args.verify
            && is_asked_for(args, &record.body, &mut decisions)
        {
            found.shown.push((record, stored.line));
        }
    })?;
    let chain = chain.unwrap_or_else(|| Chain::after(found.ends.dropped));
    found.flaws.extend(chain.end(found.ends.last).err());
    Ok(found)
}

/// No daemon has noticed it yet.
fn lacks(entries: u64, records: u64) -> String {
    format!(
        "The journal was taken away or replaced by an older one; missing: {entries} entries and \
         {records} decisions"
    )
}

/// What follows a decision names the decision and not its session.
fn is_asked_for(args: &AuditArgs, body: &Body, decisions: &mut BTreeSet<DecisionId>) -> bool {
    let Some(wanted) = &args.session else { return true };
    match body.session() {
        Some(session) => {
            let is = session.as_str().starts_with(wanted);
            if is {
                decisions.insert(body.decision().clone());
            }
            is
        }
        None => decisions.contains(body.decision()),
    }
}

fn write_verdict(out: &mut impl Write, args: &AuditArgs, found: &Found) -> io::Result<()> {
    let Ends { dropped, last, .. } = &found.ends;
    if args.json {
        let flaw = |flaw: &Broken| json!({"seq": flaw.seq, "why": flaw.to_string()});
        let broken: Vec<Value> = found.flaws.iter().map(flaw).collect();
        let verdict = json!({
            "records": found.count, "dropped": dropped.seq, "last": last.seq,
            "lastHash": last.hash.to_string(), "broken": broken, "missing": found.missing,
        });
        return writeln!(out, "{verdict:#}");
    }
    if found.flaws.is_empty() && found.missing.is_empty() {
        writeln!(
            out,
            "{} records, each as it was written; the last is {}",
            found.count, last.hash
        )?;
    }
    if dropped.seq > 0 {
        writeln!(
            out,
            "{} older ones are kept no more; the rest follows {}",
            dropped.seq, dropped.hash
        )?;
    }
    Ok(())
}

fn write_records(out: &mut impl Write, args: &AuditArgs, found: &Found) -> io::Result<()> {
    if args.json {
        return found.shown.iter().try_for_each(|(_, line)| writeln!(out, "{line}"));
    }
    if found.shown.is_empty() {
        return writeln!(out, "No decision is on record here.");
    }
    let (paper, mut zone) = (Paper::of_stdout(), Zone::of_operator());
    for (record, _) in &found.shown {
        let (when, name) = (zone.clock(record.at), record.body.name());
        let head = paper.dim(&format!("{:>5}  {when}  {}", record.seq, record.body.decision()));
        writeln!(out, "{head}  {}{}", paper.bold(name), plain(&told(&record.body)))?;
    }
    Ok(())
}

fn told(body: &Body) -> String {
    match body {
        Body::Given(offer) | Body::Ruled(offer) => {
            let by = match &offer.rule {
                Some(rule) => format!("rule {rule}"),
                None => spelled_by(&offer.by),
            };
            let (answer, shown) = (spelled_answer(&offer.answer), spelled_shown(&offer.shown));
            format!(" by {by}: {answer} to {shown} ({} of {})", offer.request, offer.session)
        }
        Body::Commanded(order) => {
            let (by, command) = (spelled_by(&order.by), spelled_command(&order.command));
            format!(" by {by}: {command} ({})", order.session)
        }
        Body::Delivered { way, .. } => format!(" through {way}"),
        Body::Failed { why, .. } => format!(": {why}"),
        Body::Confirmed { .. } => " by the agent".to_owned(),
        Body::Overtaken { .. } => ": the agent went on without it".to_owned(),
        Body::Unclear { .. } => ": whether it arrived is not known".to_owned(),
    }
}

fn spelled_by(by: &By) -> String {
    format!("{} on {}", by.who, by.device)
}

fn spelled_answer(answer: &Decision) -> String {
    let with = |word: &str, text: &Option<String>| match text {
        Some(text) => format!("{word} \u{201c}{text}\u{201d}"),
        None => word.to_owned(),
    };
    match answer {
        Decision::Allow { input: None, .. } => "allow".to_owned(),
        Decision::Allow { input: Some(_), .. } => "allow, changed,".to_owned(),
        Decision::Deny { message, .. } => with("deny", message),
        Decision::Answer { answers } => {
            let values = answers.iter().flat_map(|answer| answer.values.iter().cloned());
            with("answer", &Some(values.collect::<Vec<_>>().join(", ")))
        }
        Decision::ApprovePlan { mode } => with("approve", mode),
        Decision::RejectPlan { feedback } => with("reject", feedback),
    }
}

fn spelled_shown(shown: &Shown) -> String {
    let tool = shown.tool.as_ref().map(|tool| tool.as_str());
    let about = shown.input.as_deref().or(shown.text.as_deref());
    let parts: Vec<&str> = tool.into_iter().chain(about).collect();
    if parts.is_empty() { "a request".to_owned() } else { parts.join(" ") }
}

fn spelled_command(command: &Command) -> String {
    match command {
        Command::Prompt { text } => format!("prompt \u{201c}{text}\u{201d}"),
        Command::Interrupt => "interrupt".to_owned(),
        Command::Stop => "stop".to_owned(),
        Command::Focus => "focus".to_owned(),
        Command::Resume => "resume".to_owned(),
        Command::Yolo { on: true } => "YOLO on".to_owned(),
        Command::Yolo { on: false } => "YOLO off".to_owned(),
        Command::Policy { preset: Some(preset) } => format!("policy {}", preset.name()),
        Command::Policy { preset: None } => "policy of the project".to_owned(),
        Command::Dismiss => "dismiss".to_owned(),
        Command::Pause => "pause".to_owned(),
        Command::Retry { target } => format!("retry {}", spelled_target(target)),
    }
}

fn spelled_target(target: &RetryTarget) -> String {
    match target {
        RetryTarget::Llm => "the model".to_owned(),
        RetryTarget::Tool { run } => format!("tool {run}"),
        RetryTarget::Hook { run } => format!("hook {run}"),
        RetryTarget::Harness => "the agent".to_owned(),
    }
}

/// What an agent wrote cannot write on the terminal, and nothing in it hides.
fn plain(text: &str) -> String {
    visible_code(text).replace(['\n', '\t'], " ")
}
