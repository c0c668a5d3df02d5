//! `qd usage`: what every session cost.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use qd_broker::history::{By, History, Progress, Query, Report, Trouble, report};
use qd_broker::sources::places::places;
use qd_harness::usage::{Day, PriceTable};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::paths::Paths;
use crate::usage_table;
use crate::zone::Zone;

/// What every session cost: tokens and dollars
///
/// From the files that agents leave, read once; then only what is new. Works with and without the
/// daemon. A dollar that rests on a guessed price has a ~ before it.
#[derive(Debug, Args)]
pub struct UsageArgs {
    /// The first day, as 2026-11-16 or 20261116
    #[arg(long, value_parser = day)]
    since: Option<Day>,
    /// The last day
    #[arg(long, value_parser = day)]
    until: Option<Day>,
    /// What a line is
    #[arg(long, value_enum, default_value_t = Grouping::Day)]
    by: Grouping,
    /// As JSON, with the names that ccusage uses
    #[arg(long)]
    json: bool,
    /// Whose days: a time zone as Europe/Berlin, instead of this machine's
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Grouping {
    Day,
    Week,
    Month,
    Model,
    Project,
    Session,
    Harness,
}

impl Grouping {
    fn by(self) -> By {
        match self {
            Self::Day => By::Day,
            Self::Week => By::Week,
            Self::Month => By::Month,
            Self::Model => By::Model,
            Self::Project => By::Project,
            Self::Session => By::Session,
            Self::Harness => By::Harness,
        }
    }

    /// What stands above the rows.
    fn head(self) -> &'static str {
        match self {
            Self::Day => "Day",
            Self::Week => "Week from",
            Self::Month => "Month",
            Self::Model => "Model",
            Self::Project => "Project",
            Self::Session => "Session",
            Self::Harness => "Agent",
        }
    }

    /// How JSON names the rows, and what a row is called in it.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Day => ("daily", "date"),
            Self::Week => ("weekly", "week"),
            Self::Month => ("monthly", "month"),
            Self::Model => ("models", "model"),
            Self::Project => ("projects", "project"),
            Self::Session => ("sessions", "sessionId"),
            Self::Harness => ("harnesses", "harness"),
        }
    }
}

pub fn usage(args: &UsageArgs, paths: &Paths) -> Result<()> {
    let prices = Config::read(&paths.config)?.price_table();
    let mut zone = match &args.timezone {
        Some(name) => Zone::named(name).with_context(|| format!("{name} is no time zone"))?,
        None => Zone::of_operator(),
    };
    let places = places(&paths.home, &std::env::vars_os().collect());
    let mut history = History::open(places, Some(&paths.usage_index()));
    refresh(&mut history);
    let query = Query { since: args.since, until: args.until, by: args.by.by() };
    let report = report(history.ledger(), query, &prices, |at| zone.offset(at));
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", spelled(&report, args.by, &prices, history.troubles()))?;
    } else {
        usage_table::write(&mut out, args.by.head(), &report, &prices, history.troubles())?;
    }
    Ok(())
}

/// Reads what is new, and shows how far it is where a person looks.
fn refresh(history: &mut History) {
    let progress = Progress::default();
    thread::scope(|scope| {
        let (done, wait) = mpsc::channel::<()>();
        if io::stderr().is_terminal() {
            scope.spawn(|| draw(&progress, wait));
        }
        history.refresh(&progress);
        drop(done);
    });
}

fn draw(progress: &Progress, done: mpsc::Receiver<()>) {
    let mut has_drawn = false;
    while done.recv_timeout(DRAW_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
        let found = progress.found.load(Ordering::Relaxed);
        if found == 0 {
            continue;
        }
        let files = progress.files.load(Ordering::Relaxed).min(found);
        let bar = "█".repeat(files * BAR_CHARS / found);
        let megabytes = progress.bytes.load(Ordering::Relaxed) / 1_000_000;
        eprint!("\r{bar:░<BAR_CHARS$} {files} of {found} files, {megabytes} MB ");
        has_drawn = true;
    }
    if has_drawn {
        eprint!("\r\x1b[K");
    }
}

fn spelled(report: &Report, by: Grouping, prices: &PriceTable, troubles: &[Trouble]) -> Value {
    let (rows, name) = by.names();
    let all: Vec<Value> = report
        .rows
        .iter()
        .map(|row| {
            let mut object = Map::new();
            object.insert(name.to_owned(), json!(row.name));
            let models: Vec<&str> = row.models.iter().map(|row| row.model.as_str()).collect();
            object.insert("modelsUsed".to_owned(), json!(models));
            if let Value::Object(rest) = json!(row) {
                object.extend(rest);
            }
            Value::Object(object)
        })
        .collect();
    let troubles: Vec<Value> = troubles
        .iter()
        .map(|trouble| json!({"path": trouble.path, "what": trouble.what}))
        .collect();
    json!({rows: all, "totals": report.totals, "pricesOf": prices.date, "troubles": troubles})
}

fn day(text: &str) -> Result<Day, String> {
    Day::named(text).ok_or_else(|| "a day is written 2026-11-16 or 20261116".to_owned())
}

/// Often enough to look alive; a scan that is over before is not drawn at all.
const DRAW_EVERY: Duration = Duration::from_millis(150);

const BAR_CHARS: usize = 30;
