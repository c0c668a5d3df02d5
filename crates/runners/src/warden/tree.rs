//! The processes below one process.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::limits::TREE_DEPTH_MAX;

/// Kills whatever is below this process now. What is started meanwhile needs another round.
pub(super) fn kill_all_below(root: Pid) {
    let mut level = children(root);
    for _ in 0..TREE_DEPTH_MAX {
        if level.is_empty() {
            return;
        }
        let below = level.iter().flat_map(|pid| children(*pid)).collect();
        // A process of ours that has ended and is not reaped takes the signal, too; it cannot be
        // another's, since only its parent's reaping frees its number.
        level.iter().for_each(|pid| kill(*pid));
        level = below;
    }
}

/// Kills every process of a session in the kernel's sense, whose leader has ended.
pub(super) fn kill_session(leader: Pid) {
    let leader = leader.as_raw_nonzero().get();
    let members = all().filter(|pid| stat(*pid).is_some_and(|stat| stat.session == leader));
    members.for_each(kill);
}

fn kill(pid: Pid) {
    // It may have ended by itself.
    let _ = kill_process(pid, Signal::KILL);
}

fn children(of: Pid) -> Vec<Pid> {
    told(of).unwrap_or_else(|| {
        let parent = of.as_raw_nonzero().get();
        all().filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent)).collect()
    })
}

/// As the kernel tells it, where it was built to.
fn told(of: Pid) -> Option<Vec<Pid>> {
    let tasks = fs::read_dir(format!("/proc/{of}/task")).ok()?;
    let mut pids = Vec::new();
    for task in tasks.flatten() {
        let text = fs::read_to_string(task.path().join("children")).ok()?;
        pids.extend(text.split_ascii_whitespace().filter_map(pid));
    }
    Some(pids)
}

fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| pid(entry.file_name().to_str()?))
}

fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

struct Stat {
    parent: i32,
    session: i32,
}

fn stat(of: Pid) -> Option<Stat> {
    let text = fs::read(format!("/proc/{of}/stat")).ok()?;
    // The name stands in brackets and may hold anything.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let text = str::from_utf8(&text[end + 1..]).ok()?;
    let mut fields = text.split_ascii_whitespace().skip(1).map(str::parse);
    let parent = fields.next()?.ok()?;
    let session = fields.nth(1)?.ok()?;
    Some(Stat { parent, session })
}
