//! What sessions may cost before the operator is called: the broker's half that counts.

use qd_harness::usage;
use qd_session::Session;
use qd_session::event::Event;
use qd_session::id::SessionId;
use qd_session::moment::Timestamp;
use qd_session::operator::{AgentState, Group, SubState};
use qd_session::policy::{Budget, Spent, Sum};

use super::resting::SessionCell;
use super::ruling::{self, Ruling};
use super::{Broker, Output, Tracked};

/// How long a session has worked, and since when it does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    before_ms: u64,
    since: Option<Timestamp>,
    /// A budget was first seen to be spent.
    over_since: Option<Timestamp>,
}

impl Work {
    pub fn add(&mut self, ms: u64) {
        self.before_ms += ms;
    }

    /// It is shown like that from now on.
    pub fn note(&mut self, now: Timestamp, shown: &AgentState) {
        let is_over = shown.state == SubState::BUDGET_EXCEEDED;
        let works = shown.group == Group::Autonomous || is_over;
        match (works, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                self.before_ms += now.ms_since(since);
                self.since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
        self.over_since = match is_over {
            true => self.over_since.or(Some(now)),
            false => None,
        };
    }

    /// The clock was set back by so much.
    pub fn set_back(&mut self, by_ms: u64) {
        let Self { before_ms: _, since, over_since } = self;
        let back = |at: &mut Timestamp| *at = at.minus_ms(by_ms);
        since.iter_mut().chain(over_since).for_each(back);
    }

    fn ms(&self, now: Timestamp) -> u64 {
        self.before_ms + self.since.map_or(0, |since| now.ms_since(since))
    }

    /// When its minutes may be spent although nothing happens.
    pub fn next_look(&self, now: Timestamp, budget: &Budget) -> Option<Timestamp> {
        let most = budget.session.minutes?.saturating_mul(MINUTE_MS);
        self.since?;
        let left = most.checked_sub(self.ms(now)).filter(|left| *left > 0)?;
        Some(now.plus_ms(left))
    }
}

const MINUTE_MS: u64 = 60_000;

impl Ruling {
    pub fn budget(&self, session: &Session) -> Budget {
        self.effective(session, &ruling::layer(session)).budget()
    }

    /// The same of one that may be at rest.
    pub(super) fn budget_of(&self, session: &SessionCell) -> Budget {
        self.effective_in(session.folder().as_deref(), &session.layer()).budget()
    }

    /// Calls the operator where a budget is spent and nobody has said that it may go on.
    pub fn call(
        &self,
        now: Timestamp,
        session: &Session,
        spent: &Spent,
        work: &Work,
        state: &mut AgentState,
    ) {
        let budget = self.budget(session);
        let seen = session.budget_seen();
        if let Some(exceeded) = budget.exceeded(&spent.since(&seen)) {
            let since = work.over_since.unwrap_or(now);
            state.spend_budget(exceeded, seen.of(exceeded), budget.words(exceeded), since);
        }
    }
}

/// What was used up, by a session and by all today.
pub fn spent(
    now: Timestamp,
    session: &Session,
    counted: Option<&usage::Sum>,
    today: Option<&usage::Sum>,
    work: &Work,
) -> Spent {
    let sum = |sum: Option<&usage::Sum>| {
        let (tokens, usd) = sum.map_or((0, 0.0), |sum| (sum.tokens.total(), sum.dollars));
        Sum { tokens, usd, minutes: 0 }
    };
    let minutes = work.ms(now) / MINUTE_MS;
    // Where no files tell, the answers did.
    let told = || {
        session.logbook().map_or(sum(None), |logbook| {
            let used = logbook.used();
            Sum { tokens: used.tokens(), usd: used.micro_usd as f64 / 1e6, minutes: 0 }
        })
    };
    let spent = counted.map_or_else(told, |counted| sum(Some(counted)));
    Spent { session: Sum { minutes, ..spent }, day: sum(today) }
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
