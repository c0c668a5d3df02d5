//! How far the telling of one matter has come.

use crate::moment::Timestamp;

use super::herald::Focus;
use super::{Matter, Moment, Rules};

/// The table is in `spec/notices.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It stands, and not for long enough yet.
    Waiting { due: Timestamp },
    /// The operator had the page before them for its whole dwell.
    Seen,
    /// It stood long enough in quiet hours.
    Held,
    /// The operator was told.
    Told,
    /// Nobody is to be told.
    Silent,
}

/// What is to be done about it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Stay,
    See,
    Hold,
    Tell,
}

/// What there is to know beside the matter itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around<'a> {
    pub now: Moment,
    pub rules: &'a Rules,
    pub focus: Focus,
    /// When the operator was last told of its session.
    pub told_at: Option<Timestamp>,
}

impl Phase {
    pub(super) fn judge(self, matter: &Matter, around: &Around<'_>) -> Verdict {
        let is_ripe = self.ripe_at(matter, around).is_some_and(|ripe| ripe <= around.now.at);
        let is_there = around.focus == Focus::There;
        match (is_ripe, is_there, around.rules.is_quiet(around.now.minute)) {
            (false, _, _) => Verdict::Stay,
            (true, true, _) => Verdict::See,
            (true, false, true) => Verdict::Hold,
            (true, false, false) => Verdict::Tell,
        }
    }

    /// When something is to be done about it; none while only news can change that.
    pub(super) fn ripe_at(self, matter: &Matter, around: &Around<'_>) -> Option<Timestamp> {
        // An answer that fails makes it ripe again.
        if matter.is_under_way() {
            return None;
        }
        let cooled = around.told_at.filter(|_| matter.is_state() || matter.is_of_subagent());
        let cooled = cooled.map(|at| at.plus_ms(around.rules.cooldown_ms));
        let after_cooldown = |due: Timestamp| cooled.map_or(due, |cooled| cooled.max(due));
        match self {
            Self::Waiting { due } => Some(after_cooldown(due)),
            // Who saw that a session is idle knows it. A request that stays open after the operator
            // has gone may have come when nobody looked at the page any more.
            Self::Seen => match around.focus {
                Focus::Gone { since } if !matter.is_state() => {
                    Some(after_cooldown(since.plus_ms(around.rules.cooldown_ms)))
                }
                Focus::Gone { .. } | Focus::There => None,
            },
            Self::Held => Some(Timestamp::ZERO),
            Self::Told | Self::Silent => None,
        }
    }
}
