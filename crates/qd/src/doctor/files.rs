//! Our own files: who may read them, the socket, the spool.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use qd_host::layers_file::LayersFile;
use qd_host::policy_file::PolicyFile;
use qd_session::operator::layer::Trouble;
use qd_sources::hook_intake::{Losses, Spool};

use super::finding::{Finding, Repair};
use crate::paths::Paths;

/// Files of the state folder that are looked at. It holds a dozen, and the spool's.
const FILES_MAX: usize = 50_000;

/// A file that was set aside is evidence for that long.
const ASIDE_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A hook that waits longer than this while a daemon runs is stuck.
const SPOOL_WAIT_MAX: Duration = Duration::from_secs(60);

/// Only this user may look into the state folder.
pub fn rights(paths: &Paths) -> Vec<Finding> {
    const CHECK: &str = "state folder";
    let folder = &paths.state;
    let found = match fs::symlink_metadata(folder) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return vec![Finding::ok(CHECK, format!("{} is not there yet", folder.display()))];
        }
        Err(error) => return vec![Finding::bad(CHECK, format!("{}: {error}", folder.display()))],
    };
    if found.uid() != rustix::process::geteuid().as_raw() {
        let reason = format!("{} belongs to another user", folder.display());
        return vec![Finding::bad(CHECK, reason).advise("move it away, or set XDG_STATE_HOME")];
    }
    let mut open = Vec::new();
    look(folder, found, &mut open, &mut FILES_MAX.clone());
    if open.is_empty() {
        return vec![Finding::ok(CHECK, format!("{}, for this user only", folder.display()))];
    }
    let name = open[0].0.display().to_string();
    let more = match open.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    // Behind a closed folder nobody reaches an open file.
    let reason = format!("others may read {name}{more}");
    let finding = match open.iter().any(|(path, _)| path == folder) {
        true => Finding::bad(CHECK, reason),
        false => Finding::warn(CHECK, reason),
    };
    let repair = |(path, mode)| Repair::Protect { path, mode };
    vec![finding.repairable(open.into_iter().map(repair).collect())]
}

/// What below it others have rights to, and which rights it should have. Follows no link.
fn look(path: &Path, found: Metadata, open: &mut Vec<(PathBuf, u32)>, left: &mut usize) {
    if *left == 0 || found.file_type().is_symlink() {
        return;
    }
    *left -= 1;
    if found.permissions().mode() & 0o077 != 0 {
        open.push((path.to_owned(), if found.is_dir() { 0o700 } else { 0o600 }));
    }
    if found.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            // A file may go while we look.
            if let Ok(found) = fs::symlink_metadata(entry.path()) {
                look(&entry.path(), found, open, left);
            }
        }
    }
}

/// The socket is ours, closed to others, and somebody listens.
pub fn socket(path: &Path) -> Finding {
    const CHECK: &str = "socket";
    let place = path.display();
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Finding::ok(CHECK, format!("{place} is not there, as no daemon runs"));
        }
        Err(error) => return Finding::bad(CHECK, format!("{place}: {error}")),
    };
    if !found.file_type().is_socket() {
        let finding = Finding::bad(CHECK, format!("{place} is another kind of file"));
        return finding.advise("move it away");
    }
    if let Err(error) = UnixStream::connect(path)
        && error.kind() == ErrorKind::ConnectionRefused
    {
        let finding = Finding::warn(CHECK, format!("nobody listens at {place} any more"));
        return finding.repairable(vec![Repair::Remove(path.to_owned())]);
    }
    if found.permissions().mode() & 0o077 != 0 {
        let repair = Repair::Protect { path: path.to_owned(), mode: 0o600 };
        return Finding::bad(CHECK, format!("others may open {place}")).repairable(vec![repair]);
    }
    Finding::ok(CHECK, place.to_string())
}

/// The operator's domain layers: each part that cannot be used. The core's labels show there.
pub fn layers(paths: &Paths) -> Vec<Finding> {
    const CHECK: &str = "layers";
    let path = paths.layers();
    let LayersFile { layers, troubles } = LayersFile::read(&path, &paths.home);
    let place = path.display();
    if troubles.is_empty() {
        let reason = match path.exists() {
            true => format!("{place}, rules: {}", layers.rules_len()),
            false => "the built-in ones".to_owned(),
        };
        return vec![Finding::ok(CHECK, reason)];
    }
    let trouble = |trouble: &Trouble| {
        let reason = format!("{place}, {}: {}", trouble.place, trouble.what);
        Finding::warn(CHECK, reason).advise("labels of the core show there; see docs/layers.md")
    };
    troubles.iter().map(trouble).collect()
}

