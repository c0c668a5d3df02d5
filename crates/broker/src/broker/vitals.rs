//! Signs of life of the processes that carry sessions: the broker's half that shows them.

use std::collections::BTreeMap;

use qd_session::id::{ProcessKey, SessionId};
use qd_session::moment::Timestamp;

use super::{Broker, Output};
use crate::vital::{Vital, Watched};

impl Broker {
    /// What the operator has set; none: nothing is ever called stalled.
    pub fn set_stalled_after(&mut self, after_ms: Option<u64>) {
        self.vitals.stalled_after_ms = after_ms;
    }

    /// The processes to look at: those that carry a session on the board that somebody else
    /// started.
    pub fn watched(&self) -> Vec<Watched> {
        let mut watched = BTreeMap::<&ProcessKey, bool>::new();
        for tracked in self.roster.values() {
            let Some(shown) = &tracked.shown else { continue };
            if shown.ended.is_none() && tracked.session.driven().is_none() {
                for process in tracked.session.carriers() {
                    *watched.entry(process).or_default() |= shown.works;
                }
            }
        }
        let watched = watched.into_iter();
        watched.map(|(process, works)| Watched { process: process.clone(), works }).collect()
    }

    pub(super) fn take_vitals(
        &mut self,
        now: Timestamp,
        seen: &[Vital],
        outputs: &mut Vec<Output>,
    ) {
        let changed = self.vitals.take(seen);
        let stalled = |id: &SessionId| {
            let shown = self.roster.get(id).and_then(|tracked| tracked.shown.as_ref());
            shown.is_some_and(|shown| shown.is_stalled)
        };
        let affected = self.roster.iter().filter(|(id, tracked)| {
            tracked.shown.is_some()
                && (stalled(id) || tracked.session.carriers().any(|one| changed.contains(one)))
        });
        let affected: Vec<SessionId> = affected.map(|(id, _)| id.clone()).collect();
        affected.iter().for_each(|id| self.show(now, id, outputs));
    }
}
