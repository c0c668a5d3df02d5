//! An operator's errand to a thread of the daemon, on a connection of its own.
//!
//! An open request is sent again to whoever subscribes to its thread, and its first answer counts:
//! the terminal's prompt goes away when ours was it. The subscription ends with the connection,
//! as soon as the errand is done. A thread that is not loaded is left alone, because subscribing
//! would load it.

use std::path::{Path, PathBuf};

use qd_harness::codex::{client, reply};
use qd_session::decision::Decision;
use qd_session::id::CallId;
use serde_json::Value;
use tokio::time::timeout;

use super::line::{Asked, Heard, Line};
use crate::limits::{ERRAND_REPLY_WAIT, REPLAY_WAIT};
use crate::sources::errand::ErrandOutcome;
use crate::sources::live::Trouble;

/// What is to be done, and to which thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Errand {
    pub thread: String,
    pub what: Task,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Answers the open request about this item.
    Answer { call: CallId, decision: Decision },
    /// The next prompt; words into the turn where one runs.
    Prompt { text: String },
    /// Ends the turn that runs.
    Interrupt,
    /// From the next turn on nobody is asked and nothing is confined. The outcome's detail says
    /// what held before, for [`Task::EndYolo`].
    Yolo,
    /// Codex asks again, as `before` says or, without it, as it does by default.
    EndYolo { before: Option<String> },
}

/// Why an errand has ended before it was done.
struct Stopped(ErrandOutcome);

impl From<Trouble> for Stopped {
    fn from(trouble: Trouble) -> Self {
        Self(trouble.into())
    }
}

/// Carries it out. Every wait has a bound.
pub(super) async fn carry(socket: PathBuf, errand: Errand) -> ErrandOutcome {
    match attempt(&socket, &errand).await {
        Ok(outcome) | Err(Stopped(outcome)) => outcome,
    }
}

async fn attempt(socket: &Path, errand: &Errand) -> Result<ErrandOutcome, Stopped> {
    let line = Line::open(socket).await?;
    let mut visit = Visit { line, thread: &errand.thread };
    let status = visit.status().await?;
    let outcome = match &errand.what {
        Task::Answer { call, decision } => visit.answer(call, decision).await?,
        Task::Prompt { text } => visit.prompt(status, text).await?,
        Task::Interrupt => visit.interrupt(status).await?,
        Task::Yolo => visit.yolo().await?,
        Task::EndYolo { before } => visit.end_yolo(before.as_deref()).await?,
    };
    visit.line.close().await;
    Ok(outcome)
}

/// A connection, and the thread it was made for.
struct Visit<'a> {
    line: Line,
    thread: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Active,
    AtRest,
}

