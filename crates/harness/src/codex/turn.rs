//! A turn of a thread, as far as it is known.

use std::sync::Arc;

use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{Ask, Failure};

use super::mark::Mark;

#[derive(Debug, Default)]
pub struct Turn {
    pub id: Option<Arc<str>>,
    pub began_at: Timestamp,
    pub open: bool,
    /// Somebody's words stand in it. A turn without them compacts the conversation.
    pub prompted: bool,
    pub plan_mode: bool,
    /// It only compacts, as far as its rollout shows.
    pub compacting: bool,
    /// The conversation was compacted in it, and nobody had said anything.
    pub only_compacted: bool,
    pub failed: bool,
    /// The most specific reason heard for its last failed request, or for its end.
    pub failure: Option<Failure>,
    /// What the agent said last.
    pub said: Option<String>,
    /// A plan it proposed: answered by the next turn.
    pub plan: Option<Arc<str>>,
    /// A question that did not stop the turn.
    pub question: Option<Ask>,
    /// The newest work that was told of it. A hook that ran late is stamped when it came, so this
    /// may be after the turn's end by its rollout.
    pub worked: Option<Mark>,
    pub heard: Heard,
}

/// Who has spoken of this turn.
#[derive(Debug, Default, Clone, Copy)]
pub struct Heard {
    pub hooks: bool,
    pub rollout: bool,
    pub app_server: bool,
    pub exec: bool,
}

/// The app-server says that the thread waits, and has not yet said for what.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    pub due: Timestamp,
    pub mark: Mark,
}

impl Turn {
    pub fn name(&self) -> &str {
        self.id.as_deref().unwrap_or("turn")
    }

    /// Who began the new turn has spoken of it.
    pub fn heard_from(&self, mark: Mark) -> Heard {
        match mark.source {
            Source::Hook => Heard { hooks: true, ..Heard::default() },
            Source::Transcript => Heard { rollout: true, ..Heard::default() },
            Source::Driver
            | Source::Fallback
            | Source::Process
            | Source::Otel
            | Source::Registry => Heard::default(),
        }
    }
}

impl Heard {
    /// Nobody tells how calls end but hooks, and those do not tell of refusals.
    pub fn only_hooks(self) -> bool {
        self.hooks && !self.rollout && !self.app_server && !self.exec
    }

    /// Somebody who knows the end of a turn is listening.
    pub fn knows_ends(self) -> bool {
        self.rollout || self.app_server || self.exec
    }

    pub fn anybody(self) -> bool {
        self.hooks || self.knows_ends()
    }
}
