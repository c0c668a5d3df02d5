//! What agents have asked for, as the journal remembers: to try a policy on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use qd_session::event::Event;
use qd_session::id::{RequestId, SessionId};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact};
use qd_store::JournalReader;
use qd_store::limits::PAGE_ROWS_MAX;

use crate::Error;
use crate::limits::PAST_REQUESTS_MAX;

#[derive(Debug, Default)]
pub struct PastRequests {
    /// The most frequent first.
    pub requests: Vec<PastRequest>,
    /// There were more distinct ones than are kept.
    pub left_out: usize,
}

/// A request, and how often it was made in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastRequest {
    pub tool: String,
    pub input: Option<Arc<str>>,
    pub cwd: Option<Arc<str>>,
    pub count: usize,
    pub last_at: Timestamp,
}

type Distinct = (String, Option<Arc<str>>, Option<Arc<str>>);

impl PastRequests {
    /// Permissions that were asked for. Works beside a daemon that holds the journal.
    pub fn read(journal: &Path) -> Result<Self, Error> {
        let reader = JournalReader::open(journal).map_err(Error::Journal)?;
        // What a session said of its folder long ago may be in its snapshot only.
        let loaded = reader.load().map_err(Error::Journal)?;
        let mut folders: BTreeMap<SessionId, Arc<str>> = BTreeMap::new();
        for replayed in &loaded.sessions {
            let about = replayed.session.monitor().about();
            if let Some(cwd) = about.and_then(|about| about.cwd.as_ref()) {
                folders.insert(replayed.session.id().clone(), Arc::clone(&cwd.value));
            }
        }
        let mut found = Found::default();
        let mut after = 0;
        loop {
            let page = reader.entries(after, PAGE_ROWS_MAX).map_err(Error::Journal)?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for numbered in page {
                let Event::Observed { event } = numbered.entry.event else { continue };
                let Fact::ApprovalRequested { request, ask, .. } = event.fact else { continue };
                let cwd = folders.get(&numbered.entry.session).cloned();
                found.take(numbered.entry.session, request, ask, cwd, event.at);
            }
        }
        Ok(found.counted())
    }
}

/// A request is told by several sources, and twice by some: the fullest telling counts.
#[derive(Default)]
struct Found {
    told: BTreeMap<(SessionId, RequestId), (Distinct, Timestamp)>,
    left_out: BTreeSet<(SessionId, RequestId)>,
}

impl Found {
    fn take(
        &mut self,
        session: SessionId,
        request: RequestId,
        ask: Ask,
        cwd: Option<Arc<str>>,
        at: Timestamp,
    ) {
        let key = (session, request);
        let tool = ask.tool.map(|tool| tool.to_string()).unwrap_or_default();
        if let Some(((known_tool, known_input, _), last_at)) = self.told.get_mut(&key) {
            if known_tool.is_empty() {
                *known_tool = tool;
            }
            if known_input.is_none() {
                *known_input = ask.input;
            }
            *last_at = at.max(*last_at);
        } else if self.told.len() < PAST_REQUESTS_MAX {
            self.told.insert(key, ((tool, ask.input, cwd), at));
        } else if self.left_out.len() < PAST_REQUESTS_MAX {
            self.left_out.insert(key);
        }
    }

    fn counted(self) -> PastRequests {
        let mut counts: BTreeMap<Distinct, (usize, Timestamp)> = BTreeMap::new();
        for (distinct, at) in self.told.into_values() {
            let (count, last_at) = counts.entry(distinct).or_insert((0, at));
            *count += 1;
            *last_at = at.max(*last_at);
        }
        let each = |((tool, input, cwd), (count, last_at))| PastRequest {
            tool,
            input,
            cwd,
            count,
            last_at,
        };
        let mut requests: Vec<PastRequest> = counts.into_iter().map(each).collect();
        requests.sort_by_key(|request| std::cmp::Reverse((request.count, request.last_at)));
        PastRequests { requests, left_out: self.left_out.len() }
    }
}
