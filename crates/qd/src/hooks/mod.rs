//! `qd hooks`: lets agents tell us what they do, by entries in their own settings files.
//!
//! Planned in pure code ([`plan`], [`codex_config`]), shown as a diff, and written only when the
//! operator agrees. Exit codes: 0 done, or nothing to do; 1 something failed, or was declined;
//! 2 somebody has to agree and nobody can be asked.

mod backup;
mod change;
mod claude_code;
mod codex;
mod codex_config;
mod diff;
mod file_change;
mod gemini_cli;
mod json_text;
mod plan;
mod product;
mod settings_file;
mod status;
mod trust;
mod wanted;

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use change::{Change, Intent};
use diff::Paint;
use product::Product;
pub use product::forwarder;
pub use status::{Standing, standings};

#[derive(Debug, Args)]
pub struct HooksArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add our hooks to the agents' settings; shows the changes first
    Install(ChangeArgs),
    /// Take our hooks and telemetry settings out again
    Uninstall(ChangeArgs),
    /// Say what is installed, and what has changed since
    Status(StatusArgs),
}

#[derive(Debug, Args)]
struct ChangeArgs {
    /// Only this agent; without it, every agent that has a settings folder
    harness: Option<Product>,
    /// Show the changes and stop
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Also have the agent send its telemetry to the daemon; with uninstall: remove only that
    #[arg(long)]
    otel: bool,
    /// A file with the token that telemetry is sent with (`qd token --scope ingest`)
    #[arg(long, value_name = "FILE", requires = "otel")]
    otel_token_file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct StatusArgs {
    /// Only this agent
    harness: Option<Product>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &HooksArgs) -> Result<()> {
    let code = match &args.action {
        Action::Install(args) => {
            change(args, &Intent::Install { otel: args.otel, token: token(args)? })?
        }
        Action::Uninstall(args) => change(args, &Intent::Uninstall { otel_only: args.otel })?,
        Action::Status(args) => status::run(args.harness, args.json)?,
    };
    if code != 0 {
        io::stdout().flush()?;
        std::process::exit(code);
    }
    Ok(())
}

fn change(args: &ChangeArgs, intent: &Intent) -> Result<i32> {
    let changes: Vec<Change> =
        selected(args.harness)?.into_iter().map(|product| Change::plan(product, intent)).collect();
    let pending = changes.iter().any(Change::is_pending);
    if !args.json {
        show(&changes, paint(), intent)?;
    }
    let agreed = match (pending, args.dry_run, args.yes) {
        (false, _, _) => Agreement::NotNeeded,
        (true, true, _) => Agreement::DryRun,
        (true, false, true) => Agreement::Yes,
        (true, false, false) => ask(args.json)?,
    };
    let done = match agreed {
        Agreement::Yes => changes.into_iter().map(Change::apply).collect(),
        Agreement::NotNeeded | Agreement::DryRun | Agreement::No | Agreement::Nobody => changes,
    };
    report(args, agreed, &done)
}

fn report(args: &ChangeArgs, agreed: Agreement, changes: &[Change]) -> Result<i32> {
    let mut out = io::stdout().lock();
    if args.json {
        let harnesses: Vec<_> = changes.iter().map(Change::json).collect();
        let applied = agreed == Agreement::Yes;
        serde_json::to_writer(&mut out, &json!({"applied": applied, "harnesses": harnesses}))?;
        writeln!(out)?;
    } else {
        for change in changes {
            change.tell_outcome(&mut out)?;
        }
    }
    out.flush()?;
    let failed = changes.iter().any(Change::has_failed);
    Ok(match agreed {
        Agreement::Nobody => {
            eprintln!("qd: nothing was changed: nobody to ask here; say --yes to agree");
            2
        }
        Agreement::No => {
            eprintln!("qd: nothing was changed");
            1
        }
        Agreement::Yes | Agreement::DryRun | Agreement::NotNeeded => i32::from(failed),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    NotNeeded,
    DryRun,
    Yes,
    No,
    Nobody,
}

fn ask(json: bool) -> Result<Agreement> {
    if json || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(Agreement::Nobody);
    }
    print!("Make these changes? [y/N] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    Ok(match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Agreement::Yes,
        _ => Agreement::No,
    })
}

fn show(changes: &[Change], paint: Paint, intent: &Intent) -> Result<()> {
    let mut out = io::stdout().lock();
    for change in changes {
        change.show(&mut out, paint, intent)?;
    }
    out.flush()?;
    Ok(())
}

fn selected(named: Option<Product>) -> Result<Vec<Product>> {
    if let Some(product) = named {
        return Ok(vec![product]);
    }
    let mut found = Vec::new();
    for product in Product::ALL {
        if product.folder()?.is_dir() {
            found.push(product);
        }
    }
    if found.is_empty() {
        let names = Product::ALL.map(Product::name).join(", ");
        bail!("no agent has a settings folder here; name one to set it up anyway ({names})");
    }
    Ok(found)
}

fn token(args: &ChangeArgs) -> Result<Option<String>> {
    let Some(path) = &args.otel_token_file else { return Ok(None) };
    let text = settings_file::read_text(path)?;
    let token = text.trim();
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"\\,;%".contains(c);
    if token.is_empty() || !token.chars().all(is_plain) {
        bail!("{} does not hold a token", path.display());
    }
    Ok(Some(token.to_owned()))
}

fn paint() -> Paint {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if io::stdout().is_terminal() && !no_color { Paint::Coloured } else { Paint::Plain }
}
