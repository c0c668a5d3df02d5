//! What is known to hold at a moment must be shown at that moment, or a grace later; and what
//! waits for the operator must still wait when the next thing is known.

use super::capture::{Capture, Known, Shown, captures, group, shown};

/// How long signals may take to arrive.
const GRACE_MS: u64 = 500;

/// The groups and sub-states that are true of a known state.
fn accepted(state: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match state {
        "needs_permission" => (&["needs_you"], &["needs_permission"]),
        "awaiting_input" => (&["needs_you"], &["awaiting_input"]),
        "awaiting_approval" => (&["needs_you"], &["awaiting_approval"]),
        "error" => (&["needs_you"], &["error", "usage_limit", "auth_error", "server_error"]),
        "interrupted" => (&["needs_you"], &["interrupted", "idle"]),
        "idle" => (
            &["needs_you", "delivered"],
            &["idle", "task_complete", "awaiting_input", "awaiting_approval", "interrupted"],
        ),
        "thinking" => (
            &["autonomous"],
            &["thinking", "acting", "delegating", "retrying", "starting", "hooks"],
        ),
        "acting" => (&["autonomous"], &["acting", "delegating", "hooks"]),
        "delegating" => (&["autonomous"], &["delegating", "acting"]),
        "compacting" => (&["autonomous"], &["compacting"]),
        "session_ended" => (&["delivered"], &["session_ended"]),
        other => panic!("no known state is called {other:?}"),
    }
}

/// A row to be checked: at its time, or still shortly before the next one.
struct Check<'a> {
    at_ms: u64,
    known: &'a Known,
    still: bool,
}

fn checks<'a>(rows: &'a [&'a Known]) -> Vec<Check<'a>> {
    let waits =
        |state: &str| matches!(state, "needs_permission" | "awaiting_input" | "awaiting_approval");
    let mut checks = Vec::new();
    for (nth, known) in rows.iter().enumerate().filter(|(_, known)| !known.brief) {
        checks.push(Check { at_ms: known.at_ms, known, still: false });
        if let Some(next) = rows.get(nth + 1)
            && waits(&known.state)
            && next.at_ms - known.at_ms > 2 * GRACE_MS
        {
            checks.push(Check { at_ms: next.at_ms - GRACE_MS, known, still: true });
        }
    }
    checks.sort_by_key(|check| check.at_ms);
    checks
}

/// How many rows were checked, and what was wrong.
pub struct Score {
    pub checks: usize,
    pub wrong_group: Vec<String>,
    pub wrong_state: Vec<String>,
    pub flicker: Vec<String>,
}

pub fn score(capture: &Capture, sources: &[&str]) -> Score {
    let wanted = |source: &str| sources.is_empty() || sources.contains(&source);
    let signals: Vec<_> =
        capture.signals.iter().filter(|recorded| wanted(recorded.source())).collect();
    let shown = shown(&capture.play(&signals));
    let mut score = Score { checks: 0, wrong_group: vec![], wrong_state: vec![], flicker: vec![] };
    let mut sessions: Vec<Option<&str>> =
        capture.truth.iter().map(|known| known.session.as_deref()).collect();
    sessions.sort_unstable();
    sessions.dedup();
    for session in sessions {
        let mut rows: Vec<&Known> =
            capture.truth.iter().filter(|known| known.session.as_deref() == session).collect();
        rows.sort_by_key(|known| known.at_ms);
        let of_session = shown
            .iter()
            .filter(|(id, _)| id.ends_with(session.unwrap_or_default()))
            .map(|(_, states)| states.as_slice())
            .max_by_key(|states| states.len())
            .unwrap_or_default();
        check_rows(capture, &rows, of_session, &mut score);
        check_flicker(capture, &rows, of_session, &mut score);
    }
    score
}

fn check_rows(capture: &Capture, rows: &[&Known], states: &[Shown], score: &mut Score) {
    let checks = checks(rows);
    for (nth, check) in checks.iter().enumerate() {
        let mut end = check.at_ms + if check.still { 0 } else { GRACE_MS };
        if let Some(next) = checks.get(nth + 1) {
            end = end.min(check.at_ms.max(next.at_ms - 1));
        }
        let before = states.iter().rfind(|one| one.at_ms <= check.at_ms);
        let later = states.iter().filter(|one| check.at_ms < one.at_ms && one.at_ms <= end);
        let held: Vec<&Shown> = before.into_iter().chain(later).collect();
        let (groups, names) = accepted(&check.known.state);
        let right_group = |one: &&&Shown| groups.contains(&group(&one.state).as_str());
        let right_state = |one: &&&Shown| check.still || names.contains(&one.state.state.as_str());
        score.checks += 1;
        let wrong = || {
            let held: Vec<_> = held.iter().map(|one| super::capture::spelled(&one.state)).collect();
            format!("{} at {}: is {}, shown {held:?}", capture.name, check.at_ms, check.known.state)
        };
        if !held.iter().any(|one| right_group(&one)) {
            score.wrong_group.push(wrong());
        }
        if !held.iter().any(|one| right_group(&one) && right_state(&one)) {
            score.wrong_state.push(wrong());
        }
    }
}

/// A group left and come back to within the grace, where nothing known explains it.
fn check_flicker(capture: &Capture, rows: &[&Known], states: &[Shown], score: &mut Score) {
    let mut changes: Vec<&Shown> = Vec::new();
    for one in states {
        if changes.last().is_none_or(|last| last.state.group != one.state.group) {
            changes.push(one);
        }
    }
    for three in changes.windows(3) {
        let [before, between, after] = three else { unreachable!("windows of three") };
        let brief = after.at_ms - between.at_ms < GRACE_MS;
        let came_back = before.state.group == after.state.group;
        let explained = rows.iter().any(|known| {
            between.at_ms.saturating_sub(GRACE_MS) <= known.at_ms
                && known.at_ms <= after.at_ms
                && accepted(&known.state).0.contains(&group(&between.state).as_str())
        });
        if brief && came_back && !explained {
            score.flicker.push(format!("{} at {}", capture.name, between.at_ms));
        }
    }
}

#[test]
fn every_known_state_is_shown_and_nothing_flickers() {
    let mut checks = 0;
    for capture in captures() {
        let score = score(&capture, &[]);
        checks += score.checks;
        assert!(score.wrong_state.is_empty(), "{:#?}", score.wrong_state);
        assert!(score.flicker.is_empty(), "flickers: {:#?}", score.flicker);
    }
    assert!(checks > 600, "only {checks} rows were checked");
}
