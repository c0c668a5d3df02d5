//! What is known to hold at a moment must be shown at that moment, or a grace later; and what
//! waits for the operator must still wait when the next thing is known.

use std::collections::BTreeMap;

use qd_harness::capture::Recorded;
use qd_session::operator::AgentState;

use super::capture::{Capture, Known, Shown, captures, group, shown, some_only};

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

/// Somebody is waited for.
fn waits(state: &str) -> bool {
    matches!(state, "needs_permission" | "awaiting_input" | "awaiting_approval")
}

/// A row to be checked: at its time, or still shortly before the next one.
struct Check<'a> {
    at_ms: u64,
    known: &'a Known,
    still: bool,
}

/// What is brief may be over before anybody could be told, unless a row says more than that and
/// nobody is missing who tells.
fn checks<'a>(rows: &'a [&'a Known], whole: bool) -> Vec<Check<'a>> {
    let is_told = |known: &Known| !known.brief || (whole && known.exactly.is_some());
    let mut checks = Vec::new();
    for (nth, known) in rows.iter().enumerate().filter(|(_, known)| is_told(known)) {
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
#[derive(Default)]
pub struct Score {
    pub checks: usize,
    pub wrong_group: Vec<String>,
    pub wrong_state: Vec<String>,
    pub flicker: Vec<String>,
    /// People called for what nobody was to be asked.
    pub false_cards: Vec<String>,
    /// Sessions shown that are none.
    pub strangers: Vec<String>,
    /// Every source was heard.
    whole: bool,
}

impl Score {
    /// Whatever an operator would have been told wrongly.
    pub fn untrue(self) -> impl Iterator<Item = String> {
        let shown = self.flicker.into_iter().chain(self.false_cards).chain(self.strangers);
        self.wrong_state.into_iter().chain(shown)
    }
}

pub fn score(capture: &Capture, sources: &[&str]) -> Score {
    let wanted = |source: &str| sources.is_empty() || sources.contains(&source);
    let signals: Vec<_> =
        capture.signals.iter().filter(|recorded| wanted(recorded.source())).collect();
    score_signals(capture, &signals, sources.is_empty())
}

/// The same for signals that were doubled or swapped on their way.
pub fn score_of(capture: &Capture, signals: &[&Recorded]) -> Score {
    score_signals(capture, signals, true)
}

fn score_signals(capture: &Capture, signals: &[&Recorded], whole: bool) -> Score {
    let shown = shown(&capture.play(signals));
    let mut score = Score { whole, ..Score::default() };
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
        check_cards(capture, &rows, of_session, &mut score);
    }
    score.strangers = strangers(capture, &shown);
    score
}

/// Sessions that were shown and are none: one that several sources told of is one.
fn strangers(capture: &Capture, shown: &BTreeMap<String, Vec<Shown>>) -> Vec<String> {
    let named: Vec<&str> =
        capture.truth.iter().filter_map(|known| known.session.as_deref()).collect();
    let is_stranger = |id: &&String| match named.as_slice() {
        // Its clients give their sessions no names; then it is about one.
        [] => shown.len() > 1,
        named => !named.iter().any(|session| id.ends_with(session)),
    };
    let strangers = shown.keys().filter(is_stranger);
    strangers.map(|id| format!("{}: there is no session {id}", capture.name)).collect()
}

fn check_rows(capture: &Capture, rows: &[&Known], states: &[Shown], score: &mut Score) {
    let checks = checks(rows, score.whole);
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
        let right_state = |one: &&&Shown| match (&check.known.exactly, one.state.state.as_str()) {
            _ if check.still => true,
            (Some(exactly), shown) => {
                exactly == shown && resets_at(&one.state) == check.known.resets_at
            }
            (None, shown) => names.contains(&shown),
        };
        score.checks += 1;
        let wrong = || {
            let held: Vec<_> = held.iter().map(|one| super::capture::spelled(&one.state)).collect();
            let known = check.known.exactly.as_ref().unwrap_or(&check.known.state);
            format!("{} at {}: is {known}, shown {held:?}", capture.name, check.at_ms)
        };
        if !held.iter().any(|one| right_group(&one)) {
            score.wrong_group.push(wrong());
        }
        if !held.iter().any(|one| right_group(&one) && right_state(&one)) {
            score.wrong_state.push(wrong());
        }
    }
}

fn resets_at(state: &AgentState) -> Option<u64> {
    state.context.as_ref()?.get("resetsAt")?.as_u64()
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
            score.flicker.push(format!("{} at {}: flickers", capture.name, between.at_ms));
        }
    }
}

/// A person called, while no row says that anything waited for one.
fn check_cards(capture: &Capture, rows: &[&Known], states: &[Shown], score: &mut Score) {
    let mut spans = states.chunk_by(|a, b| a.state.state == b.state.state).peekable();
    while let Some(span) = spans.next() {
        let (state, from) = (span[0].state.state.as_str(), span[0].at_ms);
        let until = spans.peek().map_or(u64::MAX, |next| next[0].at_ms);
        let explained = rows.iter().any(|known| {
            from <= known.at_ms + GRACE_MS
                && known.at_ms <= until.saturating_add(GRACE_MS)
                && accepted(&known.state).1.contains(&state)
        });
        if waits(state) && !explained {
            score.false_cards.push(format!("{} at {from}: calls for nothing", capture.name));
        }
    }
}

#[test]
fn every_known_state_is_shown_and_nothing_else() {
    let (mut checks, mut wrong) = (0, Vec::new());
    for capture in captures() {
        let score = score(&capture, &[]);
        checks += score.checks;
        wrong.extend(score.untrue());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checks > 600 || some_only(), "only {checks} rows were checked");
}
