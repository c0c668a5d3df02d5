//! Sessions of our own: begun, held, let go on, tried again.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use qd_broker::NotFound;
use qd_broker::driving::Unspawned;
use qd_daemon::runtime::SpawnWanted;
use qd_harness::Harness;
use qd_session::decision::{Command, RetryTarget};
use qd_session::id::{HookRunId, RunId};
use qd_session::logbook::Brief;
use qd_session::policy::Preset;

use crate::acting::{Caller, command, problem, read};
use crate::error::Refusal;
use crate::limits::{NAME_BYTES_MAX, PROMPT_BYTES_MAX, WORKSPACE_BYTES_MAX};
use crate::server::Server;
use crate::wire::{HarnessList, HarnessOffered, SessionBegun, SessionWanted};

pub async fn begin(
    State(server): State<Server>,
    wanted: Result<Json<SessionWanted>, JsonRejection>,
) -> Result<Response, Refusal> {
    let SessionWanted { harness, workspace, model, provider, preset, prompt } = read(wanted)?;
    let harness = Harness::named(&harness).ok_or(Refusal::UnknownHarness)?;
    let preset = match preset.as_deref() {
        None => Preset::Careful,
        Some(name) => Preset::named(name).ok_or(Refusal::Unreadable)?,
    };
    let names = [model.as_deref(), provider.as_deref()];
    let is_long = names.into_iter().flatten().any(|name| name.len() > NAME_BYTES_MAX)
        || workspace.len() > WORKSPACE_BYTES_MAX
        || prompt.as_ref().is_some_and(|prompt| prompt.len() > PROMPT_BYTES_MAX);
    if is_long {
        return Err(Refusal::Unreadable);
    }
    let brief = Brief {
        workspace: workspace.into(),
        model: model.map(Into::into),
        provider: provider.map(Into::into),
        preset,
        prompt: prompt.filter(|prompt| !prompt.trim().is_empty()).map(Into::into),
        is_chat: false,
    };
    match server.handle().spawn_session(SpawnWanted { harness, brief }).await? {
        Ok(session_id) => Ok(Json(SessionBegun { session_id }).into_response()),
        Err(why) => Ok(unspawned(&why)),
    }
}

/// What a session can be begun with here.
pub async fn harnesses(State(server): State<Server>) -> Result<Json<HarnessList>, Refusal> {
    let offers = server.handle().offers().await?;
    let offered = offers.into_iter().map(|offer| HarnessOffered {
        harness: offer.harness.name().to_owned(),
        possible: offer.obstacle.is_none(),
        why: offer.obstacle,
        providers: offer.choices,
    });
    Ok(Json(HarnessList { harnesses: offered.collect() }))
}

pub(crate) fn unspawned(why: &Unspawned) -> Response {
    let (status, code, retryable) = match why {
        Unspawned::TooMany => (StatusCode::SERVICE_UNAVAILABLE, "too_many_sessions", true),
        Unspawned::Exists => (StatusCode::CONFLICT, "session_exists", false),
        Unspawned::NotHere | Unspawned::Impossible { .. } => {
            (StatusCode::CONFLICT, "not_possible", false)
        }
        Unspawned::NoWorkspace => (StatusCode::BAD_REQUEST, "no_workspace", false),
    };
    problem(status, code, &why.to_string(), retryable)
}

pub async fn pause(
    state: State<Server>,
    caller: Extension<Caller>,
    word: Path<String>,
) -> Result<Response, Refusal> {
    command(state, caller, word, Command::Pause, None).await
}

pub async fn resume(
    state: State<Server>,
    caller: Extension<Caller>,
    word: Path<String>,
) -> Result<Response, Refusal> {
    command(state, caller, word, Command::Resume, None).await
}

/// Whatever failed last: the model, tools, a hook or the agent itself.
pub async fn retry(
    State(server): State<Server>,
    caller: Extension<Caller>,
    Path(word): Path<String>,
) -> Result<Response, Refusal> {
    let card = server.handle().card(&word).await??.ok_or(NotFound::Nobody)?;
    let Some(target) = card.drive.and_then(|drive| drive.retry) else {
        let why = "nothing of it failed that could be tried again";
        return Ok(problem(StatusCode::CONFLICT, "not_possible", why, false));
    };
    command(State(server), caller, Path(word), Command::Retry { target }, None).await
}

pub async fn retry_tool(
    state: State<Server>,
    caller: Extension<Caller>,
    Path((word, run)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let target = RetryTarget::Tool { run: RunId::new(run) };
    command(state, caller, Path(word), Command::Retry { target }, None).await
}

pub async fn retry_hook(
    state: State<Server>,
    caller: Extension<Caller>,
    Path((word, run)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let target = RetryTarget::Hook { run: HookRunId::new(run) };
    command(state, caller, Path(word), Command::Retry { target }, None).await
}
