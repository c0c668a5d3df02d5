//! The shapes that go over the wire beside the card.

use std::sync::Arc;

use qd_broker::{Card, RequestView, UnreadableAgent};
use qd_daemon::detail::{Attached, Detail, EvidenceLine};
use qd_daemon::runtime::Health;
use qd_harness::Harness;
use qd_harness::usage::Sum;
use qd_notices::ReceiverView;
use qd_session::decision::{By, Decision};
use qd_session::id::{DecisionId, RuleName, SessionId};
use qd_session::logbook::{Message, Note};
use qd_session::machine::State;
use qd_session::moment::Timestamp;
use qd_session::operator::Group;
use qd_session::policy::Preset;
use qd_session::timeline::{Run, Span};
use qd_session::view::manager::{self, Flags, ManagerState};
use qd_session::view::monitor::MonitorView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::hook_posts::RefusedHooks;

/// `GET /api/live/sessions`, and the stream's `snapshot`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    pub sessions: Vec<Card>,
    pub summary: Summary,
}

/// `GET /api/live/sessions/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionDetail {
    pub card: Card,
    pub manager_view: ManagerShown,
    pub monitor_view: MonitorView,
    /// The newest first.
    pub evidence: Vec<EvidenceLine>,
    pub runs: Vec<Run>,
    pub groups: Vec<Span>,
    /// Of a session that we drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<AttachedTo>,
}

/// Where a driven session is, in full, and what was said in it last.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachedTo {
    /// The machine's state with all that is valid in it; `kind` is its name.
    #[schema(value_type = serde_json::Value)]
    pub state: State,
    /// The newest messages, the oldest of them first.
    #[schema(value_type = Vec<serde_json::Value>)]
    pub messages: Vec<Arc<Message>>,
    /// How many there are in all.
    pub messages_len: usize,
    /// Its newest runs as they are now, errors, and turns of its state: `agent:state_event`s, with
    /// the arguments of a call that is in no message.
    #[schema(value_type = Vec<serde_json::Value>)]
    pub notes: Vec<Note>,
}

/// The body of `POST /api/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionWanted {
    /// `claude-code`, `codex`, `native`, …
    pub harness: String,
    /// The folder it works in, from the root.
    pub workspace: String,
    pub model: Option<String>,
    /// Whom to ask for answers, as the configuration names it.
    pub provider: Option<String>,
    /// `manual`, `careful`, `auto-edit` or `yolo`; `careful` if it does not say.
    pub preset: Option<String>,
    /// What it is told as soon as it can hear.
    pub prompt: Option<String>,
}

/// The body of `POST /api/chat/prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatPrompt {
    /// The folder it works in; needed where no session is named.
    pub folder_path: Option<String>,
    pub session_id: Option<String>,
    pub prompt: String,
    /// `false` for the whole answer at once.
    pub stream: Option<bool>,
    pub model: Option<String>,
    /// Whom to ask, as the configuration names it.
    pub provider: Option<String>,
}

/// The body of `POST /api/chat/tool`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatTools {
    pub session_id: String,
    pub tool_calls: Vec<ToolDecision>,
    pub stream: Option<bool>,
}

/// What somebody says to a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolDecision {
    pub tool_id: String,
    pub approved: bool,
    /// Why not; to a question, the answer.
    pub message: Option<String>,
}

/// Which chat is meant.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatWhere {
    pub folder_path: Option<String>,
    pub session_id: Option<String>,
}

/// The body of `PATCH /api/chat/config`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatConfigWanted {
    pub folder_path: Option<String>,
    pub session_id: Option<String>,
    pub yolo_mode: bool,
}

/// How a chat is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatConfig {
    /// It asks nobody.
    pub yolo_mode: bool,
}

/// A whole answer of `POST /api/chat/prompt` or `/tool` without a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatAnswer {
    pub session_id: SessionId,
    pub response: String,
    /// `success` or `error`.
    pub status: String,
    /// The sub-state it rests in.
    pub state: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// It asks before it goes on.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolApprovalRequired {
    #[schema(value_type = String)]
    pub code: &'static str,
    pub message: String,
    pub session_id: SessionId,
    /// As the `TOOL_USE` lines of a stream.
    pub tool_calls: Vec<serde_json::Value>,
}