/// The operator's policy: each part that cannot be used. Nothing is allowed by itself until then.
pub fn policy(paths: &Paths) -> Vec<Finding> {
    const CHECK: &str = "policy";
    let path = paths.policy();
    let PolicyFile { policy, troubles } = PolicyFile::read(&path, &paths.home);
    let place = path.display();
    if troubles.is_empty() {
        let reason = match path.exists() {
            true => format!("{place}, rules: {}", policy.rules_len()),
            false => "none: everything is asked".to_owned(),
        };
        return vec![Finding::ok(CHECK, reason)];
    }
    let finding = |place: String, what: &str| {
        let advice = "until it is repaired, less is allowed by itself; see docs/policy.md";
        Finding::bad(CHECK, format!("{place}: {what}")).advise(advice)
    };
    let told = troubles.iter().map(|one| finding(format!("{place}, {}", one.place), &one.what));
    told.collect()
}

/// What waits, what was lost, and what was no hook at all.
pub fn spool(paths: &Paths, daemon_runs: bool) -> Vec<Finding> {
    let folder = paths.state.join("spool");
    let is_closed = |found: Metadata| found.permissions().mode() & 0o077 == 0;
    // Opening it would change its rights; those are another check's.
    if !fs::symlink_metadata(&folder).is_ok_and(is_closed) {
        return Vec::new();
    }
    let mut findings = vec![backlog(&folder, daemon_runs)];
    findings.extend(match Spool::open(&folder).and_then(|spool| spool.losses()) {
        Ok(losses) => lost(losses),
        Err(error) => Some(Finding::bad("spool", error.to_string())),
    });
    findings.extend(set_aside(&folder.join("aside")));
    findings
}

fn backlog(folder: &Path, daemon_runs: bool) -> Finding {
    const CHECK: &str = "spool";
    let ages = ages(folder, "frame");
    let stuck = ages.iter().filter(|(_, age)| *age > SPOOL_WAIT_MAX).count();
    match (ages.len(), daemon_runs) {
        (0, _) => Finding::ok(CHECK, "empty"),
        (waiting, false) => Finding::warn(CHECK, format!("{waiting} hooks wait for a daemon")),
        (waiting, true) if stuck == 0 => {
            Finding::ok(CHECK, format!("{waiting} hooks on their way"))
        }
        (_, true) => Finding::bad(CHECK, format!("{stuck} hooks wait although a daemon runs"))
            .advise("the daemon's log says why; see also the check of the journal"),
    }
}

fn lost(losses: Losses) -> Option<Finding> {
    let Losses { superseded, full, unwritable } = losses;
    let reason = format!(
        "{superseded} hooks were dropped from a full spool because newer ones of their sessions were \
         in it, {full} because nothing else could be dropped, {unwritable} because the spool could \
         not be written"
    );
    let finding = Finding::warn("lost hooks", reason);
    (losses.count() > 0).then(|| finding.advise("run the daemon always: `qd service install`"))
}

fn set_aside(folder: &Path) -> Option<Finding> {
    let files = ages(folder, "");
    let old = files.iter().filter(|(_, age)| *age > ASIDE_KEPT);
    let old: Vec<Repair> = old.map(|(path, _)| Repair::Remove(path.clone())).collect();
    let reason = format!("{} files in {} are no hooks", files.len(), folder.display());
    let finding = Finding::warn("set aside", reason);
    match (files.is_empty(), old.is_empty()) {
        (true, _) => None,
        (false, true) => Some(finding.advise("evidence of a fault: please report it")),
        (false, false) => Some(finding.repairable(old)),
    }
}

/// The plain files of a folder that end so, and how old they are.
fn ages(folder: &Path, ending: &str) -> Vec<(PathBuf, Duration)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    let plain = entries.filter_map(|entry| {
        let path = entry.path();
        let found = fs::symlink_metadata(&path).ok().filter(Metadata::is_file)?;
        let age = SystemTime::now().duration_since(found.modified().ok()?).unwrap_or_default();
        path.to_string_lossy().ends_with(ending).then_some((path, age))
    });
    plain.collect()
}
