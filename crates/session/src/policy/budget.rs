//! What a session or a day may cost before the operator is called.

use serde::{Deserialize, Serialize};

/// Limits for one session and for one day of the operator's; none where there is no number.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    pub session: Amounts,
    pub day: Amounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Amounts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Of work, not of waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u64>,
}

/// What was used up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    pub session: Sum,
    pub day: Sum,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sum {
    pub tokens: u64,
    pub usd: f64,
    pub minutes: u64,
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Exceeded {
    pub span: Span,
    pub measure: Measure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    Session,
    Day,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    Tokens,
    Usd,
    Minutes,
}

impl Budget {
    /// The first limit that is reached: the session's before the day's.
    pub fn exceeded(&self, spent: &Spent) -> Option<Exceeded> {
        let of = |span, measure: Option<Measure>| measure.map(|measure| Exceeded { span, measure });
        of(Span::Session, self.session.reached(&spent.session))
            .or_else(|| of(Span::Day, self.day.reached(&spent.day)))
    }

    /// Where this one says nothing the other holds.
    pub(super) fn or(self, other: Self) -> Self {
        Self { session: self.session.or(other.session), day: self.day.or(other.day) }
    }

    /// Why a written one cannot be used.
    pub(super) fn trouble(&self) -> Option<&'static str> {
        let is_odd =
            |amounts: &Amounts| amounts.usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0);
        [self.session, self.day].iter().any(is_odd).then_some("`usd` is no amount")
    }
}

impl Amounts {
    fn reached(&self, spent: &Sum) -> Option<Measure> {
        // Money that is no number would never reach a limit.
        let usd = self.usd.is_some_and(|most| spent.usd.is_nan() || spent.usd >= most);
        let tokens = self.tokens.is_some_and(|most| spent.tokens >= most);
        let minutes = self.minutes.is_some_and(|most| spent.minutes >= most);
        let reached = [(usd, Measure::Usd), (tokens, Measure::Tokens), (minutes, Measure::Minutes)];
        reached.into_iter().find(|(is_reached, _)| *is_reached).map(|(_, measure)| measure)
    }

    fn or(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.or(other.tokens),
            usd: self.usd.or(other.usd),
            minutes: self.minutes.or(other.minutes),
        }
    }
}
