//! A line of Kilo's stream as an input of the manager view.

use qd_session::view::manager::{Input, ManagerState};

use super::wire::{Line, Message, Word, parse};
use crate::signal::Direction;

/// What a line means to the manager view in this state; `None` if nothing. Reprints and doubles
/// mean what they say: the view is told only what the handler has found to be new.
pub fn manager_input(payload: &[u8], direction: Direction, state: ManagerState) -> Option<Input> {
    let line = parse(payload)?;
    match direction {
        Direction::ToAgent => commanded(&line, state),
        Direction::FromAgent => heard(line),
    }
}

fn heard(line: Line) -> Option<Input> {
    if line.event_name() == Some("session_created") {
        return Some(Input::SessionCreated);
    }
    if line.r#type.as_deref() == Some("welcome") {
        let refused = !line.welcome()?.instructions.is_empty();
        return refused.then_some(Input::WelcomeWithInstructions);
    }
    let message = line.into_message()?;
    match &message.word {
        Word::Say(word) => said(word, &message),
        Word::Ask(word) => asked(word, message.partial),
    }
}

fn said(word: &str, message: &Message) -> Option<Input> {
    let partial = message.partial;
    match word {
        // The copy with the tokens is no new request.
        "api_req_started" => (!message.request().has_usage()).then_some(Input::ApiReqStarted),
        "api_req_retried" => Some(Input::ApiReqRetried),
        "text" => Some(Input::SayText { partial }),
        "completion_result" => Some(Input::SayCompletionResult { partial }),
        "checkpoint_saved" => Some(Input::SayCheckpointSaved),
        _ => None,
    }
}

fn asked(word: &str, partial: bool) -> Option<Input> {
    Some(match word {
        "tool" => Input::AskTool { partial },
        "command" => Input::AskCommand { partial },
        "followup" => Input::AskFollowup { partial },
        "completion_result" => Input::AskCompletionResult { partial },
        "api_req_failed" => Input::AskApiReqFailed { partial },
        "resume_task" => Input::AskResumeTask { partial },
        "resume_completed_task" => Input::AskResumeCompletedTask { partial },
        "mistake_limit_reached" => Input::AskMistakeLimitReached { partial },
        "payment_required_prompt" => Input::AskPaymentRequiredPrompt { partial },
        "invalid_model" => Input::AskInvalidModel { partial },
        "browser_action_launch" => Input::AskBrowserActionLaunch { partial },
        "use_mcp_server" => Input::AskUseMcpServer { partial },
        _ => return None,
    })
}

