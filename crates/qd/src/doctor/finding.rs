//! What one check found, and how it can be repaired.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    Warn,
    Bad,
    /// It was not well, and is now.
    Fixed,
}

#[derive(Debug)]
pub struct Finding {
    pub check: &'static str,
    pub verdict: Verdict,
    reason: String,
    advice: Option<String>,
    repairs: Vec<Repair>,
}

/// Something that is ours and safe to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// Takes others' rights to a file or folder of ours away.
    Protect {
        path: PathBuf,
        mode: u32,
    },
    Remove(PathBuf),
}

impl Finding {
    pub fn ok(check: &'static str, reason: impl Into<String>) -> Self {
        Self::new(check, Verdict::Ok, reason)
    }

    pub fn warn(check: &'static str, reason: impl Into<String>) -> Self {
        Self::new(check, Verdict::Warn, reason)
    }

    pub fn bad(check: &'static str, reason: impl Into<String>) -> Self {
        Self::new(check, Verdict::Bad, reason)
    }

    fn new(check: &'static str, verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { check, verdict, reason: reason.into(), advice: None, repairs: Vec::new() }
    }

    pub fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    pub fn repairable(self, repairs: Vec<Repair>) -> Self {
        let advice =
            self.advice.clone().unwrap_or_else(|| "`qd doctor --fix` repairs it".to_owned());
        Self { repairs, advice: Some(advice), ..self }
    }

    /// Repairs it, if there is a safe way.
    pub fn fix(&mut self) {
        if self.repairs.is_empty() {
            return;
        }
        match self.repairs.drain(..).try_for_each(|repair| repair.carry_out()) {
            Ok(()) => {
                self.verdict = Verdict::Fixed;
                self.advice = None;
            }
            Err(error) => self.advice = Some(format!("it could not be repaired: {error}")),
        }
    }

    pub fn tell(&self, out: &mut impl Write) -> io::Result<()> {
        let verdict = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Bad => "BAD",
            Verdict::Fixed => "fixed",
        };
        writeln!(out, "{verdict:<5}  {:<14}  {}", self.check, self.reason)?;
        match &self.advice {
            Some(advice) => writeln!(out, "{:<5}  {:<14}  → {advice}", "", ""),
            None => Ok(()),
        }
    }

    pub fn json(&self) -> Value {
        json!({"check": self.check, "verdict": self.verdict, "reason": self.reason,
            "advice": self.advice})
    }
}

impl Repair {
    fn carry_out(self) -> io::Result<()> {
        match self {
            Self::Protect { path, mode } => {
                fs::set_permissions(path, fs::Permissions::from_mode(mode))
            }
            Self::Remove(path) => fs::remove_file(path),
        }
    }
}
