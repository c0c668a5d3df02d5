//! `qd hooks status`: what is there, and how it differs from what would be installed now.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::change::spellings;
use super::codex_config;
use super::plan::{self, TelemetryFound};
use super::product::{Product, after_tools, forwarder};
use super::settings_file::SettingsFile;
use super::trust;

/// How an agent's hooks are, in a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Installed,
    NotInstalled,
    /// They are not what would be installed now, and how.
    Drifted(String),
    CannotBeRead(String),
}

/// The hooks of every agent that has a settings folder here, by its name.
pub fn standings() -> Result<Vec<(&'static str, Standing)>> {
    let mut standings = Vec::new();
    for product in Product::ALL {
        if product.folder()?.is_dir() {
            standings.push((product.name(), Status::read(product)?.standing()));
        }
    }
    Ok(standings)
}

#[derive(Debug)]
struct Status {
    product: Product,
    file: PathBuf,
    state: State,
    missing: Vec<String>,
    changed: Vec<String>,
    /// Those of an older version: installing again brings them up to date.
    old: Vec<String>,
    /// Programs that our entries run and that are not there.
    gone: Vec<String>,
    untrusted: Vec<String>,
    telemetry: TelemetryFound,
    notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Installed,
    Partly,
    NotInstalled,
    CannotBeRead(String),
}

pub fn run(named: Option<Product>, json: bool) -> Result<i32> {
    let products = named.map_or(Product::ALL.to_vec(), |product| vec![product]);
    let statuses: Vec<Status> = products.into_iter().map(Status::read).collect::<Result<_>>()?;
    let mut out = io::stdout().lock();
    if json {
        let harnesses: Vec<Value> = statuses.iter().map(Status::json).collect();
        serde_json::to_writer(&mut out, &json!({"harnesses": harnesses}))?;
        writeln!(out)?;
    } else {
        for status in &statuses {
            status.tell(&mut out)?;
        }
    }
    out.flush()?;
    let unreadable = |status: &Status| matches!(status.state, State::CannotBeRead(_));
    Ok(i32::from(statuses.iter().any(unreadable)))
}

impl Status {
    fn read(product: Product) -> Result<Self> {
        let folder = product.folder()?;
        let mut status = Self {
            product,
            file: product.hooks_file(&folder),
            state: State::NotInstalled,
            missing: Vec::new(),
            changed: Vec::new(),
            old: Vec::new(),
            gone: Vec::new(),
            untrusted: Vec::new(),
            telemetry: TelemetryFound::Absent,
            notes: Vec::new(),
        };
        if let Err(error) = status.look(&folder) {
            status.state = State::CannotBeRead(format!("{error:#}"));
        }
        Ok(status)
    }

    fn look(&mut self, folder: &std::path::Path) -> Result<()> {
        let wanted = self.product.wanted(&forwarder()?, None, after_tools()?);
        let file = SettingsFile::read(&self.file)?;
        let findings = plan::inspect(file.text(), &wanted)?;
        self.telemetry = findings.telemetry;
        let is_absent =
            findings.good.is_empty() && findings.changed.is_empty() && findings.old.is_empty();
        if self.product == Product::Codex {
            let config = SettingsFile::read(&folder.join("config.toml"))?;
            let text = config.text().unwrap_or_default();
            self.telemetry = codex_config::telemetry_found(text)?;
            let places = plan::places(file.text().unwrap_or_default(), &wanted)?;
            self.untrusted = codex_config::untrusted(text, &spellings(&self.file), &places)?;
        }
        if is_absent {
            return Ok(());
        }
        self.missing = findings.missing;
        self.changed = findings.changed;
        self.old = findings.old;
        self.gone = findings.programs.into_iter().filter(|path| !is_program(path)).collect();
        if let Some((pointer, off)) = self.product.off_switch()
            && plan::value_at(file.text().unwrap_or_default(), &wanted, pointer)
                == Some(Value::Bool(off))
        {
            let key = pointer.trim_start_matches('/').replace('/', ".");
            self.notes.push(format!("no hook runs: `{key}` is {off} in its settings"));
        }
        let drift = [&self.missing, &self.changed, &self.old, &self.gone, &self.untrusted];
        let is_whole = drift.iter().all(|list| list.is_empty());
        self.state = if is_whole { State::Installed } else { State::Partly };
        Ok(())
    }

    fn standing(self) -> Standing {
        match &self.state {
            State::CannotBeRead(error) => Standing::CannotBeRead(error.clone()),
            State::NotInstalled => Standing::NotInstalled,
            State::Installed if self.notes.is_empty() => Standing::Installed,
            State::Installed => Standing::Drifted(self.notes.join("; ")),
            State::Partly => {
                let lists = self.drift().into_iter().filter(|(_, list)| !list.is_empty());
                let told = lists.map(|(what, list)| format!("{what}: {}", list.join(", ")));
                Standing::Drifted(told.collect::<Vec<_>>().join("; "))
            }
        }
    }

    fn drift(&self) -> [(&'static str, &Vec<String>); 5] {
        [
            ("missing", &self.missing),
            ("changed", &self.changed),
            ("of an older version", &self.old),
            ("program gone", &self.gone),
            ("not trusted by Codex", &self.untrusted),
        ]
    }

    fn tell(&self, out: &mut impl Write) -> Result<()> {
        let (name, file) = (self.product.name(), self.file.display());
        match &self.state {
            State::CannotBeRead(error) => writeln!(out, "{name}: cannot be read: {error}")?,
            State::Installed | State::Partly | State::NotInstalled => {
                writeln!(out, "{name}: {} ({file})", self.state.name().replace('_', " "))?;
            }
        }
        for (what, list) in self.drift().into_iter().filter(|(_, list)| !list.is_empty()) {
            writeln!(out, "  {what}: {}", list.join(", "))?;
        }
        match self.telemetry {
            TelemetryFound::Ours => writeln!(out, "  telemetry: comes to the daemon")?,
            TelemetryFound::Foreign => writeln!(out, "  telemetry: goes elsewhere")?,
            TelemetryFound::Absent => {}
        }
        if self.state == State::Partly {
            writeln!(out, "  `qd hooks install {name}` puts it right")?;
        }
        if !self.untrusted.is_empty() {
            writeln!(out, "  {}", trust::BY_HAND)?;
        }
        for note in &self.notes {
            writeln!(out, "  note: {note}")?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let error = match &self.state {
            State::CannotBeRead(error) => Some(error),
            State::Installed | State::Partly | State::NotInstalled => None,
        };
        let telemetry = match self.telemetry {
            TelemetryFound::Absent => "not_installed",
            TelemetryFound::Ours => "installed",
            TelemetryFound::Foreign => "elsewhere",
        };
        json!({"harness": self.product.name(), "state": self.state.name(),
            "file": self.file.display().to_string(), "missing": self.missing,
            "changed": self.changed, "old": self.old, "gone": self.gone, "untrusted": self.untrusted,
            "telemetry": telemetry, "notes": self.notes, "error": error})
    }
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Partly => "partly",
            Self::NotInstalled => "not_installed",
            Self::CannotBeRead(_) => "cannot_be_read",
        }
    }
}

/// A bare name is looked for by a shell, which we are not.
fn is_program(path: &str) -> bool {
    !path.contains('/')
        || fs::metadata(path)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
