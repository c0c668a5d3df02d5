//! What is written to the client: an answer settles what it waits for, or begins a turn.

use qd_session::monitor::Fact;

use super::policy::Outcome;
use super::stream::{AskKind, Facts, Phase, Stream, main};
use super::wire::Line;
use crate::excerpt::{brief, ending};

impl Stream {
    /// A line written to the client. `None` if nobody knows what it is.
    pub fn told(&mut self, line: Line) -> Option<Facts> {
        let mut facts = Facts::new();
        match line.r#type.as_deref()? {
            "respondToApproval" => self.approved(line.approved.unwrap_or(false), &mut facts),
            "askResponse" => self.answered(&line, &mut facts),
            "newTask" => {
                self.echo = line.text.as_deref().map(ending);
                self.begin(line.text.as_deref(), &mut facts);
            }
            // The client says when it has happened: a mode by `modeChanged`, a stop by
            // `resume_task`, which may take as long as the command that runs.
            "setMode" | "cancelTask" => {}
            _ => return None,
        }
        Some(facts)
    }

    fn approved(&mut self, approved: bool, facts: &mut Facts) {
        let Some(open) = self.open.as_ref().filter(|open| open.kind == AskKind::Approval) else {
            return;
        };
        let (call, tool) = (open.ask.call.clone(), open.ask.tool.clone());
        let about = open.ask.text.as_deref().map(|text| brief(text, 200));
        if approved {
            self.begin_subtask(facts);
        }
        self.settle(Outcome::Answered, facts);
        match (approved, call, tool) {
            (true, Some(call), Some(tool)) => facts.extend(self.run(call, tool, about)),
            _ => facts.push(main(Fact::LlmStarted)),
        }
    }

    fn answered(&mut self, line: &Line, facts: &mut Facts) {
        let text = line.text.as_deref().filter(|text| !text.is_empty());
        let agreed = line.ask_response.as_deref() == Some("yesButtonClicked");
        let refused = line.ask_response.as_deref() == Some("noButtonClicked");
        match self.open.as_ref().map(|open| open.kind) {
            Some(AskKind::Approval) => return self.approved(agreed, facts),
            Some(AskKind::Question | AskKind::Plan) => {
                self.settle(Outcome::Answered, facts);
                facts.push(main(Fact::LlmStarted));
                return;
            }
            None => {}
        }
        match self.phase {
            Phase::Working if text.is_some() => {
                let text = text.map(|text| brief(text, 2_000));
                facts.push(main(Fact::UserPrompt { text }));
            }
            Phase::Failed if !refused => self.thinks(facts),
            Phase::Paused if !refused => self.begin(text, facts),
            Phase::Completed | Phase::Fresh if text.is_some() => self.begin(text, facts),
            Phase::Working | Phase::Failed | Phase::Paused | Phase::Completed | Phase::Fresh => {}
        }
    }
}
