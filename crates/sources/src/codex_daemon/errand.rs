//! An operator's errand to a thread of the daemon, on a connection of its own.
//!
//! An open request is sent again to whoever subscribes to its thread, and its first answer counts:
//! the terminal's prompt goes away when ours was it. The subscription ends with the connection,
//! as soon as the errand is done. A thread that is not loaded is left alone, because subscribing
//! would load it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use qd_broker::desk::{Answerer, Expecting};
use qd_harness::codex::{client, reply};
use qd_session::decision::{Decision, Scope};
use qd_session::id::CallId;
use serde_json::Value;
use tokio::time::timeout;

use super::line::{Asked, Heard, Line};
use crate::errand::{ERRAND_REPLY_WAIT, ErrandOutcome};
use crate::live::Trouble;

/// How long Codex's daemon may take to send an open request to us, of a thread that waits. It does
/// so at once; a thread that waits for something else would keep us waiting for ever.
const REPLAY_WAIT: Duration = Duration::from_secs(5);

/// What is to be done, and to which thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Errand {
    pub thread: String,
    pub what: Task,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Answers the open request about this item.
    Answer { call: CallId, decision: Decision, by: Answerer },
    /// Accepts the plan that this turn has proposed, or says what to plan instead.
    JudgePlan { turn: String, decision: Decision },
    /// The next prompt; words into the turn where one runs.
    Prompt { text: String },
    /// Ends the turn that runs.
    Interrupt,
    /// From the next turn on nobody is asked and nothing is confined. The outcome's detail says
    /// what held before, for [`Task::EndYolo`]; none where it was so already.
    Yolo,
    /// Codex asks again, as `before` says or, without it, as it does by default. One that asks
    /// already is left as it is: its operator may have confined it further meanwhile.
    EndYolo { before: Option<String>, expecting: Expecting },
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
        Task::Answer { call, decision, by } => visit.answer(call, decision, *by).await?,
        Task::JudgePlan { turn, decision } => visit.judge_plan(status, turn, decision).await?,
        Task::Prompt { text } => visit.prompt(status, text).await?,
        Task::Interrupt => visit.interrupt(status).await?,
        Task::Yolo => visit.yolo().await?,
        Task::EndYolo { before, expecting } => {
            visit.end_yolo(before.as_deref(), *expecting).await?
        }
    };
    visit.line.close().await;
    Ok(outcome)
}

