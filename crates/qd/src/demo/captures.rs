//! The recordings that the demo plays, in the program itself.

use qd_harness::Harness;
use qd_harness::capture::{Recorded, Scenario};
use qd_harness::replay::Replay;

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

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.signals.len() + self.scenario.len()
    }
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
