//! What sessions may cost before the operator is called.

use qd_harness::usage;
use qd_session::Session;
use qd_session::moment::Timestamp;
use qd_session::operator::{AgentState, Group, SubState};
use qd_session::policy::{Budget, Spent, Sum};

use crate::rules::{self, Ruling};

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
        self.effective(session, &rules::layer(session)).budget()
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
