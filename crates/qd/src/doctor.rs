//! `qd doctor`: what keeps Quarterdeck from seeing the truth, and what to do about it.

mod agents;
mod files;
mod finding;
mod machine;
mod models;
mod sandbox;

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use qd_daemon::runtime::{Trouble, TroubleKind, gaps};
use qd_server::About;
use serde_json::json;

use self::finding::{Finding, Verdict};
use crate::daemon::Daemon;
use crate::exit::Exit;
use crate::paths::Paths;

/// Look for what is wrong with this set-up, and say what to do about it.
///
/// Checks the daemon and its journal, the rights of our folders, the socket, the spool, the hooks
/// in the agents' settings, the forwarder, your domain layers and policy, endpoints of models, the kernel's limits, the port, and the clock. Exit code
/// 1 if something is bad; a warning is none.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Repair what is ours and safe to repair: rights of our own files, a dead socket, old files
    /// that were set aside. Settings of agents are never touched
    #[arg(long)]
    fix: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn doctor(args: &DoctorArgs, paths: &Paths) -> Result<()> {
    let mut findings = examine(paths).await;
    if args.fix {
        findings.iter_mut().for_each(Finding::fix);
    }
    let bad = findings.iter().filter(|finding| finding.verdict == Verdict::Bad).count();
    let mut out = io::stdout().lock();
    if args.json {
        let checks: Vec<_> = findings.iter().map(Finding::json).collect();
        let version = env!("CARGO_PKG_VERSION");
        writeln!(out, "{}", json!({"version": version, "ok": bad == 0, "checks": checks}))?;
    } else {
        findings.iter().try_for_each(|finding| finding.tell(&mut out))?;
    }
    out.flush()?;
    if bad > 0 { Err(Exit::Unwell(bad).into()) } else { Ok(()) }
}

async fn examine(paths: &Paths) -> Vec<Finding> {
    let (about, mut findings) = daemon(paths).await;
    findings.push(machine::runtime_folder(paths, about.is_some()));
    findings.extend(about.as_ref().map(journal));
    findings.extend(troubles(paths, about.as_ref()));
    findings.extend(files::rights(paths));
    findings.push(files::socket(&paths.socket));
    findings.extend(files::spool(paths, about.is_some()));
    findings.extend(files::layers(paths));
    findings.extend(files::policy(paths));
    findings.extend(models::models(paths));
    findings.push(agents::found(paths));
    findings.extend(about.iter().flat_map(agents::clients));
    findings.extend(about.as_ref().map(agents::folders));
    findings.extend(agents::hooks());
    findings.push(agents::forwarder());
    findings.extend(about.as_ref().map(agents::unknown));
    findings.extend(about.as_ref().map(agents::strangers));
    findings.extend(agents::others(paths, about.as_ref()));
    findings.extend(about.as_ref().and_then(agents::posts));
    findings.extend(about.as_ref().map(agents::cut));
    findings.extend(about.as_ref().map(notices));
    if !has_trouble(about.as_ref(), TroubleKind::WatchesExhausted) {
        findings.push(machine::watches(paths));
    }
    findings.push(machine::port(about.as_ref()));
    findings.push(machine::clock(paths, about.as_ref()));
    findings.push(sandbox::sandbox(paths).await);
    findings
}

async fn daemon(paths: &Paths) -> (Option<About>, Vec<Finding>) {
    const CHECK: &str = "daemon";
    let ours = env!("CARGO_PKG_VERSION");
    let (about, finding) = match Daemon::at(paths).about().await {
        Ok(None) => {
            let finding = Finding::bad(CHECK, "none runs: no agent is seen");
            (
                None,
                finding.advise("`qd` starts one; `qd service install` starts it with the machine"),
            )
        }
        Err(error) => {
            let finding = Finding::bad(CHECK, format!("it does not answer: {error:#}"));
            (
                None,
                finding.advise("stop it (its log says which process it is) and start `qd` again"),
            )
        }
        Ok(Some(about)) if about.version != ours => {
            let reason = format!("it is version {}, this is {ours}", about.version);
            let advice = format!("`kill {}` and start `qd` again", about.pid);
            (Some(about), Finding::bad(CHECK, reason).advise(advice))
        }
        Ok(Some(about)) => {
            let reason = format!("process {}, version {}", about.pid, about.version);
            (Some(about), Finding::ok(CHECK, reason))
        }
    };
    (about, vec![finding])
}

/// Whether those arrive whom the operator wants to hear of what waits.
fn notices(about: &About) -> Finding {
    const CHECK: &str = "notices";
    let troubled = about.receivers.iter().find_map(|receiver| {
        let trouble = receiver.trouble.as_ref()?;
        Some(format!("{}: {trouble} ({} did not arrive)", receiver.name, receiver.failed))
    });
    match (troubled, about.receivers.len()) {
        (Some(trouble), _) => Finding::warn(CHECK, trouble).advise("see docs/notifications.md"),
        (None, 0) => Finding::ok(CHECK, "nobody is told; the bell on the page tells a device"),
        (None, 1) => Finding::ok(CHECK, "1 receiver is told"),
        (None, count) => Finding::ok(CHECK, format!("{count} receivers are told")),
    }
}

/// What the daemon knows to be wrong now; what the journal lacks is told without one, too.
fn troubles(paths: &Paths, about: Option<&About>) -> Vec<Finding> {
    let of_daemon = about.into_iter().flat_map(|about| about.health.troubles.clone());
    let of_daemon = of_daemon.filter(|trouble| trouble.kind != TroubleKind::JournalGap);
    let all = gaps(&paths.journal()).into_iter().chain(of_daemon);
    let finding = |Trouble { kind, what, advice }: Trouble| match kind {
        // The check of the journal says it, and that of the spool.
        TroubleKind::JournalUnwritable | TroubleKind::HooksDropped => None,
        TroubleKind::JournalGap => Some(Finding::bad("journal gap", what).advise(advice)),
        TroubleKind::JournalWrittenAnew => {
            Some(Finding::warn("journal place", what).advise(advice))
        }
        TroubleKind::WatchesExhausted => Some(Finding::warn("file watches", what).advise(advice)),
        TroubleKind::FewOpenFiles => Some(Finding::warn("open files", what).advise(advice)),
    };
    all.filter_map(finding).collect()
}

fn has_trouble(about: Option<&About>, kind: TroubleKind) -> bool {
    about.is_some_and(|about| about.health.troubles.iter().any(|trouble| trouble.kind == kind))
}

fn journal(about: &About) -> Finding {
    const CHECK: &str = "journal";
    let health = &about.health;
    match (&health.journal_error, health.dropped) {
        (Some(error), _) => Finding::bad(CHECK, format!("nothing can be written: {error}"))
            .advise("make room on the disk, or close the program that has the journal open; what agents report meanwhile waits in the spool"),
        (None, 0) => Finding::ok(CHECK, format!("{} sessions known", health.sessions)),
        (None, dropped) => {
            Finding::warn(CHECK, format!("{dropped} entries could not be written and are lost"))
                .advise("the daemon's log says which; please report it")
        }
    }
}