/// What sessions can be begun with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HarnessList {
    pub harnesses: Vec<HarnessOffered>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HarnessOffered {
    /// As [`SessionWanted`] takes it.
    pub harness: String,
    pub possible: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What can be chosen as its provider.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
}

/// A session has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBegun {
    pub session_id: SessionId,
}

/// The session in the manager's words, and what its page shows then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagerShown {
    pub state: ManagerState,
    #[serde(flatten)]
    pub flags: Flags,
}

/// `GET /api/live/summary`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub needs_you_count: usize,
    pub autonomous_count: usize,
    pub delivered_count: usize,
    /// On the operator's day, once the files are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cost_today_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens_today: Option<u64>,
    /// Agents that run and cannot be read: nothing else is known of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub unreadable: Vec<UnreadableAgent>,
}

/// The stream's `session_removed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    pub session_id: SessionId,
}

/// `POST /api/links`: what the link shall allow; `operate` if it does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkWanted {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Also write a file that leads a browser of this machine there.
    #[serde(default)]
    pub file: bool,
}

/// A link that signs one browser in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// To be put behind the address by which the browser reaches us.
    pub path: String,
    pub lives_s: u64,
    /// The file that leads there. It goes when the link is used, or after a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// `GET /api/hello`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HelloWanted {
    /// The id that the browser was given when it signed in.
    pub browser: String,
    /// The host in the page's own address.
    pub host: String,
    /// 16 bytes of the page's choice, in hex.
    pub nonce: String,
}

/// The daemon's answer to a browser that wants to know who it speaks to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// What the browser proves itself by, until the daemon starts again.
    pub challenge: String,
    /// That we have the browser's key.
    pub proof: String,
}

/// A browser's key. It is sent this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedIn {
    pub browser: String,
    pub key: String,
}

/// `POST /api/sign-in`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignIn {
    pub code: String,
}

/// `GET /api/usage`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// By time, the oldest first; else the dearest first.
    pub rows: Vec<UsageRow>,
    pub totals: UsageTotals,
    /// The day of the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices_of: Option<String>,
    /// What could not be read.
    pub troubles: Vec<UsageTrouble>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageRow {
    /// The day, the model, the session; none where the files do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<Harness>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(flatten)]
    pub totals: UsageTotals,
}

/// Under the names that `qd usage --json` has.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotals {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_creation_tokens: u64,
    pub cache_read_tokens: u64,
    pub total_tokens: u64,
    pub total_cost: f64,
    pub estimated: bool,
}

impl From<&Sum> for UsageTotals {
    fn from(sum: &Sum) -> Self {
        Self {
            input_tokens: sum.tokens.input,
            output_tokens: sum.tokens.output,
            cache_creation_tokens: sum.tokens.cache_written(),
            cache_read_tokens: sum.tokens.cache_read,
            total_tokens: sum.tokens.total(),
            total_cost: sum.dollars,
            estimated: sum.is_estimate,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageTrouble {
    pub path: String,
    pub what: String,
}

/// `GET /api/history`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryPage {
    pub sessions: Vec<HistoryEntry>,
    /// What to ask for next; none after the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Ours, or the client's own where nothing else is known of it.
    pub session_id: String,
    pub harness: Harness,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What was said; the words that were looked for are between U+0002 and U+0003.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
}

/// `GET /api/health`: who we are and how we are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub version: String,
    pub pid: u32,
    pub port: u16,
    #[serde(flatten)]
    pub health: Health,
    /// Hooks that scripts posted and that were not taken.
    #[serde(default)]
    #[schema(required = true)]
    pub refused_hooks: RefusedHooks,
    /// Those whom notices go to, and how they fare.
    #[serde(default)]
    #[schema(required = true)]
    pub receivers: Vec<ReceiverView>,
}

/// `GET /api/requests`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestList {
    pub requests: Vec<RequestOf>,
}

