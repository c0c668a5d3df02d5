//! What the operator does: answers, prompts and commands.

use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, extract::rejection::JsonRejection};
use qd_broker::desk::{Answering, Commanding, Declined, Taken};
use qd_broker::{Card, NotFound};
use qd_session::decision::{By, Command, Decided, Refused, Standing, Subject};
use qd_session::id::{DecisionId, IdempotencyKey, RequestKey};
use serde::de::DeserializeOwned;

use crate::budget::Identity;
use crate::error::Refusal;
use crate::limits::{IDEMPOTENCY_KEY_BYTES_MAX, PROMPT_BYTES_MAX};
use crate::server::Server;
use crate::sign_in_lease::Lease;
use crate::wire::{
    Answered, Conflict, DecisionWanted, FirstAnswer, PolicyWanted, Problem, PromptWanted,
    RequestList, RequestOf, YoloWanted,
};

/// Whose request it is, as the guard saw it.
#[derive(Debug, Clone)]
pub struct Caller {
    pub device: String,
    /// Where it is a browser: its sign-in.
    pub browser: Option<Lease>,
    /// Whose budget it spends; none by the socket, and without a credential.
    pub identity: Option<Identity>,
}

impl Caller {
    pub(crate) fn of(device: &str) -> Self {
        Self { device: device.to_owned(), browser: None, identity: None }
    }

    pub(crate) fn by(self) -> By {
        By { who: "operator".to_owned(), device: self.device }
    }
}

/// Everything that waits for the operator, the most urgent first.
pub async fn requests(State(server): State<Server>) -> Result<Json<RequestList>, Refusal> {
    server.caught_up().await?;
    let waits = |card: Card| (!card.requests.is_empty()).then_some(card);
    let mut board = server.handle().board_of(waits).await?;
    board.cards.sort_by_key(|card| card.agent_state.place());
    let requests = board.cards.into_iter().flat_map(|card| {
        let (session_id, harness) = (card.session_id, card.harness);
        let (title, cwd) = (card.title, card.cwd);
        card.requests.into_iter().map(move |request| RequestOf {
            session_id: session_id.clone(),
            harness,
            title: title.clone(),
            cwd: cwd.clone(),
            request,
        })
    });
    Ok(Json(RequestList { requests: requests.collect() }))
}

pub async fn decide(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(request): Path<String>,
    wanted: Result<Json<DecisionWanted>, JsonRejection>,
) -> Result<Response, Refusal> {
    let DecisionWanted { decision: answer, revision, key } = read(wanted)?;
    let answering = Answering {
        decision: fresh_id(),
        request: RequestKey::new(request),
        by: caller.by(),
        rule: None,
        answer,
        revision,
        key: key_of(key)?,
    };
    Ok(answer_of(server.handle().decide(answering).await?))
}

pub async fn input(
    state: State<Server>,
    caller: Extension<Caller>,
    word: Path<String>,
    wanted: Result<Json<PromptWanted>, JsonRejection>,
) -> Result<Response, Refusal> {
    let PromptWanted { text, key } = read(wanted)?;
    if text.trim().is_empty() || text.len() > PROMPT_BYTES_MAX {
        return Err(Refusal::Unreadable);
    }
    command(state, caller, word, Command::Prompt { text }, key_of(key)?).await
}

pub async fn interrupt(
    state: State<Server>,
    caller: Extension<Caller>,
    word: Path<String>,
) -> Result<Response, Refusal> {
    command(state, caller, word, Command::Interrupt, None).await
}

pub async fn stop(
    state: State<Server>,
    caller: Extension<Caller>,
    word: Path<String>,
) -> Result<Response, Refusal> {
    command(state, caller, word, Command::Stop, None).await
}

pub async fn focus(
    state: State<Server>,
    caller: Extension<Caller>,
    word: Path<String>,
) -> Result<Response, Refusal> {
    command(state, caller, word, Command::Focus, None).await
}

pub async fn yolo(
    state: State<Server>,
    caller: Extension<Caller>,
    word: Path<String>,
    wanted: Result<Json<YoloWanted>, JsonRejection>,
) -> Result<Response, Refusal> {
    let YoloWanted { on } = read(wanted)?;
    command(state, caller, word, Command::Yolo { on }, None).await
}

pub async fn policy(
    state: State<Server>,
    caller: Extension<Caller>,
    word: Path<String>,
    wanted: Result<Json<PolicyWanted>, JsonRejection>,
) -> Result<Response, Refusal> {
    let PolicyWanted { preset } = read(wanted)?;
    command(state, caller, word, Command::Policy { preset }, None).await
}

