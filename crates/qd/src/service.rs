//! `qd service`: the daemon as a unit of the user's systemd, there after every login.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use qd_host::bounded_file::{Links, read_regular_text};
use serde_json::json;

use crate::paths::{Paths, folder};
use crate::program::run;

/// The unit that we write has a few hundred bytes.
const UNIT_BYTES_MAX: u64 = 64 << 10;

const UNIT: &str = "quarterdeck.service";

/// A file without it is somebody else's.
const MARK: &str = "# Written by `qd service install`; `qd service uninstall` removes it.";

/// systemd answers in milliseconds, but waits for a service to stop.
const SYSTEMCTL_WAIT_MAX: Duration = Duration::from_secs(120);

/// What says where agents and we keep files. The user's systemd does not have a shell's variables.
const VARIABLES: [&str; 7] = [
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "QD_LOG",
    "QD_PORT",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

#[derive(Debug, Args)]
pub struct ServiceArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write the unit, start the daemon now and at every login
    Install {
        /// Show the unit and what would be run, and stop
        #[arg(long)]
        dry_run: bool,
    },
    /// Stop the daemon and remove the unit
    Uninstall {
        /// Show what would be removed and run, and stop
        #[arg(long)]
        dry_run: bool,
    },
    /// Say whether the unit is there, enabled and active
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub fn service(args: &ServiceArgs, paths: &Paths) -> Result<()> {
    let config = folder("XDG_CONFIG_HOME").unwrap_or_else(|| paths.home.join(".config"));
    let file = config.join("systemd/user").join(UNIT);
    match args.action {
        Action::Install { dry_run } => install(&file, dry_run),
        Action::Uninstall { dry_run } => uninstall(&file, dry_run),
        Action::Status { json } => status(&file, json),
    }
}

fn install(file: &Path, dry_run: bool) -> Result<()> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let variables = VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let unit = unit(&program, variables)?;
    let before = ours(file)?;
    println!("{}:", file.display());
    unit.lines().for_each(|line| println!("  {line}"));
    let steps = [&["daemon-reload"][..], &["enable", "--now", UNIT]];
    if dry_run {
        println!("Would write it and run:");
        steps.iter().for_each(|step| println!("  {}", spelled(step)));
        return Ok(());
    }
    if before.as_deref() == Some(&unit) {
        println!("It is there already.");
    } else {
        write(file, &unit).with_context(|| format!("cannot write {}", file.display()))?;
        println!("Written.");
    }
    carry_out(&steps)?;
    println!("The daemon runs, and starts with every login.");
    Ok(())
}

fn uninstall(file: &Path, dry_run: bool) -> Result<()> {
    if ours(file)?.is_none() {
        println!("{} is not there; nothing to do.", file.display());
        return Ok(());
    }
    let (before, after) = (&["disable", "--now", UNIT][..], &["daemon-reload"][..]);
    if dry_run {
        println!("Would run:\n  {}", spelled(before));
        println!("Would remove {}, and run:\n  {}", file.display(), spelled(after));
        return Ok(());
    }
    // Where systemd does not run, neither does the unit; a file alone does no harm and can go.
    let stopped = carry_out(&[before]);
    fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))?;
    println!("{} is removed.", file.display());
    stopped.and_then(|()| carry_out(&[after]))
}

fn status(file: &Path, json: bool) -> Result<()> {
    let installed = ours(file)?.is_some();
    let asked = |question: &str| match run(&mut systemctl(&[question, UNIT]), SYSTEMCTL_WAIT_MAX) {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if said.is_empty() { "unknown".to_owned() } else { said }
        }
        Err(_) => "unknown".to_owned(),
    };
    let (enabled, active) = (asked("is-enabled"), asked("is-active"));
    if json {
        let file = file.display().to_string();
        let status =
            json!({"file": file, "installed": installed, "enabled": enabled, "active": active});
        println!("{status}");
        return Ok(());
    }
    println!(
        "unit      {} ({})",
        if installed { "installed" } else { "not installed" },
        file.display()
    );
    println!("enabled   {enabled}");
    println!("active    {active}");
    Ok(())
}

/// The text of the unit.
fn unit(
    program: &Path,
    variables: impl Iterator<Item = (&'static str, OsString)>,
) -> Result<String> {
    let program = quoted(program.to_str().context("the path of qd is not UTF-8")?)?;
    let mut environment = String::new();
    for (name, value) in variables {
        let value = value.to_str().with_context(|| format!("{name} is not UTF-8"))?;
        environment += &format!("Environment={}\n", quoted(&format!("{name}={value}"))?);
    }
    Ok(format!(
        "{MARK}
[Unit]
Description=Quarterdeck: which coding agent needs you

[Service]
ExecStart={program} serve
{environment}Restart=on-failure
RestartSec=2

[Install]
WantedBy=default.target
"
    ))
}

/// A word as systemd reads it: no specifier, no variable, no escape is left.
fn quoted(word: &str) -> Result<String> {
    if word.chars().any(char::is_control) {
        bail!("{word:?} cannot stand in a unit");
    }
    let mut quoted = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    if !word.contains('=') {
        // Only a command's words have variables.
        quoted = quoted.replace('$', "$$");
    }
    Ok(format!("\"{quoted}\""))
}

/// The unit that is there; none if none is. One that we did not write is an error.
fn ours(file: &Path) -> Result<Option<String>> {
    let text = match read_regular_text(file, UNIT_BYTES_MAX, Links::Followed) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", file.display()));
        }
    };
    if !text.starts_with(MARK) {
        bail!("{} was not written by us; move it away first", file.display());
    }
    Ok(Some(text))
}

/// Beside it, then moved: nobody reads half a unit.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let fresh: PathBuf = file.with_extension("service.new");
    fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
    let mut half = fs::File::create(&fresh)?;
    half.write_all(text.as_bytes())?;
    half.sync_all()?;
    fs::rename(fresh, file)
}

fn systemctl(step: &[&str]) -> Command {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(step);
    command
}

fn spelled(step: &[&str]) -> String {
    format!("systemctl --user {}", step.join(" "))
}

/// Runs each step; from the first that fails on they are the operator's to run.
fn carry_out(steps: &[&[&str]]) -> Result<()> {
    for (index, step) in steps.iter().enumerate() {
        let why = match run(&mut systemctl(step), SYSTEMCTL_WAIT_MAX) {
            Ok(output) if output.status.success() => continue,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("{error:#}"),
        };
        let left: Vec<String> = steps[index..].iter().map(|step| spelled(step)).collect();
        bail!(
            "systemctl: {why}\nWhere systemd runs for this user, do this:\n  {}",
            left.join("\n  ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_path_means_anything_to_systemd() {
        let variables = [("CODEX_HOME", OsString::from("/x $HOME/50%"))];
        let unit = unit(Path::new("/o p/t\"$%\\/qd"), variables.into_iter()).expect("a unit");
        assert!(unit.contains("ExecStart=\"/o p/t\\\"$$%%\\\\/qd\" serve\n"), "{unit}");
        assert!(unit.contains("Environment=\"CODEX_HOME=/x $HOME/50%%\"\n"), "{unit}");
        assert!(quoted("a\nb").is_err());
    }
}
