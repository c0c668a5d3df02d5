//! What a card gives to tell.

use qd_session::id::RequestKey;
use qd_session::operator::notice::{Answering, Asker, Kind, Matter, Situation, plain};
use qd_session::operator::{AgentState, Group};
use serde_json::Value;

use qd_broker::{AnswerState, Card, RequestView};

/// What is open in the session of a card. An answer that the agent's side has is as good as taken.
pub fn situation_of(card: &Card) -> Situation {
    let is_needed = card.agent_state.group == Group::NeedsYou;
    let open = card.requests.iter().filter(|request| is_needed && !is_delivered(request));
    let mut matters: Vec<Matter> = open.map(|request| matter_of(card, request)).collect();
    if card.requests.is_empty()
        && let Some(kind) = Kind::of_state(&card.agent_state)
    {
        let state = &card.agent_state;
        let title = format!("{}: {}", place_of(card), state.label);
        let text = card.title.as_deref().unwrap_or_default();
        let matter = Matter::of_state(&card.session_id, kind, state.since, &title, text);
        matters.push(match budget_of(state) {
            Some(budget) => matter.known_by(&card.session_id, &budget),
            None => matter,
        });
    }
    Situation { session: card.session_id.clone(), matters }
}

/// Which budget is spent, and for the how manieth time; none where none is. Since when is known only
/// to whoever has watched since.
fn budget_of(state: &AgentState) -> Option<String> {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let context = state.context.as_ref()?;
    let (span, measure) = (&context["exceeded"]["span"], &context["exceeded"]["measure"]);
    let (span, measure) = (span.as_str()?, measure.as_str()?);
    let day = match span {
        "day" => format!("-{}", state.since.0 / DAY_MS),
        _ => String::new(),
    };
    Some(format!("{span}-{measure}-{}{day}", context["beyond"]))
}

fn is_delivered(request: &RequestView) -> bool {
    request.answer.as_ref().is_some_and(|answer| answer.state == AnswerState::Delivered)
}

fn matter_of(card: &Card, request: &RequestView) -> Matter {
    let answer = request.answer.as_ref().map(|answer| answer.state);
    let answering = match answer {
        Some(AnswerState::Sending) => Answering::UnderWay,
        Some(AnswerState::Delivered | AnswerState::Failed | AnswerState::Unclear) | None => {
            match request.way {
                Some(_) if is_told_whole(card, request) => Answering::FromHere,
                Some(_) => Answering::OnceRead,
                None => Answering::Elsewhere,
            }
        }
    };
    let kind = Kind::of_request(request.kind);
    let asks = match (kind, &request.tool) {
        (Kind::Permission, Some(tool)) => format!("allow {tool}?"),
        (Kind::Permission, None) => "allow a tool?".to_owned(),
        (Kind::Plan, _) => "plan ready for review".to_owned(),
        (Kind::Question, _) => "asks you".to_owned(),
        (Kind::Error | Kind::Limit | Kind::Idle | Kind::Delivered, _) => "needs you".to_owned(),
    };
    let title = format!("{}: {asks}", place_of(card));
    let key = request
        .key
        .clone()
        .unwrap_or_else(|| RequestKey::new(format!("{}/{}", card.session_id, request.request_id)));
    let asker = match request.agent {
        None => Asker::Main,
        Some(_) => Asker::Subagent,
    };
    let (how, text) = ((answering, asker), wanted(request));
    Matter::of_request(key, kind, how, request.since, &title, &text)
        .of_revision(request.revision.clone())
}

/// The project, or else what the session is called.
fn place_of(card: &Card) -> String {
    let folder = card.cwd.as_deref().and_then(|cwd| cwd.rsplit('/').find(|part| !part.is_empty()));
    let named = folder.or(card.title.as_deref()).unwrap_or(card.harness.name());
    plain(named, PLACE_CHARS_MAX)
}

/// So that what is asked has room beside it.
const PLACE_CHARS_MAX: usize = 30;

/// What the agent wants, in as few words as it has.
fn wanted(request: &RequestView) -> String {
    let input = told(request);
    let field = |name: &str| input?.get(name)?.as_str().map(str::to_owned);
    let question = input
        .and_then(|input| input.get("questions")?.get(0)?.get("question")?.as_str())
        .map(str::to_owned);
    let named = ["command", "file_path", "path", "url", "question", "plan"];
    let command = input.and_then(|input| input.get("command")?.as_array());
    let command =
        command.map(|words| words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
    let found = named.iter().find_map(|name| field(name)).or(command).or(question);
    found.or_else(|| request.text.clone()).unwrap_or_default()
}

/// What a tool was given. OpenCode's words for its rules stand around it.
fn told(request: &RequestView) -> Option<&Value> {
    let input = request.input.as_ref()?;
    let is_wrapped = input.get("permission").is_some() && input.get("patterns").is_some();
    if is_wrapped { input.get("metadata") } else { Some(input) }
}

/// Whether the one field that a notice shows is all that decides what runs: a command, and beside
/// it nothing but words about it and an agent's own book-keeping.
fn is_told_whole(card: &Card, request: &RequestView) -> bool {
    let Some(fields) = told(request).and_then(Value::as_object) else { return false };
    let is_mcp = request.tool.as_deref().is_none_or(|tool| tool.starts_with("mcp"));
    let says_nothing = |(name, value): (&String, &Value)| match name.as_str() {
        "command" => value.is_string(),
        "description" | "reason" | "justification" => value.is_string() || value.is_null(),
        "cwd" => value.as_str() == card.cwd.as_deref(),
        name => value.is_null() || (!is_mcp && BOOK_KEEPING.contains(&name)),
    };
    !request.cut && fields.contains_key("command") && fields.iter().all(says_nothing)
}

/// Ids and times that Codex tells beside a command, and its own reading of the same command.
const BOOK_KEEPING: [&str; 10] = [
    "threadId",
    "turnId",
    "itemId",
    "approvalId",
    "environmentId",
    "startedAtMs",
    "kind",
    "commandActions",
    "availableDecisions",
    "proposedExecpolicyAmendment",
];