/// A request and the session that waits for it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestOf {
    pub session_id: SessionId,
    pub harness: Harness,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    pub request: RequestView,
}

/// The body of `POST /api/requests/{key}/decision`.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionWanted {
    pub decision: Decision,
    /// The request's `revision`, as it was shown. Where it asks for something else by now, nothing
    /// is sent and the answer is 409 `replaced`. Without it nothing is allowed of a request that has
    /// changed: 409 `revision_needed`.
    pub revision: Option<String>,
    /// The same again changes nothing.
    pub key: Option<String>,
}

/// The body of `POST /api/sessions/{id}/input`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromptWanted {
    pub text: String,
    /// The same again changes nothing.
    pub key: Option<String>,
}

/// The body of `POST /api/sessions/archive`: these sessions, or all that were silent for so long.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveWanted {
    pub sessions: Option<Vec<String>>,
    pub silent_for_ms: Option<u64>,
}

/// The body of `POST /api/sessions/unarchive`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnarchiveWanted {
    pub sessions: Vec<String>,
}

/// The sessions that were moved. One that is not among them has something that lives, or was there
/// before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Archived {
    pub sessions: Vec<SessionId>,
}

/// The body of `POST /api/presence`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PresenceTold {
    /// What the tab called itself when it opened its stream.
    pub tab: String,
    /// The operator has it before them, and moved something not long ago.
    pub focused: bool,
    /// It shows the board.
    #[serde(default)]
    pub board: bool,
    /// The session whose page it shows.
    pub session: Option<String>,
}

/// `GET /api/push/key`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PushKeyView {
    /// For `applicationServerKey`.
    pub key: String,
}

/// The body of `POST /api/push/test`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestWanted {
    /// The device; every receiver if it is left out.
    pub id: Option<String>,
}

/// A test is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestSent {
    /// To so many.
    pub receivers: usize,
}

/// The body of `POST /api/sessions/{id}/yolo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct YoloWanted {
    pub on: bool,
}

/// The body of `POST /api/sessions/{id}/policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyWanted {
    /// Null: as its project has it.
    pub preset: Option<Preset>,
}

/// The agent's side has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    pub decision_id: DecisionId,
    /// `delivered`, or `confirmed` where the agent has gone on already.
    pub state: &'static str,
}

/// Somebody was first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    #[serde(flatten)]
    pub problem: Problem,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstAnswer>,
}

/// The answer that stands.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirstAnswer {
    pub decision: Decision,
    pub by: By,
    /// The rule that gave it, if no person did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleName>,
    pub at: Timestamp,
    pub state: &'static str,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    pub code: String,
    pub message: String,
    /// The same request may succeed later.
    pub retryable: bool,
}

impl From<Detail> for SessionDetail {
    fn from(detail: Detail) -> Self {
        let Detail { card, evidence, timeline, attached } = detail;
        let state = manager::of(&card.agent_state);
        let manager_view = ManagerShown { state, flags: state.flags(approves_alone(&card)) };
        Self {
            manager_view,
            monitor_view: card.monitor_view,
            evidence,
            runs: timeline.runs,
            groups: timeline.spans,
            attached: attached.map(|Attached { state, messages, messages_len, notes }| {
                AttachedTo { state, messages, messages_len, notes }
            }),
            card,
        }
    }
}

/// The client asks nobody, in the words of those that say so.
fn approves_alone(card: &Card) -> bool {
    matches!(card.mode.as_deref(), Some("bypassPermissions" | "yolo" | "never" | "dontAsk"))
}

impl Summary {
    pub fn of(groups: impl Iterator<Item = Group>, today: Option<Sum>) -> Self {
        let mut summary = Self {
            total_cost_today_usd: today.map(|today| today.dollars),
            total_tokens_today: today.map(|today| today.tokens.total()),
            ..Self::default()
        };
        for group in groups {
            match group {
                Group::NeedsYou => summary.needs_you_count += 1,
                Group::Autonomous => summary.autonomous_count += 1,
                Group::Delivered => summary.delivered_count += 1,
            }
        }
        summary
    }
}
