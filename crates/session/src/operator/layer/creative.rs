//! Creative work: drafts, revisions, feedback. Only in sessions that have touched no code.

use super::{Dress, Icon, Known};
use crate::deed::{FileKind, program, written};
use crate::operator::state::SubState;

pub fn dress(known: &Known<'_>) -> Option<Dress> {
    if known.monitor.work().is_some_and(|work| work.code.happened()) {
        return None;
    }
    let state = &known.state.state;
    if *state == SubState::ACTING {
        let file = written(known.tool()?, known.command()?)?;
        let name = program(file.path);
        return match (file.kind, file.is_change) {
            (FileKind::Code, _) => None,
            (FileKind::Prose, false) => Some(Dress::new(Icon::Draft, format!("Drafting {name}"))),
            (FileKind::Prose, true) => Some(Dress::new(Icon::Revision, format!("Revising {name}"))),
        };
    }
    let draft = &known.monitor.work()?.draft.as_ref()?.value;
    if !draft.is_written(known.monitor.main_agent()) {
        return None;
    }
    let name = program(&draft.path);
    // A question with a request of its own may be about anything.
    let asks = *state == SubState::AWAITING_INPUT && known.context("requestId").is_none();
    match (*state == SubState::TASK_COMPLETE, draft.is_change) {
        (true, false) => Some(Dress::new(Icon::Draft, format!("Draft ready: {name}"))),
        (true, true) => Some(Dress::new(Icon::Revision, format!("Revised {name}"))),
        (false, _) => asks.then(|| Dress::new(Icon::Feedback, format!("Wants feedback on {name}"))),
    }
}