pub(crate) async fn command(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(word): Path<String>,
    command: Command,
    key: Option<IdempotencyKey>,
) -> Result<Response, Refusal> {
    let card = server.handle().card(&word).await??;
    let session = card.ok_or(NotFound::Nobody)?.session_id;
    let commanding = Commanding { decision: fresh_id(), session, by: caller.by(), command, key };
    Ok(answer_of(server.handle().command(commanding).await?))
}

pub(crate) fn read<T: DeserializeOwned>(
    wanted: Result<Json<T>, JsonRejection>,
) -> Result<T, Refusal> {
    wanted.map(|Json(wanted)| wanted).map_err(|_| Refusal::Unreadable)
}

fn key_of(key: Option<String>) -> Result<Option<IdempotencyKey>, Refusal> {
    match key {
        Some(key) if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX => {
            Err(Refusal::Unreadable)
        }
        key => Ok(key.map(IdempotencyKey::new)),
    }
}

pub(crate) fn fresh_id() -> DecisionId {
    let mut bytes = [0; 16];
    // Without random numbers nothing on this machine is safe.
    getrandom::fill(&mut bytes).expect("the system gives random numbers");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    DecisionId::new(format!("dec_{hex}"))
}

/// 200 where the agent's side has it, 503 where it has not, 409 where somebody was first.
pub(crate) fn answer_of(taken: Result<Taken, Declined>) -> Response {
    match taken {
        Ok(Taken { decision, standing }) => match standing {
            Standing::Delivered { .. } | Standing::Confirmed { .. } => {
                let state = standing.name();
                Json(Answered { decision_id: decision, state }).into_response()
            }
            Standing::Failed { why } => {
                problem(StatusCode::SERVICE_UNAVAILABLE, "delivery_failed", &why, true)
            }
            Standing::Overtaken => problem(StatusCode::CONFLICT, "closed", CLOSED, false),
            Standing::InFlight | Standing::Ending | Standing::Unsettled | Standing::Unclear => {
                problem(StatusCode::SERVICE_UNAVAILABLE, "delivery_unclear", UNCLEAR, false)
            }
        },
        Err(Declined::Impossible { why }) => {
            problem(StatusCode::CONFLICT, "not_possible", &why, false)
        }
        Err(Declined::Replaced) => problem(StatusCode::CONFLICT, "replaced", REPLACED, false),
        Err(Declined::RevisionNeeded) => {
            problem(StatusCode::CONFLICT, "revision_needed", REVISION_NEEDED, false)
        }
        Err(Declined::Forbidden { why }) => {
            problem(StatusCode::FORBIDDEN, "YOLO_FORBIDDEN", &why, false)
        }
        Err(Declined::Book(refused)) => match refused {
            Refused::AlreadyAnswered { first } | Refused::KeyReused { first } => conflict(&first),
            Refused::Closed => problem(StatusCode::CONFLICT, "closed", CLOSED, false),
            Refused::Unknown => problem(
                StatusCode::NOT_FOUND,
                "no_such_request",
                "no request of that id is open",
                false,
            ),
            Refused::Unrecordable { why } => {
                problem(StatusCode::UNPROCESSABLE_ENTITY, "not_deliverable", &why, false)
            }
            Refused::Full => problem(
                StatusCode::SERVICE_UNAVAILABLE,
                "not_taken",
                "too many decisions wait to be settled",
                true,
            ),
        },
    }
}

const CLOSED: &str = "the agent waits for this no more: it was answered elsewhere";
const REPLACED: &str =
    "The agent asks for something else now. Nothing was sent: read it again, then answer.";
const REVISION_NEEDED: &str = "What this request asks for has changed since it was opened. Nothing \
    was sent: read it again, and send its `revision` with the answer.";
const UNCLEAR: &str =
    "it was sent, and nobody can say whether it arrived; the card shows what the agent does";

pub(crate) fn problem(status: StatusCode, code: &str, message: &str, retryable: bool) -> Response {
    let problem = Problem { code: code.to_owned(), message: message.to_owned(), retryable };
    (status, Json(problem)).into_response()
}

fn conflict(first: &Decided) -> Response {
    let answer = match &first.subject {
        Subject::Answer(offer) => Some(FirstAnswer {
            decision: offer.answer.clone(),
            by: offer.by.clone(),
            rule: offer.rule.clone(),
            at: first.at,
            state: first.standing.name(),
        }),
        Subject::Command(_) => None,
    };
    let problem = Problem {
        code: "already_answered".to_owned(),
        message: "somebody was first".to_owned(),
        retryable: false,
    };
    (StatusCode::CONFLICT, Json(Conflict { problem, first: answer })).into_response()
}
