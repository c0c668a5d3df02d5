//! What sessions may cost before the operator is called: the broker's half that counts.

use qd_harness::usage;
use qd_session::event::Event;
use qd_session::id::SessionId;
use qd_session::moment::Timestamp;
use qd_session::policy::{Budget, Spent};

use super::resting::SessionCell;
use super::{Broker, Output, Tracked};
use crate::budgets::spent;
use crate::rules::Ruling;

impl Ruling {
    /// The budget of a session that may be at rest.
    pub(super) fn budget_of(&self, session: &SessionCell) -> Budget {
        self.effective_in(session.folder().as_deref(), &session.layer()).budget()
    }
}

impl Broker {
    pub(super) fn take_today(
        &mut self,
        now: Timestamp,
        sum: usage::Sum,
        outputs: &mut Vec<Output>,
    ) {
        self.today = Some(sum);
        let shown = self.roster.iter().filter(|(_, tracked)| tracked.shown.is_some());
        let limited = shown.filter(|(_, tracked)| {
            let day = self.ruling.budget_of(&tracked.session).day;
            day.usd.is_some() || day.tokens.is_some()
        });
        let limited: Vec<SessionId> = limited.map(|(id, _)| id.clone()).collect();
        for id in &limited {
            self.show(now, id, outputs);
            self.mind_budget(now, id, outputs);
        }
    }

    /// What it means that the operator has seen a card: that a budget is spent is not told again
    /// before as much again is spent.
    pub(super) fn dismissal(&self, now: Timestamp, id: &SessionId) -> Event {
        let over = self
            .roster
            .get(id)
            .filter(|tracked| tracked.shown.as_ref().is_some_and(|shown| shown.is_over_budget));
        match over {
            Some(tracked) => Event::BudgetSeen { spent: self.spent_by(now, tracked) },
            None => Event::Dismissed,
        }
    }

    /// The operator knows what a session has spent, and lets it go on.
    pub(super) fn budget_seen(&self, now: Timestamp, id: &SessionId) -> Event {
        let spent = self.roster.get(id).map(|tracked| self.spent_by(now, tracked));
        Event::BudgetSeen { spent: spent.unwrap_or_default() }
    }

    pub(super) fn spent_by(&self, now: Timestamp, tracked: &Tracked) -> Spent {
        let (session, counted) = (tracked.session.peek(), tracked.spent.as_deref());
        spent(now, &session, counted, self.today.as_ref(), &tracked.work)
    }

    /// Sessions at work whose minutes are limited: how long they had worked before is not known to
    /// a broker that was just started.
    pub fn limited_by_minutes(&self) -> Vec<SessionId> {
        let shown = self.roster.iter().filter(|(_, tracked)| {
            let lives = tracked.shown.as_ref().is_some_and(|shown| shown.ended.is_none());
            lives && self.ruling.budget_of(&tracked.session).counts_minutes()
        });
        shown.map(|(id, _)| id.clone()).collect()
    }
}