impl Visit<'_> {
    /// What the thread does, if it is loaded.
    async fn status(&mut self) -> Result<Status, Stopped> {
        let read = self.line.ask(|id| client::read_thread(id, self.thread)).await?;
        match read["thread"]["status"]["type"].as_str() {
            Some("active") => Ok(Status::Active),
            Some("idle" | "systemError") => Ok(Status::AtRest),
            _ => Err(refused("Codex's daemon has not loaded it")),
        }
    }

    async fn answer(
        &mut self,
        call: &CallId,
        decision: &Decision,
    ) -> Result<ErrandOutcome, Stopped> {
        self.line.ask(|id| client::resume_thread(id, self.thread)).await?;
        let Some(asked) = self.asked(call).await? else {
            return Err(refused("it is not open any more"));
        };
        let Some(written) = written(&asked, decision) else {
            return Err(refused("Codex takes no such answer to this"));
        };
        // From here on nobody knows what it did until it says so.
        let answered = timeout(ERRAND_REPLY_WAIT, async {
            self.line.send(written).await?;
            self.until_resolved(&asked.rpc).await
        });
        match answered.await {
            Ok(Ok(())) => Ok(ErrandOutcome::done()),
            Ok(Err(_)) | Err(_) => Ok(ErrandOutcome::Lost),
        }
    }

    /// The open request about this item; `None` if the thread waits for nobody, or for something
    /// else.
    async fn asked(&mut self, call: &CallId) -> Result<Option<Asked>, Trouble> {
        let read = self.line.ask(|id| client::read_thread(id, self.thread)).await?;
        let flags = read["thread"]["status"]["activeFlags"].as_array();
        let waits = flags.is_some_and(|flags| !flags.is_empty());
        let replayed = timeout(REPLAY_WAIT, async {
            loop {
                if let Some(asked) = self.line.take_request(self.thread, call.as_str()) {
                    return Ok(Some(asked));
                }
                if !waits {
                    return Ok(None);
                }
                self.line.hear().await?;
            }
        });
        replayed.await.unwrap_or(Ok(None))
    }

    /// Who answers at the same moment as the terminal is told the same: that it is answered.
    async fn until_resolved(&mut self, rpc: &Value) -> Result<(), Trouble> {
        loop {
            if let Heard::Resolved { rpc: resolved } = self.line.hear().await?
                && resolved == *rpc
            {
                return Ok(());
            }
        }
    }

    async fn prompt(&mut self, status: Status, text: &str) -> Result<ErrandOutcome, Stopped> {
        let thread = self.thread;
        if status == Status::Active
            && let Some(turn) = self.running_turn().await?
        {
            let steered = self.act(|id| client::steer_turn(id, thread, &turn, text)).await;
            // The turn may have ended meanwhile; then it is the next prompt.
            let ended = matches!(&steered, Err(Stopped(ErrandOutcome::Refused { .. })))
                && self.running_turn().await?.as_ref() != Some(&turn);
            if !ended {
                return steered;
            }
        }
        self.act(|id| client::start_turn(id, thread, text)).await
    }

    async fn interrupt(&mut self, status: Status) -> Result<ErrandOutcome, Stopped> {
        let turn = match status {
            Status::Active => self.running_turn().await?,
            Status::AtRest => None,
        };
        let Some(turn) = turn else { return Err(refused("nothing runs there")) };
        let thread = self.thread;
        self.act(|id| client::interrupt_turn(id, thread, &turn)).await
    }

    async fn yolo(&mut self) -> Result<ErrandOutcome, Stopped> {
        let thread = self.thread;
        let resumed = self.line.ask(|id| client::resume_thread(id, thread)).await?;
        let before = client::settings_of(&resumed);
        self.act(|id| client::allow_everything(id, thread)).await?;
        Ok(ErrandOutcome::Done { detail: Some(before) })
    }

    async fn end_yolo(&mut self, before: Option<&str>) -> Result<ErrandOutcome, Stopped> {
        let thread = self.thread;
        self.act(|id| client::restore_settings(id, thread, before)).await
    }

    async fn running_turn(&mut self) -> Result<Option<String>, Stopped> {
        let listed = self.line.ask(|id| client::last_turn(id, self.thread)).await?;
        let turn = &listed["data"][0];
        let runs = turn["status"] == "inProgress";
        Ok(turn["id"].as_str().filter(|_| runs).map(str::to_owned))
    }

    /// Sends the one message that changes something: without an answer it may have done so.
    async fn act(&mut self, request: impl FnOnce(u64) -> String) -> Result<ErrandOutcome, Stopped> {
        match self.line.ask(request).await {
            Ok(_) => Ok(ErrandOutcome::done()),
            Err(Trouble::Refused { why }) => Err(refused(why)),
            Err(_) => Err(Stopped(ErrandOutcome::Lost)),
        }
    }
}

/// The answer in Codex's words; `None` where it takes no such answer.
fn written(asked: &Asked, decision: &Decision) -> Option<String> {
    let params = Some(asked.params.as_str());
    match asked.method.as_str() {
        "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
            reply::approval(&asked.rpc, params, decision)
        }
        "item/tool/requestUserInput" => reply::user_input(&asked.rpc, params, decision),
        _ => None,
    }
}

fn refused(why: impl Into<String>) -> Stopped {
    Stopped(ErrandOutcome::refused(why))
}
