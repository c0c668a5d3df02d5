//! A session in detail: its card, what it did over time, and what that is known from.

use std::sync::Arc;

use qd_session::Session;
use qd_session::event::{Entry, Event};
use qd_session::id::SessionId;
use qd_session::logbook::{Message, Note};
use qd_session::machine::State;
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{Ask, Fact};
use qd_session::operator::Group;
use qd_session::timeline::Timeline;
use qd_store::Journal;
use serde::Serialize;

use qd_broker::{Card, NotFound};

/// Full pages of a session's history that are read for its timeline; the newest is kept. The
/// journal keeps far fewer entries of one session once it had time to fold them.
const HISTORY_PAGES_MAX: usize = 8;

/// Facts shown as evidence, the newest.
const EVIDENCE_LINES_MAX: usize = 20;

/// Longest line of evidence.
const EVIDENCE_TEXT_CHARS_MAX: usize = 200;

/// Messages of a driven session that whoever attaches to it may be given, the newest. They are
/// shared and cost nothing here; who reads them asks for far fewer at a time.
const ATTACHED_MESSAGES_MAX: usize = 2_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    pub card: Card,
    /// The newest first.
    pub evidence: Vec<EvidenceLine>,
    pub timeline: Timeline,
    /// Of a session that we drive.
    pub attached: Option<Attached>,
}

/// Where a driven session is, in full, and what was said in it last.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    pub state: State,
    /// The newest, the oldest of them first.
    pub messages: Vec<Arc<Message>>,
    /// How many there are in all.
    pub messages_len: usize,
    /// What ran in it, what went wrong, and where it was held; the newest.
    pub notes: Vec<Note>,
}

impl Attached {
    pub(crate) fn to(session: &Session) -> Option<Self> {
        let (machine, logbook) = session.machine().zip(session.logbook())?;
        let all = logbook.conversation().messages();
        let newest = all.len().saturating_sub(ATTACHED_MESSAGES_MAX);
        let messages = all[newest..].to_vec();
        let notes = logbook.notes().all().to_vec();
        Some(Self { state: machine.state().clone(), messages, messages_len: all.len(), notes })
    }
}

/// A fact, when it happened and who told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvidenceLine {
    pub at: Timestamp,
    pub source: Source,
    pub text: String,
}

/// Why there is no detail.
#[derive(Debug, thiserror::Error)]
pub enum NoDetail {
    #[error("no session is meant")]
    Session(NotFound),
    #[error("the journal: {0}")]
    Journal(#[source] qd_store::Error),
}

impl Detail {
    /// Reads the session's journal. Blocks.
    pub(crate) fn read(journal: &Journal, card: Card, now: Timestamp) -> Result<Self, NoDetail> {
        let entries = newest(journal, &card.session_id).map_err(NoDetail::Journal)?;
        Ok(Self::of(card, &entries, now))
    }

    /// How long it was at work.
    pub fn worked_ms(&self, now: Timestamp) -> u64 {
        let at_work = self.timeline.spans.iter().filter(|span| span.group == Group::Autonomous);
        at_work.map(|span| span.to.unwrap_or(now).ms_since(span.from)).sum()
    }

    /// Pure.
    pub fn of(card: Card, entries: &[Entry], now: Timestamp) -> Self {
        let timeline = Timeline::of(&card.session_id, entries, now);
        Self { evidence: evidence(&card, entries), timeline, card, attached: None }
    }
}

/// The session's entries, or as many of the newest as one call reads.
fn newest(journal: &Journal, session: &SessionId) -> Result<Vec<Entry>, qd_store::Error> {
    let mut page = journal.history(session, 0, usize::MAX)?;
    for _ in 1..HISTORY_PAGES_MAX {
        let Some(last) = page.last().map(|last| last.seq) else { break };
        let next = journal.history(session, last, usize::MAX)?;
        if next.is_empty() {
            break;
        }
        // One full page of the newest is what is kept in memory, and two at most.
        let surplus = (page.len() + next.len()).saturating_sub(qd_store::limits::PAGE_ROWS_MAX);
        page.drain(..surplus.min(page.len()));
        page.extend(next);
    }
    Ok(page.into_iter().map(|numbered| numbered.entry).collect())
}

/// The newest facts, and the last one of each source that has none among them.
fn evidence(card: &Card, entries: &[Entry]) -> Vec<EvidenceLine> {
    let mut lines: Vec<EvidenceLine> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Observed { event } => {
                let text = told(&event.fact);
                Some(EvidenceLine { at: event.at, source: event.source, text })
            }
            Event::SetUp { .. }
            | Event::Driven { .. }
            | Event::Troubled { .. }
            | Event::Adopted { .. }
            | Event::Dismissed
            | Event::Archived
            | Event::Unarchived
            | Event::ClockSetBack { .. }
            | Event::Slept
            | Event::BudgetSeen { .. }
            | Event::PresetChosen { .. }
            | Event::ClientYolo { .. } => None,
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.at));
    lines.truncate(EVIDENCE_LINES_MAX);
    for last in &card.agent_state.evidence {
        if lines.iter().all(|line| line.source != last.source) {
            let text = last.event.replace('_', " ");
            lines.push(EvidenceLine { at: last.at, source: last.source, text });
        }
    }
    lines
}

/// A fact in a few words.
fn told(fact: &Fact) -> String {
    let asked = |ask: &Ask| {
        let tool = ask.tool.as_ref().map(|tool| tool.as_str());
        [tool, ask.text.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(": ")
    };
    let about = match fact {
        Fact::ToolStarted { tool, about, .. } => match about {
            Some(about) => format!("{tool} {about}"),
            None => tool.to_string(),
        },
        Fact::ToolCompleted { ok, .. } => if *ok { "ok" } else { "failed" }.to_owned(),
        Fact::ApprovalRequested { ask, .. }
        | Fact::QuestionAsked { ask, .. }
        | Fact::PlanProposed { ask, .. } => asked(ask),
        Fact::UserPrompt { text } => text.as_deref().unwrap_or_default().to_owned(),
        Fact::LlmRetrying { message } => message.as_deref().unwrap_or_default().to_owned(),
        Fact::TurnFailed { failure } => failure.message.as_deref().unwrap_or_default().to_owned(),
        Fact::TaskCompleted { subject } => subject.as_deref().unwrap_or_default().to_owned(),
        Fact::SubagentStarted { kind } => kind.as_deref().unwrap_or_default().to_owned(),
        Fact::TitleKnown { title, .. } => title.to_string(),
        Fact::ModeChanged { mode } => mode.to_string(),
        Fact::ProcessSeen { process } | Fact::ProcessGone { process } => process.to_string(),
        Fact::Unrecognised { text } => text.to_string(),
        Fact::SessionStarted { .. }
        | Fact::TurnStarted
        | Fact::LlmStarted
        | Fact::ApprovalResolved { .. }
        | Fact::QuestionAnswered { .. }
        | Fact::PlanResolved { .. }
        | Fact::CompactionStarted
        | Fact::CompactionEnded
        | Fact::SubagentEnded
        | Fact::TurnCompleted { .. }
        | Fact::Interrupted
        | Fact::SessionEnded { .. }
        | Fact::ProcessMissing
        | Fact::UsageReported { .. }
        | Fact::PlaceKnown { .. } => String::new(),
    };
    let name = fact.name().replace('_', " ");
    let text = if about.trim().is_empty() { name } else { format!("{name}: {}", about.trim()) };
    match text.char_indices().nth(EVIDENCE_TEXT_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
