//! What is left of the truth when sources are missing. The floors are those the product promises;
//! what is missed below 100 % cannot be told from the sources that are left.

use super::capture::{captures, some_only};
use super::truth::score;

/// Demands that so many rows in a hundred have the right group and that nothing flickers. Of
/// captures that were picked, every row.
fn right_groups(harness: &str, sources: &[&str], floor: f64) {
    right_groups_except(&[], harness, sources, floor);
}

/// The same, without captures whose names begin so: they are about what other sources tell.
fn right_groups_except(others: &[&str], harness: &str, sources: &[&str], floor: f64) {
    let (mut checks, mut wrong, mut flicker, mut cards) = (0_u32, vec![], vec![], vec![]);
    let is_meant = |name: &str| {
        let is_other = others.iter().any(|other| name.starts_with(other)) && !some_only();
        name.starts_with(harness) && !is_other
    };
    for capture in captures().iter().filter(|capture| is_meant(&capture.name)) {
        let score = score(capture, sources);
        checks += score.checks as u32;
        wrong.extend(score.wrong_group);
        flicker.extend(score.flicker);
        cards.extend(score.false_cards);
    }
    let right = 100.0 * f64::from(checks - wrong.len() as u32) / f64::from(checks.max(1));
    let floor = if some_only() { 100.0 } else { floor };
    println!("{harness} by {sources:?}: {right:.1} %, calling for nothing: {cards:?}");
    if some_only() {
        // A hook that takes its time looks like a person who does.
        flicker.extend(cards);
    }
    assert!(right >= floor && flicker.is_empty(), "{right:.1} %: {wrong:#?} {flicker:#?}");
}

/// That a process was killed is in neither, nor that the person runs a command of their own.
#[test]
fn claude_code_by_hooks_and_transcripts() {
    let others = [
        "claude-code/hard-background-worker-killed",
        "claude-code/hard-shell-command-and-panels",
        "claude-code/hard-two-terminals-dialog-other-killed",
    ];
    right_groups_except(&others, "claude-code/", &["hook", "transcript"], 100.0);
}

/// A dialog and a running tool look the same in a transcript, and so do two processes.
#[test]
fn claude_code_by_transcripts_alone() {
    right_groups_except(&["claude-code/hard-"], "claude-code/", &["transcript"], 89.0);
}

/// Before any hook is installed. The recordings hold few of the registry's states: it was read
/// only when something else was looked at.
#[test]
fn claude_code_by_registry_and_transcripts() {
    right_groups("claude-code/", &["registry", "transcript"], 93.0);
}

/// Where a managed policy asks about a command, no rollout tells.
#[test]
fn codex_by_rollouts_and_processes() {
    right_groups("codex/", &["transcript", "process"], 99.0);
}

#[test]
fn codex_by_hooks_and_rollouts() {
    right_groups("codex/", &["hook", "transcript"], 99.0);
}

/// A run without a terminal rests for a tenth of a second before it ends. Without its output that
/// looks as if another hook sent it on.
#[test]
fn gemini_by_hooks_and_chat_files() {
    right_groups("gemini/", &["hook", "transcript"], 92.0);
}
