//! What is left of the truth when sources are missing. The floors are those the product promises;
//! what is missed below 100 % cannot be told from the sources that are left.

use super::capture::captures;
use super::truth::score;

/// The share of rows with the right group, in percent.
fn right_groups(harness: &str, sources: &[&str]) -> f64 {
    let (mut checks, mut wrong) = (0, 0);
    for capture in captures().iter().filter(|capture| capture.name.starts_with(harness)) {
        let score = score(capture, sources);
        checks += score.checks;
        wrong += score.wrong_group.len();
        assert!(score.flicker.is_empty(), "flickers: {:#?}", score.flicker);
    }
    100.0 * f64::from(checks as u32 - wrong as u32) / f64::from(checks as u32)
}

#[test]
fn claude_code_by_hooks_and_transcripts() {
    assert!(right_groups("claude-code/", &["hook", "transcript"]) >= 100.0);
}

/// A dialog and a running tool look the same in a transcript.
#[test]
fn claude_code_by_transcripts_alone() {
    assert!(right_groups("claude-code/", &["transcript"]) >= 89.0);
}

#[test]
fn codex_by_rollouts_and_processes() {
    assert!(right_groups("codex/", &["transcript", "process"]) >= 100.0);
}

#[test]
fn codex_by_hooks_and_rollouts() {
    assert!(right_groups("codex/", &["hook", "transcript"]) >= 99.0);
}

#[test]
fn gemini_by_hooks_and_chat_files() {
    assert!(right_groups("gemini/", &["hook", "transcript"]) >= 100.0);
}
