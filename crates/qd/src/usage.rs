//! `qd usage`: what every session cost.

use std::io::{self, Write};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use qd_history::{By, History, Query};
use qd_sources::places::{Place, places};

use crate::config::Config;
use crate::paper::Paper;
use crate::paths::Paths;
use crate::progress_bar::while_drawn;
use crate::usage_table;
use crate::zone::Zone;

/// What every session cost: tokens and dollars
///
/// From the files that agents leave, read once; then only what is new. Works with and without the
/// daemon. A dollar that rests on a guessed price has a ~ before it.
#[derive(Debug, Args)]
pub struct UsageArgs {
    /// The first day: 2026-11-16, 20261116, today, yesterday, or 7d for the last seven
    #[arg(long)]
    since: Option<String>,
    /// The last day
    #[arg(long)]
    until: Option<String>,
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
}

pub fn usage(args: &UsageArgs, paths: &Paths) -> Result<()> {
    let prices = Config::read(&paths.config)?.price_table();
    let mut zone = match &args.timezone {
        Some(name) => Zone::named(name).with_context(|| format!("{name} is no time zone"))?,
        None => Zone::of_operator(),
    };
    let mut day = |text: &Option<String>| match text {
        Some(text) => zone.day(text).map(Some).map_err(anyhow::Error::msg),
        None => Ok(None),
    };
    let query = Query { since: day(&args.since)?, until: day(&args.until)?, by: args.by.by() };
    let mut places = places(&paths.home, &std::env::vars_os().collect());
    places.push(Place::journal(paths.journal()));
    let mut history = History::open(places, Some(&paths.usage_index()));
    while_drawn(|progress| history.refresh(progress));
    let report = history.report(query, &prices, |at| zone.offset(at));
    let mut out = io::stdout().lock();
    if args.json {
        let json = report.json(query.by, &prices.date, history.troubles());
        writeln!(out, "{json:#}")?;
    } else {
        let table = usage_table::Table { head: args.by.head(), report: &report, prices: &prices };
        table.write(&mut out, history.troubles(), Paper::of_stdout())?;
    }
    Ok(())
}
