//! `qd policy`: what agents may do without asking, and what that would have changed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use qd_history::past_requests::{PastRequest, PastRequests, Was};
use qd_host::links;
use qd_host::policy_file::{PolicyFile, RepositoryPolicy};
use qd_session::policy::{
    Asked, Budget, Effect, Effective, Layer, Policy, Preset, Tightening, Trouble, Verdict,
};
use serde_json::{Value, json};

use crate::act;
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
    /// Prints each request that the journal remembers: what became of it, what the policy would do,
    /// how often it was made, and the rule that says so. Those that would have gone otherwise come
    /// first. Changes and answers nothing.
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
    /// Say what a session may do without asking
    Set {
        /// An id, a unique prefix of one, or a request's id
        session: String,
        /// `project` takes back what was said for the session
        #[arg(value_parser = ["manual", "careful", "auto-edit", "yolo", "project"])]
        preset: String,
        #[command(flatten)]
        telling: act::Telling,
    },
}

pub async fn policy(args: &PolicyArgs, paths: &Paths) -> Result<()> {
    match &args.command {
        Command::Set { session, preset, telling } => {
            let body = json!({ "preset": Preset::named(preset) });
            act::command(paths, session, "policy", &body, *telling).await
        }
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
    let policy = policy.with_private(paths.private().spelled());
    let in_force = PolicyFile::read(&paths.policy(), &paths.home).policy;
    let in_force = in_force.with_private(paths.private().spelled());
    let journal = paths.state.join("journal.db");
    if !journal.exists() {
        bail!("there is no journal yet at {}: no agent was seen", journal.display());
    }
    let past = PastRequests::read(&journal)
        .with_context(|| format!("cannot read {}", journal.display()))?;
    let mut ground = Ground { home: &paths.home, repositories: BTreeMap::new() };
    let tried = past.requests.into_iter().map(|request| {
        let (verdict, now) = (ground.judge(&policy, &request), ground.judge(&in_force, &request));
        Tried { request, verdict, now }
    });
    let mut tried: Vec<Tried> = tried.collect();
    // The most frequent stay first among their like.
    tried.sort_by_key(|one| !one.is_changed() && !one.is_news());
    let mut out = io::stdout().lock();
    let sum = |is: &dyn Fn(&Tried) -> bool| {
        let of = tried.iter().filter(|one| is(one)).map(|one| one.request.count);
        of.sum::<usize>()
    };
    let (changed, news) = (sum(&Tried::is_changed), sum(&Tried::is_news));
    if json {
        let each: Vec<Value> = tried.iter().map(Tried::spelled).collect();
        let report = json!({"requests": each, "changed": changed, "unlikeInForce": news,
            "leftOut": past.left_out,
            "troubles": troubles.iter().map(trouble_json).collect::<Vec<_>>()});
        writeln!(out, "{report:#}")?;
        return Ok(());
    }
    for one in &tried {
        writeln!(out, "{}", one.line())?;
    }
    let would = |effect: Effect| sum(&|one| one.verdict.effect == effect);
    writeln!(
        out,
        "Of what was asked, {} would be allowed, {} denied, {} asked again.",
        would(Effect::Allow),
        would(Effect::Deny),
        would(Effect::Ask)
    )?;
    writeln!(out, "{changed} would have gone otherwise than they did.")?;
    if file.is_some() {
        writeln!(out, "{news} would go otherwise than by the policy in force.")?;
    }
    if past.left_out > 0 {
        writeln!(out, "{} older requests were not looked at.", past.left_out)?;
    }
    Ok(())
}

/// What a policy is tried on: folders as they are now.
struct Ground<'a> {
    home: &'a Path,
    repositories: BTreeMap<Arc<str>, Tightening>,
}

impl Ground<'_> {
    fn judge(&mut self, policy: &Policy, request: &PastRequest) -> Verdict {
        let session = request.preset.map(Layer::with_preset).unwrap_or_default();
        let nothing = Tightening::default();
        let home = self.home;
        let tightening = request.cwd.as_ref().map(|cwd| {
            let read = || RepositoryPolicy::read(Path::new(&**cwd), home).tightening;
            &*self.repositories.entry(cwd.clone()).or_insert_with(read)
        });
        let (cwd, input) = (request.cwd.as_deref(), request.input.as_deref());
        let asked = Asked { tool: &request.tool, input, cwd, ..Asked::default() };
        let led_to = &links::led_to(&policy.named(&asked), cwd, home);
        let here = policy.effective(cwd, &session, tightening.unwrap_or(&nothing));
        here.judge(&Asked { led_to, ..asked })
    }
}

/// A request of the past, and what would become of it.
struct Tried {
    request: PastRequest,
    verdict: Verdict,
    /// By the policy in force.
    now: Verdict,
}

impl Tried {
    fn is_changed(&self) -> bool {
        self.request.was.effect() != self.verdict.effect
    }

    /// The policy in force says something else.
    fn is_news(&self) -> bool {
        self.now.effect != self.verdict.effect
    }

    fn line(&self) -> String {
        let Self { request, verdict, now } = self;
        let was = match &request.was {
            Was::Person { allowed: true } => "you allowed",
            Was::Person { allowed: false } => "you denied",
            Was::Rule { allowed: true, .. } => "rule allowed",
            Was::Rule { allowed: false, .. } => "rule denied",
            Was::Terminal => "asked",
        };
        let by = plain(verdict.rule.as_deref().unwrap_or(&verdict.why));
        let in_force = match self.is_news() {
            true => format!("; in force: {}", now.effect.name()),
            false => String::new(),
        };
        let (tool, about) = (plain(&request.tool), shortened(&about(request)));
        let (would, count) = (verdict.effect.name(), request.count);
        format!("{was:>12} → {would:<5}  {count:>5}×  {tool}  {about}  ({by}{in_force})")
    }

    fn spelled(&self) -> Value {
        let Self { request, verdict, now } = self;
        json!({"tool": request.tool, "input": request.input, "cwd": request.cwd,
            "count": request.count, "lastAt": request.last_at, "preset": request.preset,
            "was": request.was, "effect": verdict.effect, "rule": verdict.rule,
            "origin": verdict.origin, "why": verdict.why, "changed": self.is_changed(),
            "inForce": {"effect": now.effect, "rule": now.rule, "why": now.why}})
    }
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
