//! Dialogs: what the client shows a person and waits for.

use qd_session::id::{CallId, RequestId, ToolName};
use qd_session::monitor::{Ask, Fact, Stage};

use super::session::Session;
use crate::outbox::Outbox;

/// Most requests that could not be tied to a call.
const LOOSE_MAX: usize = 16;

/// What kind of answer a dialog wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialog {
    Permission,
    Question,
    Plan,
}

impl Dialog {
    fn name(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Plan => "plan",
        }
    }
}

impl Session {
    /// Something waits for a person. Tied to its call, if that is known.
    pub fn ask(&mut self, dialog: Dialog, call: Option<&CallId>, ask: Ask, out: &mut Outbox) {
        self.work(out.at());
        let request = match call {
            Some(call) => RequestId::new(format!("{}:{call}", dialog.name())),
            None => RequestId::new(format!("{}@{}", dialog.name(), out.at().0)),
        };
        if call.is_none() && self.loose.len() < LOOSE_MAX {
            self.loose.push(request.clone());
        }
        out.tell(match dialog {
            Dialog::Permission => Fact::ApprovalRequested { request, stage: Stage::Waiting, ask },
            Dialog::Question => Fact::QuestionAsked { request, ask },
            Dialog::Plan => Fact::PlanProposed { request, ask },
        });
    }

    /// Requests without a call are over when any tool has ended: the client asks one at a time.
    pub fn resolve_loose(&mut self, out: &mut Outbox) {
        for request in std::mem::take(&mut self.loose) {
            out.tell(Fact::ApprovalResolved { request });
        }
    }

    /// Policy has not approved the plan by now.
    pub fn plan_waits(&mut self, call: &CallId, out: &mut Outbox) {
        let Some(open) = self.calls.by_id(call).filter(|call| !call.ended) else { return };
        let tool = Some(ToolName::new(open.tool.as_str()));
        let ask = Ask { call: Some(call.clone()), tool, ..Ask::default() };
        self.ask(Dialog::Plan, Some(call), ask, out);
    }
}
