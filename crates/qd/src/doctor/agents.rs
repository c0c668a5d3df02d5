//! The agents of this machine, and whether they report to us.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::Duration;

use qd_broker::{ClientVersion, ClientView};
use qd_harness::other_client;
use qd_server::{About, RefusedHooks};
use qd_sources::client_folders::{FolderOrigin, FolderView};
use qd_sources::places::places;

use super::finding::Finding;
use crate::hooks::{self, Standing};
use crate::paths::Paths;
use crate::program::run;

/// The forwarder answers at once, or something is wrong with it.
const FORWARDER_WAIT_MAX: Duration = Duration::from_secs(5);

pub fn found(paths: &Paths) -> Finding {
    const CHECK: &str = "agents";
    let places = places(&paths.home, &std::env::vars_os().collect());
    let there = places.iter().filter(|place| place.path.exists());
    let names: BTreeSet<&str> = there.map(|place| place.harness.name()).collect();
    if names.is_empty() {
        return Finding::warn(CHECK, "no agent has left a file here yet")
            .advise("start one; or see what it would look like: `qd demo`");
    }
    Finding::ok(CHECK, names.into_iter().collect::<Vec<_>>().join(", "))
}

/// The clients that were heard of: which versions, beside those that were tested, and what of it
/// could not be read. A version that is not known is no alarm.
pub fn clients(about: &About) -> Vec<Finding> {
    let finding = |client: &ClientView| {
        let ClientView { harness, versions, unrecognised } = client;
        let named = |one: &ClientVersion| match &one.note {
            Some(note) => format!("{}, {note}", one.version),
            None => one.version.clone(),
        };
        let mut told: Vec<String> = versions.iter().map(named).collect();
        match unrecognised {
            0 => {}
            1 => told.push("1 message could not be read".to_owned()),
            count => told.push(format!("{count} messages could not be read")),
        }
        (!told.is_empty()).then(|| {
            Finding::ok("client", format!("{}: {}", harness.display_name(), told.join("; ")))
        })
    };
    about.health.clients.iter().filter_map(finding).collect()
}

/// The folders that the daemon follows, and how each came to be known.
pub fn folders(about: &About) -> Finding {
    const CHECK: &str = "places";
    let named = |folder: &FolderView| {
        let FolderView { harness, path, origin } = folder;
        let origin = match origin {
            FolderOrigin::Environment => "",
            FolderOrigin::Config => " (config.toml)",
            FolderOrigin::RunningClient => " (used by a running client)",
        };
        format!("{} {path}{origin}", harness.name())
    };
    let named: Vec<String> = about.health.folders.iter().map(named).collect();
    Finding::ok(CHECK, named.join(", "))
}

/// Of every agent that is set up here.
pub fn hooks() -> Vec<Finding> {
    const CHECK: &str = "hooks";
    let standings = match hooks::standings() {
        Ok(standings) => standings,
        Err(error) => return vec![Finding::bad(CHECK, format!("{error:#}"))],
    };
    let finding = |(name, standing)| {
        let install = format!("`qd hooks install {name}`");
        match standing {
            Standing::Installed => Finding::ok(CHECK, format!("{name}: installed")),
            Standing::NotInstalled => {
                let reason = format!("{name}: not installed; dialogs are seen late or not at all");
                Finding::warn(CHECK, reason).advise(install)
            }
            Standing::Drifted(how) => Finding::bad(CHECK, format!("{name}: {how}")).advise(install),
            Standing::CannotBeRead(error) => Finding::bad(CHECK, format!("{name}: {error}"))
                .advise("repair the file; we do not touch what we cannot read"),
        }
    };
    standings.into_iter().map(finding).collect()
}

/// The program that hooks call lies beside us and runs.
pub fn forwarder() -> Finding {
    const CHECK: &str = "forwarder";
    let install = "install qd and qd-hook from one release, into one folder";
    let path = match hooks::forwarder() {
        Ok(path) => path,
        Err(error) => return Finding::bad(CHECK, format!("{error:#}")),
    };
    let mut command = Command::new(&path);
    command.arg("--version").stdin(Stdio::null());
    match run(&mut command, FORWARDER_WAIT_MAX) {
        Err(error) => Finding::bad(CHECK, format!("{path}: {error:#}")).advise(install),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() && said.ends_with(env!("CARGO_PKG_VERSION")) {
                Finding::ok(CHECK, format!("{path}, {said}"))
            } else {
                Finding::bad(CHECK, format!("{path} says {said:?}")).advise(install)
            }
        }
    }
}

