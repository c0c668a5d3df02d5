//! An operator's errand to a session of a server, on connections of its own.
//!
//! A server keeps what is open by directory, so every call says in which one the session works.

use qd_harness::opencode::{self, Call};
use qd_session::decision::{Answer, Decision};
use serde_json::Value;

use super::address::Address;
use super::http::{self, Unanswered};
use super::spelled;
use crate::errand::ErrandOutcome;
use crate::live::Trouble;

/// Letters of what a server says to an errand that it does not take.
const ERRAND_TEXT_CHARS_MAX: usize = 200;

/// What is to be done, and to which session.
#[derive(Debug, Clone, PartialEq)]
pub struct Errand {
    /// As the server calls it. A subagent's request is its own session's.
    pub session: String,
    pub what: Task,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Answers an open request, as the server calls it.
    Answer { request: String, decision: Decision },
    /// The next prompt; in the middle of a turn it is queued.
    Prompt { text: String },
    /// Ends the turn that runs.
    Interrupt,
}

/// Why an errand has ended before it was done.
struct Stopped(ErrandOutcome);

impl From<Trouble> for Stopped {
    fn from(trouble: Trouble) -> Self {
        Self(trouble.into())
    }
}

/// Carries it out. Every wait has a bound.
pub(super) async fn carry(address: Address, errand: Errand) -> ErrandOutcome {
    match attempt(&address, &errand).await {
        Ok(outcome) | Err(Stopped(outcome)) => outcome,
    }
}

async fn attempt(address: &Address, errand: &Errand) -> Result<ErrandOutcome, Stopped> {
    let session = errand.session.as_str();
    let visit = Visit::to(address, session).await?;
    match &errand.what {
        Task::Answer { request, decision } => visit.answer(request, decision).await,
        Task::Prompt { text } => visit.act(opencode::prompt(session, text)).await,
        Task::Interrupt => visit.interrupt().await,
    }
}

/// A server, and the session it is asked about.
struct Visit<'a> {
    address: &'a Address,
    session: &'a str,
    /// What every path ends with.
    query: String,
}

impl<'a> Visit<'a> {
    async fn to(address: &'a Address, session: &'a str) -> Result<Self, Stopped> {
        let (status, body) = http::get(address, &format!("/session/{}", spelled(session))).await?;
        if status != 200 {
            return Err(refused(format!("its server does not know it ({status})")));
        }
        let described = serde_json::from_slice::<Value>(&body).map_err(|_| Trouble::Foreign)?;
        let directory = described["directory"].as_str().ok_or(Trouble::Foreign)?;
        Ok(Self { address, session, query: format!("?directory={}", spelled(directory)) })
    }

    async fn answer(&self, request: &str, decision: &Decision) -> Result<ErrandOutcome, Stopped> {
        let decision = match decision {
            Decision::Answer { answers } => {
                let answers = self.in_order(request, answers).await?;
                Decision::Answer { answers }
            }
            Decision::Allow { .. }
            | Decision::Deny { .. }
            | Decision::ApprovePlan { .. }
            | Decision::RejectPlan { .. } => decision.clone(),
        };
        let Some(calls) = opencode::decide(self.session, request, &decision) else {
            return Err(refused("the server takes no such answer to this"));
        };
        let mut calls = calls.into_iter();
        // A decision is at least one call, and the first is the answer.
        let Some(first) = calls.next() else { return Ok(ErrandOutcome::done()) };
        self.act(first).await?;
        for then in calls {
            if let Err(Stopped(outcome)) = self.act(then).await {
                let detail = format!("answered, but the turn was not ended: {outcome:?}");
                return Ok(ErrandOutcome::Done { detail: Some(detail) });
            }
        }
        Ok(ErrandOutcome::done())
    }

    /// The server takes one list for each of its questions, in its order.
    async fn in_order(&self, request: &str, answers: &[Answer]) -> Result<Vec<Answer>, Stopped> {
        let open = self.list("/question").await?;
        let is_it = |one: &&Value| one["id"] == *request;
        let Some(asked) = open.as_array().and_then(|open| open.iter().find(is_it)) else {
            return Err(refused("it is not open any more"));
        };
        opencode::in_order(asked, answers).ok_or_else(|| refused("that is not what it asked"))
    }

    async fn interrupt(&self) -> Result<ErrandOutcome, Stopped> {
        // A session at rest is left out.
        if self.list("/session/status").await?.get(self.session).is_none() {
            return Err(refused("nothing runs there"));
        }
        self.act(opencode::abort(self.session)).await
    }

    async fn list(&self, path: &str) -> Result<Value, Stopped> {
        let (status, body) = http::get(self.address, &format!("{path}{}", self.query)).await?;
        let list = serde_json::from_slice(&body).ok().filter(|_| status == 200);
        Ok(list.ok_or(Trouble::Foreign)?)
    }

    async fn act(&self, mut call: Call) -> Result<ErrandOutcome, Stopped> {
        call.path.push_str(&self.query);
        match http::call(self.address, &call).await {
            Ok((200..300, _)) => Ok(ErrandOutcome::done()),
            Ok((404, _)) => Err(refused("it is not open any more")),
            Ok((400..500, body)) => Err(refused(said(&body))),
            Err(Unanswered::NotSent(trouble)) => Err(trouble.into()),
            // A server that fails in the middle may have done it.
            Ok(_) | Err(Unanswered::Sent) => Err(Stopped(ErrandOutcome::Lost)),
        }
    }
}

/// What a server says about a call that it does not take.
fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text: String = text.chars().take(ERRAND_TEXT_CHARS_MAX).collect();
    format!("its server does not take it: {text}")
}

fn refused(why: impl Into<String>) -> Stopped {
    Stopped(ErrandOutcome::refused(why))
}