/// One word of the client's answers several asks, so the state tells which command it was.
fn commanded(line: &Line, state: ManagerState) -> Option<Input> {
    let approves = |yes: bool| if yes { Input::ApproveAction } else { Input::RejectAction };
    match line.r#type.as_deref()? {
        "newTask" => Some(Input::StartSession),
        "cancelTask" => Some(Input::CancelSession),
        "respondToApproval" => Some(approves(line.approved.unwrap_or(false))),
        "askResponse" => Some(match state {
            ManagerState::Error => Input::Retry,
            ManagerState::Paused | ManagerState::Stopped => Input::ResumeSession,
            ManagerState::WaitingApproval => {
                approves(line.ask_response.as_deref() == Some("yesButtonClicked"))
            }
            ManagerState::Idle
            | ManagerState::Creating
            | ManagerState::Streaming
            | ManagerState::WaitingInput
            | ManagerState::Completed => Input::SendMessage,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use qd_session::moment::Timestamp;
    use qd_session::view::manager::ManagerView;

    use super::*;

    const REQUEST: &str = r#"out {"timestamp":3,"source":"extension","type":"say","say":"api_req_started","metadata":{"apiProtocol":"openai"}}"#;
    const CREATED: &str = r#"out {"event":"session_created","sessionId":"s","timestamp":2}"#;

    /// Plays lines (`out …` and `in …`, and `start`, `exit N`, `broken`, `resume`) one second
    /// apart and compares the state after the last.
    fn check(lines: &[&str], expected: ManagerState) {
        let mut view = ManagerView::default();
        let mut now = Timestamp(1_000);
        for line in lines {
            now = now.plus_ms(1_000);
            let (what, payload) = line.split_once(' ').unwrap_or((line, ""));
            let input = match what {
                "start" => Some(Input::StartSession),
                "resume" => Some(Input::ResumeSession),
                "broken" => Some(Input::ProcessError),
                "wait" => Some(Input::Timer),
                "exit" => Some(Input::ProcessExit { code: payload.parse().expect("a code") }),
                "in" => manager_input(payload.as_bytes(), Direction::ToAgent, view.state(now)),
                _ => manager_input(payload.as_bytes(), Direction::FromAgent, view.state(now)),
            };
            if let Some(input) = input {
                view.apply(now, input);
            }
        }
        assert_eq!(view.state(now), expected, "after {lines:?}");
    }

    fn ask(word: &str, partial: bool) -> String {
        format!(r#"out {{"timestamp":9,"type":"ask","ask":"{word}","partial":{partial}}}"#)
    }

    /// Lines that lead to a state.
    fn to(state: ManagerState) -> Vec<String> {
        let streaming = || vec!["start".to_owned(), CREATED.to_owned(), REQUEST.to_owned()];
        let after = |last: String| {
            let mut lines = streaming();
            lines.push(last);
            lines
        };
        match state {
            ManagerState::Idle => Vec::new(),
            ManagerState::Creating => vec!["start".to_owned()],
            ManagerState::Streaming => streaming(),
            ManagerState::WaitingApproval => after(ask("tool", false)),
            ManagerState::WaitingInput => after(ask("followup", false)),
            ManagerState::Completed => after(ask("completion_result", false)),
            ManagerState::Paused => after(ask("resume_task", false)),
            ManagerState::Error => after(ask("api_req_failed", false)),
            ManagerState::Stopped => after(r#"in {"type":"cancelTask"}"#.to_owned()),
        }
    }

    fn row(from: ManagerState, line: &str, expected: ManagerState) {
        let mut lines = to(from);
        lines.push(line.to_owned());
        check(&lines.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn all_rows_are_driven_by_kilos_own_messages() {
        use ManagerState::{
            Completed, Creating, Error, Idle, Paused, Stopped, Streaming, WaitingApproval,
            WaitingInput,
        };
        let message = r#"in {"type":"askResponse","askResponse":"messageResponse","text":"go"}"#;
        let yes = r#"in {"type":"askResponse","askResponse":"yesButtonClicked"}"#;
        let cancel = r#"in {"type":"cancelTask"}"#;
        let new_task = r#"in {"type":"newTask","text":"go"}"#;
        let approve = r#"in {"type":"respondToApproval","approved":true}"#;
        let reject = r#"in {"type":"respondToApproval","approved":false}"#;
        let partial_text = r#"out {"timestamp":9,"type":"say","say":"text","partial":true}"#;
        let text = r#"out {"timestamp":9,"type":"say","say":"text","partial":false}"#;

        row(Idle, "start", Creating);
        check(&["start", REQUEST, CREATED], Streaming);
        row(Creating, CREATED, Creating);
        row(Creating, REQUEST, Creating);
        row(Creating, "broken", Error);
        row(Streaming, partial_text, Streaming);
        row(Streaming, text, Streaming);
        row(Streaming, &ask("tool", true), Streaming);
        for word in ["tool", "command", "browser_action_launch", "use_mcp_server"] {
            row(Streaming, &ask(word, false), WaitingApproval);
        }
        row(Streaming, &ask("followup", false), WaitingInput);
        row(Streaming, &ask("completion_result", false), Completed);
        let failures =
            ["api_req_failed", "mistake_limit_reached", "payment_required_prompt", "invalid_model"];
        for word in failures {
            row(Streaming, &ask(word, false), Error);
        }
        for word in ["resume_task", "resume_completed_task"] {
            row(Streaming, &ask(word, false), Paused);
        }
        row(Streaming, cancel, Stopped);
        row(WaitingApproval, approve, Streaming);
        row(WaitingApproval, reject, Streaming);
        row(WaitingApproval, REQUEST, Streaming);
        row(WaitingApproval, cancel, Stopped);
        row(WaitingInput, message, Streaming);
        row(WaitingInput, cancel, Stopped);
        row(Completed, message, Streaming);
        row(Completed, new_task, Creating);
        row(Paused, message, Streaming);
        row(Paused, cancel, Stopped);
        row(Error, yes, Streaming);
        row(Error, cancel, Stopped);
        row(Stopped, "resume", Streaming);
        row(Stopped, new_task, Creating);
        for from in ManagerState::ALL {
            row(from, "exit 143", Error);
        }
        for from in [Idle, Creating, Streaming, Completed, Stopped] {
            row(from, "exit 0", Completed);
        }
    }

    #[test]
    fn a_retried_request_leaves_the_error_and_its_usage_copy_is_no_request() {
        let retried = r#"out {"timestamp":9,"type":"say","say":"api_req_retried"}"#;
        let usage = r#"out {"timestamp":3,"type":"say","say":"api_req_started","metadata":{"tokensIn":1,"tokensOut":1}}"#;
        row(ManagerState::Error, retried, ManagerState::Streaming);
        row(ManagerState::WaitingApproval, usage, ManagerState::WaitingApproval);
    }

    #[test]
    fn a_refused_configuration_that_exits_with_0_is_an_error() {
        let welcome = r#"out {"timestamp":1,"type":"welcome","metadata":{"welcomeOptions":{"instructions":["Configure a provider"]}}}"#;
        check(&["start", welcome, "exit 0"], ManagerState::Error);
    }

    #[test]
    fn creating_is_left_when_the_id_stays_away() {
        check(&["start", REQUEST, "wait"], ManagerState::Creating);
        check(&["start", REQUEST, "wait", "wait"], ManagerState::Streaming);
    }
}
