//! `qd policy`: what agents may do without asking, and what that would have changed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use qd_broker::past_requests::{PastRequest, PastRequests};
use qd_broker::policy_file::{PolicyFile, RepositoryPolicy};
use qd_session::policy::{Asked, Budget, Effective, Layer, Trouble, Verdict};
use serde_json::{Value, json};

use crate::paths::Paths;
use crate::session_line::plain;

#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Try a policy on what agents asked for in the past
    ///
    /// Prints each request that the journal remembers with how often it was made, what the policy
    /// would do now, and the rule that says so. Changes and answers nothing.
    Test {
        /// A policy to try; without it, yours
        file: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what holds in a folder: preset, rules in their order, budget
    Show {
        /// The folder; without it, this one
        folder: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub fn policy(args: &PolicyArgs, paths: &Paths) -> Result<()> {
    match &args.command {
        Command::Test { file, json } => test(file.as_deref(), *json, paths),
        Command::Show { folder, json } => show(folder.as_deref(), *json, paths),
    }
}

fn test(file: Option<&Path>, json: bool, paths: &Paths) -> Result<()> {
    // A file that is named and not there is a mistake; the operator's own need not be there.
    if let Some(missing) = file.filter(|file| !file.exists()) {
        bail!("{} is not there", missing.display());
    }
    let path = file.map_or_else(|| paths.policy(), Path::to_owned);
    let PolicyFile { policy, troubles } = PolicyFile::read(&path, &paths.home);
    tell_troubles(&path, &troubles);
    let journal = paths.state.join("journal.db");
    if !journal.exists() {
        bail!("there is no journal yet at {}: no agent was seen", journal.display());
    }
    let past = PastRequests::read(&journal)
        .with_context(|| format!("cannot read {}", journal.display()))?;
    let session = Layer::default();
    let judged: Vec<(PastRequest, Verdict)> = past
        .requests
        .into_iter()
        .map(|request| {
            let cwd = request.cwd.as_deref();
            let repository = cwd.map(|cwd| RepositoryPolicy::read(Path::new(cwd), &paths.home));
            let tightening = repository.map(|found| found.tightening).unwrap_or_default();
            let asked = Asked { tool: &request.tool, input: request.input.as_deref(), cwd };
            let verdict = policy.effective(cwd, &session, &tightening).judge(&asked);
            (request, verdict)
        })
        .collect();
    let mut out = io::stdout().lock();
    if json {
        let each: Vec<Value> = judged.iter().map(spelled).collect();
        let report = json!({"requests": each, "leftOut": past.left_out,
            "troubles": troubles.iter().map(trouble_json).collect::<Vec<_>>()});
        writeln!(out, "{report:#}")?;
        return Ok(());
    }
    for (request, verdict) in &judged {
        let by = verdict.rule.as_deref().unwrap_or(&verdict.why);
        writeln!(
            out,
            "{:<5}  {:>5}×  {}  {}  ({})",
            verdict.effect.name(),
            request.count,
            plain(&request.tool),
            shortened(&about(request)),
            plain(by)
        )?;
    }
    let sum = |name: &str| {
        let of = judged.iter().filter(|(_, verdict)| verdict.effect.name() == name);
        of.map(|(request, _)| request.count).sum::<usize>()
    };
    writeln!(
        out,
        "Of what was asked, {} would be allowed, {} denied, {} asked again.",
        sum("allow"),
        sum("deny"),
        sum("ask")
    )?;
    if past.left_out > 0 {
        writeln!(out, "{} more requests were not looked at.", past.left_out)?;
    }
    Ok(())
}

fn show(folder: Option<&Path>, json: bool, paths: &Paths) -> Result<()> {
    let folder = folder.unwrap_or(Path::new("."));
    let folder = folder
        .canonicalize()
        .with_context(|| format!("cannot find the folder {}", folder.display()))?;
    let path = paths.policy();
    let PolicyFile { policy, troubles } = PolicyFile::read(&path, &paths.home);
    let repository = RepositoryPolicy::read(&folder, &paths.home);
    tell_troubles(&path, &troubles);
    for trouble in &repository.troubles {
        eprintln!("! {}: {}", trouble.place, trouble.what);
    }
    let session = Layer::default();
    let cwd = folder.to_string_lossy();
    let here = policy.effective(Some(&cwd), &session, &repository.tightening);
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{:#}", effective_json(&here))?;
        return Ok(());
    }
    writeln!(out, "preset   {}", here.mode().name())?;
    if here.is_yolo_forbidden() {
        writeln!(out, "         the project forbids yolo")?;
    }
    for (origin, rule) in here.rules() {
        let (effect, whose) = (rule.effect.name(), format!("{origin:?}").to_lowercase());
        writeln!(out, "{effect:<5}    {} ({whose}): {}", plain(&rule.name), plain(&rule.about))?;
    }
    if here.budget() != Budget::default() {
        writeln!(out, "budget   {}", json!(here.budget()))?;
    }
    if here.waits_headless() {
        writeln!(out, "headless sessions wait for you")?;
    }
    Ok(())
}

fn effective_json(here: &Effective<'_>) -> Value {
    let rules: Vec<Value> = here
        .rules()
        .map(|(origin, rule)| {
            json!({"name": rule.name, "effect": rule.effect, "origin": origin,
                "about": rule.about, "message": rule.message})
        })
        .collect();
    json!({"preset": here.mode(), "yoloForbidden": here.is_yolo_forbidden(), "rules": rules,
        "budget": here.budget(), "waitHeadless": here.waits_headless()})
}

fn spelled((request, verdict): &(PastRequest, Verdict)) -> Value {
    json!({"tool": request.tool, "input": request.input, "cwd": request.cwd,
        "count": request.count, "lastAt": request.last_at, "effect": verdict.effect,
        "rule": verdict.rule, "origin": verdict.origin, "why": verdict.why})
}

fn tell_troubles(path: &Path, troubles: &[Trouble]) {
    for trouble in troubles {
        eprintln!("! {}, {}: {}", path.display(), trouble.place, trouble.what);
    }
}

fn trouble_json(trouble: &Trouble) -> Value {
    json!({"place": trouble.place, "what": trouble.what})
}

/// What a request is about: its command or path, or all of its input.
fn about(request: &PastRequest) -> String {
    let input = request.input.as_deref().unwrap_or_default();
    let value: Value = serde_json::from_str(input).unwrap_or_default();
    let metadata = &value["metadata"];
    let fields = ["command", "cmd", "file_path", "filePath", "filepath", "path", "url"];
    let named = fields
        .iter()
        .find_map(|field| value.get(field).or_else(|| metadata.get(field)).and_then(Value::as_str));
    named.map_or_else(|| input.to_owned(), str::to_owned)
}

/// One line of a terminal.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    let line = plain(text);
    match line.char_indices().nth(CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}
