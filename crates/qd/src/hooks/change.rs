//! One agent's settings on their way from planned to written.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::backup::Backup;
use super::codex_config::{self, Removal};
use super::diff::Paint;
use super::file_change::FileChange;
use super::json_text::Refused;
use super::plan::{self, Extent, Plan, TelemetryFound};
use super::product::{Product, after_tools, forwarder};
use super::settings_file::SettingsFile;
use super::trust;
use super::wanted::{AfterTools, Wanted};

#[derive(Debug, Clone)]
pub enum Intent {
    Install { otel: bool, token: Option<String> },
    Uninstall { otel_only: bool },
}

#[derive(Debug)]
pub struct Change {
    product: Product,
    files: Vec<FileChange>,
    trust: Trust,
    notes: Vec<String>,
    outcome: Outcome,
}

#[derive(Debug, PartialEq)]
enum Trust {
    /// Not this agent's way, or already given.
    NotNeeded,
    Wanted {
        codex: Option<PathBuf>,
        folder: PathBuf,
        hooks_file: PathBuf,
    },
    Given(usize),
    ByHand,
}

#[derive(Debug)]
enum Outcome {
    Planned,
    Done,
    Failed(String),
}

impl Change {
    pub fn plan(product: Product, intent: &Intent) -> Self {
        let empty = |outcome| Self {
            product,
            files: Vec::new(),
            trust: Trust::NotNeeded,
            notes: Vec::new(),
            outcome,
        };
        let mut change = empty(Outcome::Planned);
        let planned = match intent {
            Intent::Install { otel, token } => change.plan_install(*otel, token.as_deref()),
            Intent::Uninstall { otel_only } => change.plan_uninstall(*otel_only),
        };
        match planned {
            Ok(()) => change,
            Err(error) => empty(Outcome::Failed(format!("{error:#}"))),
        }
    }

    fn plan_install(&mut self, otel: bool, token: Option<&str>) -> Result<()> {
        let forwarder = forwarder()?;
        if !Path::new(&forwarder).is_file() {
            bail!("the forwarder is not beside this program: there is no {forwarder}");
        }
        let folder = self.product.folder()?;
        let everything = self.product.wanted(&forwarder, token, after_tools()?);
        let telemetry = everything.telemetry.clone().filter(|_| otel);
        let wanted = Wanted { telemetry, ..everything };
        let hooks_file = self.product.hooks_file(&folder);
        let file = SettingsFile::read(&hooks_file)?;
        let plan = plan::install(file.text(), &wanted).map_err(|at| refused(&hooks_file, &at))?;
        if otel
            && plan::inspect(plan.new_text.as_deref(), &wanted)
                .is_ok_and(|found| found.telemetry == TelemetryFound::Foreign)
        {
            self.notes.push(ELSEWHERE.to_owned());
        }
        self.note_off_switch(file.text().unwrap_or_default(), &wanted);
        if otel && (token.is_none() || self.product == Product::GeminiCli) {
            self.notes.push(NO_TOKEN.to_owned());
        }
        if otel && self.product == Product::GeminiCli {
            self.notes.push(GEMINI_WAITS.to_owned());
        }
        let new_text = plan.new_text.clone().unwrap_or_default();
        let rewritten = !plan.changes.is_empty();
        self.push(file, plan, token)?;
        if self.product == Product::Codex {
            self.plan_codex_install(
                &folder,
                &hooks_file,
                &new_text,
                rewritten,
                otel.then_some(token),
            )?;
        }
        Ok(())
    }