/// What a thread waits for, as the daemon asks it of those who subscribe; nothing where it waits
/// for nobody. Nothing is answered, and so nothing is changed.
pub(super) async fn look_into(socket: PathBuf, thread: &str) -> Vec<String> {
    let look = async {
        let line = Line::open(&socket).await?;
        let mut visit = Visit { line, thread };
        // A thread that is not loaded would be by subscribing.
        if visit.status().await? == Status::AtRest {
            return Ok(Vec::new());
        }
        visit.line.ask(|id| client::resume_thread(id, thread)).await?;
        visit.replayed(|line| line.has_request(thread)).await?;
        // Others that wait beside it have come by the time this is answered.
        visit.line.ask(|id| client::read_thread(id, thread)).await?;
        let asked = visit.line.requests_of(thread);
        visit.line.close().await;
        Ok::<_, Stopped>(asked)
    };
    look.await.unwrap_or_default()
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
        by: Answerer,
    ) -> Result<ErrandOutcome, Stopped> {
        self.line.ask(|id| client::resume_thread(id, self.thread)).await?;
        let Some(asked) = self.asked(call).await? else {
            return Err(refused("it is not open any more"));
        };
        if by == Answerer::Rule && reply::needs_person(Some(&asked.params)) {
            return Err(refused("Codex wants a person to approve this command"));
        }
        let Some(written) = written(&asked, decision) else {
            let always = matches!(decision, Decision::Allow { scope: Scope::Always, .. });
            return Err(refused(match always {
                true => "Codex proposes no rule for this: allow it once, or for the session",
                false => "Codex takes no such answer to this",
            }));
        };
        // From here on nobody knows what it did until it says so.
        let answered = timeout(ERRAND_REPLY_WAIT, async {
            self.line.send(written).await?;
            self.until_resolved(&asked.rpc).await
        });
        match (answered.await, decision) {
            (Ok(Ok(())), Decision::Deny { message: Some(message), interrupt: false }) => {
                self.explain(message).await
            }
            (Ok(Ok(())), _) => Ok(ErrandOutcome::done()),
            (Ok(Err(_)) | Err(_), _) => Ok(ErrandOutcome::Lost),
        }
    }

    /// Codex takes no reason with a refusal, and goes on: the reason is said into its turn.
    async fn explain(&mut self, message: &str) -> Result<ErrandOutcome, Stopped> {
        match self.prompt(Status::Active, message).await {
            Ok(outcome) => Ok(outcome),
            // The refusal stands, whatever became of its reason.
            Err(_) => Ok(ErrandOutcome::Lost),
        }
    }

    /// The open request about this item; `None` if the thread waits for nobody, or for something
    /// else.
    async fn asked(&mut self, call: &CallId) -> Result<Option<Asked>, Trouble> {
        let thread = self.thread;
        self.replayed(|line| line.has_request_about(thread, call.as_str())).await?;
        Ok(self.line.take_request(thread, call.as_str()))
    }

    /// Waits until what the thread waits for was sent to us, if it waits for anything.
    async fn replayed(&mut self, is_there: impl Fn(&Line) -> bool) -> Result<(), Trouble> {
        let read = self.line.ask(|id| client::read_thread(id, self.thread)).await?;
        let flags = read["thread"]["status"]["activeFlags"].as_array();
        if flags.is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let replayed = timeout(REPLAY_WAIT, async {
            while !is_there(&self.line) {
                self.line.hear().await?;
            }
            Ok(())
        });
        // A thread may wait for something else.
        replayed.await.unwrap_or(Ok(()))
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

    /// A plan is judged by the next turn, as Codex's own terminal does it.
    async fn judge_plan(
        &mut self,
        status: Status,
        turn: &str,
        decision: &Decision,
    ) -> Result<ErrandOutcome, Stopped> {
        let thread = self.thread;
        let (last, _) = self.last_turn().await?;
        if status == Status::Active || last.as_deref() != Some(turn) {
            return Err(refused("it is not open any more"));
        }
        match decision {
            Decision::ApprovePlan { .. } => {
                let resumed = self.line.ask(|id| client::resume_thread(id, thread)).await?;
                let Some(model) = resumed["model"].as_str() else {
                    return Err(refused("Codex does not say which model it uses"));
                };
                self.act(|id| client::implement_plan(id, thread, model)).await
            }
            Decision::RejectPlan { feedback: Some(words) } => {
                self.act(|id| client::start_turn(id, thread, words)).await
            }
            Decision::Allow { .. }
            | Decision::Deny { .. }
            | Decision::Answer { .. }
            | Decision::RejectPlan { feedback: None } => {
                Err(refused("Codex takes no such answer to this"))
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
        if client::is_everything_allowed(&resumed) {
            return Ok(ErrandOutcome::done());
        }
        let before = client::settings_of(&resumed);
        self.act(|id| client::allow_everything(id, thread)).await?;
        Ok(ErrandOutcome::Done { detail: Some(before) })
    }

    async fn end_yolo(
        &mut self,
        before: Option<&str>,
        expecting: Expecting,
    ) -> Result<ErrandOutcome, Stopped> {
        let thread = self.thread;
        let resumed = self.line.ask(|id| client::resume_thread(id, thread)).await?;
        match (client::is_everything_allowed(&resumed), expecting) {
            (true, _) => self.act(|id| client::restore_settings(id, thread, before)).await,
            (false, Expecting::Either) => Ok(ErrandOutcome::done()),
            (false, Expecting::Yolo) => Err(refused("it is not in YOLO")),
        }
    }

    async fn running_turn(&mut self) -> Result<Option<String>, Stopped> {
        let (turn, runs) = self.last_turn().await?;
        Ok(turn.filter(|_| runs))
    }

    /// The newest turn, and whether it still runs.
    async fn last_turn(&mut self) -> Result<(Option<String>, bool), Stopped> {
        let listed = self.line.ask(|id| client::last_turn(id, self.thread)).await?;
        let turn = &listed["data"][0];
        Ok((turn["id"].as_str().map(str::to_owned), turn["status"] == "inProgress"))
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