/// Whether somebody spoke for a session that is not theirs.
pub fn strangers(about: &About) -> Finding {
    const CHECK: &str = "hook callers";
    match about.health.strangers {
        0 => Finding::ok(CHECK, "every hook came from the process that holds its session"),
        count => Finding::warn(
            CHECK,
            format!("{count} hooks were ignored: the process that sent them does not hold the session they named"),
        )
        .advise("the daemon's log names the process and the session"),
    }
}

/// Who else reads Claude Code's settings file, and runs the hooks in it: those that are set up here,
/// and those that called. They are never held, and say nothing of Claude Code's sessions.
pub fn others(paths: &Paths, about: Option<&About>) -> Option<Finding> {
    const CHECK: &str = "other readers";
    let there = READERS.into_iter().filter(|(folder, _)| paths.home.join(folder).is_dir());
    let mut readers: BTreeMap<&str, Option<u64>> = there.map(|(_, name)| (name, None)).collect();
    for (program, hooks) in about.iter().flat_map(|about| &about.health.other_callers) {
        let called = readers.entry(other_client::display_name(program)).or_default();
        *called = Some(called.unwrap_or_default() + hooks);
    }
    let named = |(name, hooks): (&str, Option<u64>)| match hooks {
        Some(hooks) => format!("{name} ({hooks} hooks ignored)"),
        None => name.to_owned(),
    };
    let named: Vec<String> = readers.into_iter().map(named).collect();
    let reason = format!(
        "{} may run the hooks in Claude Code's settings too; they are never held by them",
        named.join(", ")
    );
    (!named.is_empty()).then(|| Finding::ok(CHECK, reason))
}

/// Programs that read Claude Code's settings, by the folder that each keeps in the home.
const READERS: [(&str, &str); 4] = [
    (".grok", "Grok Build"),
    (".cursor", "Cursor"),
    (".config/Code", "VS Code"),
    (".copilot", "GitHub Copilot"),
];

/// Whether a script of the operator's own posts hooks in vain: it says nothing of it itself.
pub fn posts(about: &About) -> Option<Finding> {
    let RefusedHooks { without_token, wrong_token, broken } = about.refused_hooks;
    let unauthorised = (without_token + wrong_token > 0).then(|| {
        format!(
            "{without_token} hooks were posted to /api/live/hook without a token and {wrong_token} \
             with a wrong one (401): a script of yours reports to nobody"
        )
    });
    let advice = match &unauthorised {
        Some(_) => {
            "give curl the token: -H \"Authorization: Bearer $(cat $(qd token --scope ingest \
             --path))\"; see docs/hooks-by-hand.md"
        }
        None => "post what the agent writes to the hook's input; see docs/hooks-by-hand.md",
    };
    let broken = (broken > 0)
        .then(|| format!("{broken} bodies posted to /api/live/hook were no hooks (400)"));
    let reasons: Vec<String> = unauthorised.into_iter().chain(broken).collect();
    let finding = || Finding::warn("posted hooks", reasons.join("; ")).advise(advice);
    (!reasons.is_empty()).then(finding)
}

/// Whether something that agents said was too long to be kept.
pub fn cut(about: &About) -> Finding {
    const CHECK: &str = "long hooks";
    match about.health.cut {
        0 => Finding::ok(CHECK, "every hook was kept whole"),
        count => Finding::ok(
            CHECK,
            format!(
                "{count} hooks were shortened; a card whose request is not shown whole says so"
            ),
        ),
    }
}

pub fn unknown(about: &About) -> Finding {
    const CHECK: &str = "signals";
    match (about.health.unknown, about.health.hooks) {
        (0, hooks) => Finding::ok(CHECK, format!("{hooks} hooks taken since the daemon started")),
        (unknown, _) => Finding::warn(
            CHECK,
            format!("{unknown} hooks came from agents that are not known here"),
        )
        .advise("the daemon's log names them; a newer qd may know them"),
    }
}