    fn plan_codex_install(
        &mut self,
        folder: &Path,
        hooks_file: &Path,
        hooks_text: &str,
        rewritten: bool,
        telemetry: Option<Option<&str>>,
    ) -> Result<()> {
        let path = folder.join("config.toml");
        let file = SettingsFile::read(&path)?;
        let text = file.text().unwrap_or_default();
        let wanted = self.product.wanted("", None, AfterTools::GoesOn);
        let places = plan::places(hooks_text, &wanted).map_err(|at| refused(hooks_file, &at))?;
        let untrusted = codex_config::untrusted(text, &spellings(hooks_file), &places)
            .map_err(|at| refused(&path, &at))?;
        if rewritten || !untrusted.is_empty() {
            let codex = trust::find_codex(std::env::var_os("PATH").as_deref());
            let (folder, hooks_file) = (folder.to_owned(), hooks_file.to_owned());
            self.trust = Trust::Wanted { codex, folder, hooks_file };
        }
        let unchanged = Plan { new_text: file.text().map(str::to_owned), changes: Vec::new() };
        let plan = match telemetry {
            Some(token) => {
                let found =
                    codex_config::telemetry_found(text).map_err(|at| refused(&path, &at))?;
                if found == TelemetryFound::Foreign {
                    self.notes.push(ELSEWHERE.to_owned());
                }
                codex_config::install(file.text(), token).map_err(|at| refused(&path, &at))?
            }
            None => unchanged,
        };
        self.push(file, plan, telemetry.flatten())
    }

    fn plan_uninstall(&mut self, otel_only: bool) -> Result<()> {
        let folder = self.product.folder()?;
        // Any token will do: settings are ours by their endpoint.
        let wanted = self.product.wanted(&forwarder()?, Some("any"), AfterTools::GoesOn);
        let hooks_file = self.product.hooks_file(&folder);
        let file = SettingsFile::read(&hooks_file)?;
        let hooks_text = file.text().map(str::to_owned);
        if self.product == Product::Codex {
            let places = match &hooks_text {
                Some(text) if !otel_only => {
                    plan::places(text, &wanted).map_err(|at| refused(&hooks_file, &at))?
                }
                _ => Vec::new(),
            };
            self.plan_codex_uninstall(&folder, &hooks_file, &places)?;
        }
        let Some(text) = hooks_text else { return Ok(()) };
        let extent = if otel_only { Extent::TelemetryOnly } else { Extent::Everything };
        let before = Backup::of(&hooks_file).text()?;
        let plan = plan::uninstall(&text, before.as_deref(), &wanted, extent)
            .map_err(|at| refused(&hooks_file, &at))?;
        self.push(file, plan, None)
    }

    /// Before the hooks themselves, because they tell which trust is ours.
    fn plan_codex_uninstall(
        &mut self,
        folder: &Path,
        hooks_file: &Path,
        places: &[plan::Place],
    ) -> Result<()> {
        let path = folder.join("config.toml");
        let file = SettingsFile::read(&path)?;
        let Some(text) = file.text() else { return Ok(()) };
        let before = Backup::of(&path).text()?;
        let files = spellings(hooks_file);
        let removal = Removal { files: &files, places };
        let plan = codex_config::uninstall(text, before.as_deref(), removal)
            .map_err(|at| refused(&path, &at))?;
        self.push(file, plan, None)
    }

    fn push(&mut self, file: SettingsFile, plan: Plan, secret: Option<&str>) -> Result<()> {
        self.files.push(FileChange::new(file, plan, secret)?);
        Ok(())
    }

    fn note_off_switch(&mut self, text: &str, wanted: &Wanted) {
        let Some((pointer, off)) = self.product.off_switch() else { return };
        if plan::value_at(text, wanted, pointer) == Some(Value::Bool(off)) {
            let key = pointer.trim_start_matches('/').replace('/', ".");
            self.notes.push(format!("no hook will run: `{key}` is {off} in its settings"));
        }
    }

