//! What an answer or a command of the operator means to the machine of a driven session, and which
//! answers its agent cannot be given.

use std::sync::Arc;

use qd_harness::Harness;
use qd_session::decision::{Answer, Command, Decision, Scope};
use qd_session::id::CallId;
use qd_session::machine::{Event, PauseCause};
use qd_session::monitor::RequestKind;

/// What Cline asks for it asks nobody: it reads no answers.
pub const CLINE_CANNOT: &str = "Cline takes no answers; interrupt it, or let it work with yolo";

/// Why an agent that we drive cannot be given that answer: it would be lost on its way, or drop a
/// part of it.
pub fn unanswerable(harness: Harness, answer: &Decision) -> Option<&'static str> {
    let has_words = match answer {
        Decision::Deny { message, .. } => message.is_some(),
        Decision::RejectPlan { feedback } => feedback.is_some(),
        Decision::Allow { .. } | Decision::Answer { .. } | Decision::ApprovePlan { .. } => false,
    };
    let has_mode = matches!(answer, Decision::ApprovePlan { mode: Some(_) });
    let is_denial = matches!(answer, Decision::Deny { .. } | Decision::RejectPlan { .. });
    let is_changed = matches!(answer, Decision::Allow { input: Some(_), .. });
    match harness {
        Harness::Cline if !is_denial => Some(CLINE_CANNOT),
        _ if is_changed => Some("what its model asked for stands: it runs so, or not at all"),
        Harness::Codex if has_mode => Some("Codex goes on in the mode that it was begun in"),
        Harness::GeminiCli | Harness::KiloCode | Harness::Opencode | Harness::Acp if has_words => {
            Some("it is only told no, without words: deny it, and say them in the next prompt")
        }
        Harness::ClaudeCode
        | Harness::Codex
        | Harness::GeminiCli
        | Harness::KiloCode
        | Harness::Cline
        | Harness::Opencode
        | Harness::Acp
        | Harness::Native => None,
    }
}

/// What an answer to a request means to the machine; none where it cannot be given to one.
pub fn answer_events(kind: RequestKind, call: &CallId, answer: &Decision) -> Option<Vec<Event>> {
    let decided =
        |approved, message: Option<&String>, mode: Option<&String>| Event::ApprovalDecided {
            call: call.clone(),
            approved,
            message: message.map(|message| message.as_str().into()),
            mode: mode.map(|mode| mode.as_str().into()),
        };
    let is_permission = kind != RequestKind::Question;
    let events = match answer {
        // What the model has asked for stands in its conversation: nothing else can be run for it.
        Decision::Allow { input: Some(_), .. } => return None,
        // What else it may do unasked, its preset and policy.toml say.
        Decision::Allow { input: None, scope: Scope::Once } if is_permission => {
            vec![decided(true, None, None)]
        }
        Decision::Deny { message, interrupt } if is_permission => {
            let mut events = vec![decided(false, message.as_ref(), None)];
            events.extend(interrupt.then_some(Event::InterruptRequested));
            events
        }
        Decision::ApprovePlan { mode } if is_permission => {
            vec![decided(true, None, mode.as_ref())]
        }
        Decision::RejectPlan { feedback } if is_permission => {
            vec![decided(false, feedback.as_ref(), None)]
        }
        Decision::Answer { answers } if !is_permission => {
            let (call, text) = (call.clone(), spelled(answers));
            vec![Event::InputGiven { call, text, answers: answers.clone() }]
        }
        Decision::Allow { .. }
        | Decision::Deny { .. }
        | Decision::Answer { .. }
        | Decision::ApprovePlan { .. }
        | Decision::RejectPlan { .. } => return None,
    };
    Some(events)
}

/// One answer is its words; several say what they answer.
fn spelled(answers: &[Answer]) -> Arc<str> {
    match answers {
        [only] => only.values.join(", ").into(),
        several => {
            let line =
                |answer: &Answer| format!("{}: {}", answer.question, answer.values.join(", "));
            several.iter().map(line).collect::<Vec<_>>().join("\n").into()
        }
    }
}

/// What a command means to the machine, or why it means nothing.
pub fn command_event(command: &Command) -> Result<Event, &'static str> {
    match command {
        Command::Prompt { text } => Ok(Event::UserInput { text: text.as_str().into() }),
        Command::Interrupt => Ok(Event::InterruptRequested),
        Command::Stop => Ok(Event::StopRequested),
        Command::Resume => Ok(Event::ResumeRequested),
        Command::Pause => Ok(Event::PauseRequested { cause: PauseCause::Operator }),
        Command::Retry { target } => Ok(Event::RetryRequested { target: target.clone() }),
        Command::Yolo { on } => Ok(Event::YoloSwitched { on: *on }),
        Command::Focus => Err("it is driven from here and in no terminal"),
        Command::Policy { .. } => Err("its preset was chosen when it began; switch YOLO instead"),
        Command::Dismiss => Err("a dismissal is not carried anywhere"),
    }
}
