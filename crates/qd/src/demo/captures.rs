//! The recordings that the demo plays, in the program itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use qd_harness::Harness;
use qd_harness::capture::{Recorded, Scenario};
use qd_harness::replay::Replay;
use qd_session::id::RequestId;
use qd_session::monitor::Stage;

/// One recording of a real client.
#[derive(Debug)]
pub struct Embedded {
    pub name: &'static str,
    scenario: &'static str,
    signals: &'static str,
}

impl Embedded {
    pub fn harness(&self) -> Harness {
        let scenario = serde_json::from_str::<Scenario>(self.scenario);
        scenario.expect("the tests read every capture").harness
    }

    pub fn signals(&self) -> Vec<Recorded> {
        let lines = self.signals.lines().filter(|line| !line.trim().is_empty());
        let read = |line| serde_json::from_str(line).expect("the tests read every capture");
        lines.map(read).collect()
    }

    /// The sessions in it, by their agent's names.
    pub fn sessions(&self) -> Vec<String> {
        let mut replay = Replay::new(self.harness());
        for recorded in self.signals() {
            recorded.signal().map(|signal| replay.play(&signal));
        }
        replay.sessions().map(|(session, _)| session.to_string()).collect()
    }

    /// What each of its signals finds when its time comes. Gemini CLI takes no answer from
    /// outside, so nobody is waited for there.
    pub fn cues(&self) -> Vec<Cue> {
        let mut replay = Replay::new(self.harness());
        let takes_answers = self.harness() != Harness::GeminiCli;
        let cue = |recorded: &Recorded| {
            let Some(signal) = recorded.signal().filter(|_| takes_answers) else {
                return Cue::Unasked;
            };
            replay.run_until(signal.at);
            let before = asked(&replay);
            replay.play(&signal);
            match (before.is_empty(), before.is_subset(&asked(&replay))) {
                (true, _) => Cue::Unasked,
                (false, true) => Cue::Asked,
                (false, false) => Cue::Answers,
            }
        };
        self.signals().iter().map(cue).collect()
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.signals.len() + self.scenario.len()
    }
}

/// What a signal finds when its time comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cue {
    /// Nobody is asked anything.
    Unasked,
    /// The operator is asked, and still is after it.
    Asked,
    /// It tells that the operator has answered.
    Answers,
}

fn asked(replay: &Replay) -> BTreeSet<(Arc<str>, RequestId)> {
    let open = replay.sessions().flat_map(|(session, monitor)| {
        let waiting = monitor.open_requests().filter(|open| open.stage == Stage::Waiting);
        waiting.map(|open| (session.clone(), open.id.clone())).collect::<Vec<_>>()
    });
    open.collect()
}

macro_rules! embedded {
    ($($name:literal,)*) => {
        [$(Embedded {
            name: $name,
            scenario: include_str!(concat!("../../../harness/captured/", $name, "/scenario.json")),
            signals: include_str!(concat!("../../../harness/captured/", $name, "/signals.jsonl")),
        },)*]
    };
}

/// A permission, a question, a plan, an error, an interrupt; one or two of each client.
pub static CAPTURES: [Embedded; 9] = embedded![
    "claude-code/tui-permission-user-first",
    "claude-code/tui-ask-user-question",
    "claude-code/tui-plan-approved-by-permission-hook",
    "claude-code/tui-api-error-529",
    "codex/tui-approve",
    "codex/tui-interrupt",
    "gemini/interactive-permission",
    "opencode/approve",
    "kilo-legacy/json-io-followup",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_waits_where_its_operator_was_asked() {
        let waits = CAPTURES.iter().map(|capture| {
            let cues = capture.cues();
            (capture.name, cues.into_iter().filter(|cue| *cue == Cue::Answers).count())
        });
        assert_eq!(
            waits.collect::<Vec<_>>(),
            [
                ("claude-code/tui-permission-user-first", 1),
                ("claude-code/tui-ask-user-question", 1),
                ("claude-code/tui-plan-approved-by-permission-hook", 1),
                ("claude-code/tui-api-error-529", 0),
                ("codex/tui-approve", 1),
                ("codex/tui-interrupt", 0),
                ("gemini/interactive-permission", 0),
                ("opencode/approve", 2),
                ("kilo-legacy/json-io-followup", 1),
            ]
        );
    }
}