    pub fn is_pending(&self) -> bool {
        self.files.iter().any(FileChange::is_pending)
            || matches!(self.trust, Trust::Wanted { codex: Some(_), .. })
    }

    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }

    pub fn apply(mut self) -> Self {
        if !self.is_pending() {
            return self;
        }
        self.outcome = match self.write() {
            Ok(()) => Outcome::Done,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        self
    }

    fn write(&mut self) -> Result<()> {
        for change in &self.files {
            change.write()?;
        }
        let Trust::Wanted { codex, folder, hooks_file } = &self.trust else { return Ok(()) };
        let Some(codex) = codex else {
            self.trust = Trust::ByHand;
            return Ok(());
        };
        // Codex writes there now, so what was there is kept first.
        let config = folder.join("config.toml");
        Backup::of(&config).keep(&SettingsFile::read(&config)?)?;
        match trust::trust(codex, folder, hooks_file) {
            Ok(hooks) => {
                self.trust = Trust::Given(hooks);
                Ok(())
            }
            Err(error) => {
                self.trust = Trust::ByHand;
                Err(error
                    .context("the hooks are written, but Codex could not be had to trust them"))
            }
        }
    }

    pub fn show(&self, out: &mut impl Write, paint: Paint, intent: &Intent) -> Result<()> {
        for change in self.files.iter().filter(|change| change.is_pending()) {
            write!(out, "{}", change.diff(paint))?;
        }
        if let Trust::Wanted { codex, .. } = &self.trust {
            match codex {
                Some(codex) => writeln!(
                    out,
                    "and `{} app-server` writes into config.toml that these hooks are trusted",
                    codex.display()
                )?,
                None => writeln!(out, "note: `codex` is not on PATH. {}", trust::BY_HAND)?,
            }
        }
        for note in &self.notes {
            writeln!(out, "{}: note: {note}", self.product.name())?;
        }
        if !self.is_pending() && !self.has_failed() {
            let state = match intent {
                Intent::Install { .. } => "is installed already",
                Intent::Uninstall { .. } => "has nothing of ours",
            };
            writeln!(out, "{}: nothing to do: it {state}", self.product.name())?;
        }
        Ok(())
    }

    pub fn tell_outcome(&self, out: &mut impl Write) -> Result<()> {
        let name = self.product.name();
        match &self.outcome {
            Outcome::Planned => {}
            Outcome::Done => {
                for change in self.files.iter().filter(|change| change.is_pending()) {
                    writeln!(out, "{name}: {}", change.done())?;
                }
            }
            Outcome::Failed(error) => {
                out.flush()?;
                eprintln!("qd: {name}: {error}");
            }
        }
        match &self.trust {
            Trust::Given(hooks) => writeln!(out, "{name}: Codex trusts our {hooks} hooks")?,
            Trust::ByHand => writeln!(out, "{name}: {}", trust::BY_HAND)?,
            Trust::NotNeeded | Trust::Wanted { .. } => {}
        }
        Ok(())
    }

    pub fn json(&self) -> Value {
        let (state, error) = match &self.outcome {
            Outcome::Planned if self.is_pending() => ("planned", None),
            Outcome::Planned => ("nothing_to_do", None),
            Outcome::Done => ("done", None),
            Outcome::Failed(error) => ("failed", Some(error)),
        };
        let trust = match &self.trust {
            Trust::NotNeeded => "not_needed",
            Trust::Wanted { codex: Some(_), .. } => "planned",
            Trust::Wanted { codex: None, .. } | Trust::ByHand => "by_hand",
            Trust::Given(_) => "given",
        };
        let files: Vec<Value> =
            self.files.iter().filter(|file| file.is_pending()).map(FileChange::json).collect();
        json!({"harness": self.product.name(), "state": state, "files": files, "trust": trust,
            "notes": self.notes, "error": error})
    }
}

/// How Codex may spell the hooks file in its keys.
pub fn spellings(hooks_file: &Path) -> Vec<String> {
    let mut spellings = vec![hooks_file.display().to_string()];
    let folder = hooks_file.parent().and_then(|folder| folder.canonicalize().ok());
    let canonical = folder.map(|folder| folder.join(hooks_file.file_name().unwrap_or_default()));
    for path in [canonical, hooks_file.canonicalize().ok()].into_iter().flatten() {
        spellings.push(path.display().to_string());
    }
    spellings
}

fn refused(path: &Path, at: &Refused) -> anyhow::Error {
    anyhow::Error::new(at.clone())
        .context(format!("{} was left alone, it cannot be edited", path.display()))
}

const ELSEWHERE: &str = "its telemetry already goes elsewhere; that was left as it is";

const GEMINI_WAITS: &str = "with telemetry on, Gemini CLI complains and takes seconds to end \
     while the daemon is not running";

const NO_TOKEN: &str = "the daemon takes telemetry only with a token: give one with \
     --otel-token-file, or set OTEL_EXPORTER_OTLP_HEADERS=\"Authorization=Bearer TOKEN\" in the \
     agent's environment";
