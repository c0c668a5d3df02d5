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
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub session: Sum,
    pub day: Sum,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Sum {
    pub tokens: u64,
    pub usd: f64,
    pub minutes: u64,
}

impl Spent {
    /// As much of it as that limit is about.
    pub fn of(&self, exceeded: Exceeded) -> f64 {
        let sum = match exceeded.span {
            Span::Session => &self.session,
            Span::Day => &self.day,
        };
        match exceeded.measure {
            Measure::Tokens => sum.tokens as f64,
            Measure::Usd => sum.usd,
            Measure::Minutes => sum.minutes as f64,
        }
    }
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

    /// Whether how long a session has worked makes a difference.
    pub fn counts_minutes(&self) -> bool {
        self.session.minutes.is_some()
    }

    /// The limit that was reached, in words.
    pub fn words(&self, Exceeded { span, measure }: Exceeded) -> String {
        let (amounts, whose) = match span {
            Span::Session => (&self.session, "this session"),
            Span::Day => (&self.day, "today"),
        };
        let most = match measure {
            Measure::Usd => format!("${:.2}", amounts.usd.unwrap_or_default()),
            Measure::Tokens => format!("{} tokens", amounts.tokens.unwrap_or_default()),
            Measure::Minutes => format!("{} min", amounts.minutes.unwrap_or_default()),
        };
        format!("Budget spent: {most} {whose}")
    }

    /// Where this one says nothing the other holds.
    pub(super) fn or(self, other: Self) -> Self {
        Self { session: self.session.or(other.session), day: self.day.or(other.day) }
    }

    /// Why a written one cannot be used.
    pub(super) fn trouble(&self) -> Option<&'static str> {
        let is_odd =
            |amounts: &Amounts| amounts.usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0);
        if [self.session, self.day].iter().any(is_odd) {
            return Some("`usd` is no amount");
        }
        self.day.minutes.is_some().then_some("`minutes` are counted for a session, not for a day")
    }
}

impl Spent {
    /// What was used up since the operator last let it go on. Less than then: a new day.
    pub fn since(&self, seen: &Self) -> Self {
        let since = |now: &Sum, then: &Sum| Sum {
            tokens: now.tokens.checked_sub(then.tokens).unwrap_or(now.tokens),
            usd: if now.usd >= then.usd { now.usd - then.usd } else { now.usd },
            minutes: now.minutes.checked_sub(then.minutes).unwrap_or(now.minutes),
        };
        Self { session: since(&self.session, &seen.session), day: since(&self.day, &seen.day) }
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
