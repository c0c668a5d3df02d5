//! The desktop's own notifications, by `notify-send`: arguments and never a shell, and what an agent
//! wrote escaped, because servers draw marks like `<b>`.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::message::{Message, Pressing};
use super::outbox::Failure;
use crate::http::{NOTICE_ANSWER_BYTES_MAX, NOTICE_WAIT};

/// Notifications on the desktop that can be taken back.
const DESKTOP_SHOWN_MAX: usize = 64;

/// Between two looks whether `notify-send` has ended: it takes a few milliseconds.
const DESKTOP_LOOK_EVERY: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub struct Desktop {
    /// By its tag, the number that the desktop gave it. The oldest first.
    shown: VecDeque<(String, u32)>,
}

impl Desktop {
    pub async fn carry(&mut self, message: &Message) -> Result<(), Failure> {
        if !has_desktop() {
            return Err(Failure::Refused(
                "there is no desktop: the daemon has no session bus".into(),
            ));
        }
        let known = self.shown.iter().position(|(tag, _)| *tag == message.tag);
        let number = known.and_then(|at| self.shown.remove(at)).map(|(_, number)| number);
        // Nothing of it is on the screen.
        if message.closed && number.is_none() {
            return Ok(());
        }
        let said = ran(&arguments(message, number)).await?;
        if let (false, Ok(number)) = (message.closed, said.trim().parse()) {
            if self.shown.len() == DESKTOP_SHOWN_MAX {
                self.shown.pop_front();
            }
            self.shown.push_back((message.tag.clone(), number));
        }
        Ok(())
    }
}

fn has_desktop() -> bool {
    ["DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// `notify-send` cannot close what it showed: what is settled takes its place for a second.
fn arguments(message: &Message, number: Option<u32>) -> Vec<String> {
    let urgency = match message.pressing() {
        Pressing::High => "critical",
        Pressing::Normal => "normal",
        Pressing::Low => "low",
    };
    let mut arguments = vec![
        "--app-name=Quarterdeck".to_owned(),
        format!("--urgency={urgency}"),
        "--print-id".to_owned(),
    ];
    arguments.extend(number.map(|number| format!("--replace-id={number}")));
    if message.closed {
        arguments.push("--expire-time=1000".to_owned());
        arguments.push("--hint=int:transient:1".to_owned());
    }
    // What follows is no option, whatever it begins with.
    arguments.push("--".to_owned());
    arguments.push(message.title.clone());
    arguments.push(escaped(&message.text));
    arguments
}

async fn ran(arguments: &[String]) -> Result<String, Failure> {
    let refused = |error: io::Error| Failure::Refused(format!("notify-send: {error}"));
    let mut command = Command::new("notify-send");
    let command = command.args(arguments).stdin(Stdio::null());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Ended(command.spawn().map_err(refused)?);
    let begun = Instant::now();
    // It says a number or a sentence: no pipe is ever full.
    let status = loop {
        if let Some(status) = child.0.try_wait().map_err(refused)? {
            break status;
        }
        if begun.elapsed() >= NOTICE_WAIT {
            return Err(Failure::later("notify-send did not end in time"));
        }
        sleep(DESKTOP_LOOK_EVERY).await;
    };
    let said = |pipe: Option<&mut dyn Read>| {
        let mut text = String::new();
        let pipe = pipe.map(|pipe| pipe.take(NOTICE_ANSWER_BYTES_MAX as u64));
        match pipe.map(|mut pipe| pipe.read_to_string(&mut text)) {
            Some(Ok(_)) => text,
            Some(Err(_)) | None => String::new(),
        }
    };
    if status.success() {
        return Ok(said(child.0.stdout.as_mut().map(|pipe| pipe as &mut dyn Read)));
    }
    let why = said(child.0.stderr.as_mut().map(|pipe| pipe as &mut dyn Read));
    let why = qd_session::operator::notice::plain(&why, WHY_CHARS_MAX);
    Err(Failure::Refused(format!("notify-send: {why}")))
}

/// How much of a complaint the operator reads.
const WHY_CHARS_MAX: usize = 160;

/// Whoever stops waiting for it ends it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and is all the better for it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_wrote_is_neither_an_option_nor_markup() {
        let mut message = Message::test();
        message.title = "--help".into();
        message.text = "<b>a</b> & <a href='x'>b</a>".into();
        let arguments = arguments(&message, Some(7));
        let at =
            arguments.iter().position(|argument| argument == "--").expect("the end of options");
        assert_eq!(arguments[at + 1], "--help");
        assert_eq!(arguments[at + 2], "&lt;b&gt;a&lt;/b&gt; &amp; &lt;a href='x'&gt;b&lt;/a&gt;");
        assert!(arguments[..at].contains(&"--replace-id=7".to_owned()));
    }
}
