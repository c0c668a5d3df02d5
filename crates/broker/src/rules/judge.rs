//! What policy says to the calls of an answer.

use qd_session::id::ToolName;
use qd_session::logbook::{Called, Logbook};
use qd_session::machine::{Judged, ToolCall, Verdict};
use qd_session::policy::{self, Asked, Effect, Layer, Policy, Preset, Tightening};

/// Our own tool that asks the operator: it never runs.
const ASK_USER: &str = "ask_user";

/// The rules of one session.
#[derive(Debug)]
pub struct Judge<'a> {
    pub policy: &'a Policy,
    pub logbook: &'a Logbook,
    pub tightening: &'a Tightening,
}

impl Judge<'_> {
    pub fn ruled(&self, called: &Called, mutating: &[ToolName]) -> Ruled {
        let Called { call_id, name, arguments } = called.clone();
        let said = match name.as_str() {
            ASK_USER => None,
            tool => Some(self.said(tool, &arguments.to_string())),
        };
        let verdict = said.as_ref().map_or(Verdict::Question, verdict);
        let mutating = mutating.contains(&name);
        Ruled {
            judged: Judged { call: ToolCall { call_id, name, arguments, mutating }, verdict },
            said,
        }
    }

    /// What happens where no rule says anything; a repository may have lowered it.
    pub fn preset(&self) -> Preset {
        let layer = Layer::with_preset(self.logbook.preset());
        let cwd = Some(&*self.logbook.brief().workspace);
        self.policy.effective(cwd, &layer, self.tightening).mode()
    }

    fn said(&self, tool: &str, input: &str) -> policy::Verdict {
        let layer = Layer::with_preset(self.logbook.preset());
        let cwd = Some(&*self.logbook.brief().workspace);
        let rules = self.policy.effective(cwd, &layer, self.tightening);
        rules.judge(&Asked { tool, input: Some(input), cwd, ..Asked::default() })
    }

    pub fn is_yolo_forbidden(&self) -> bool {
        let layer = Layer::default();
        self.policy.effective(None, &layer, self.tightening).is_yolo_forbidden()
    }
}

/// A call, and what the rules said to it; nothing of a question, which is the operator's.
#[derive(Debug)]
pub struct Ruled {
    pub judged: Judged,
    pub said: Option<policy::Verdict>,
}

fn verdict(said: &policy::Verdict) -> Verdict {
    match said.effect {
        Effect::Allow => Verdict::Allow,
        Effect::Ask => Verdict::Ask,
        Effect::Deny => {
            let why = said.message.as_ref().or(said.rule.as_ref()).unwrap_or(&said.why);
            Verdict::Deny(why.as_str().into())
        }
    }
}
