//! What holds for a thread beyond one turn: who approves, where it lives, what it uses.

use std::sync::Arc;

use qd_session::monitor::{Fact, Place, Usage};

use super::mark::Mark;
use super::thread::Thread;
use super::wire;
use crate::excerpt;

#[derive(Debug, Default)]
pub struct Settings {
    /// A model reviews what would be asked: no person is.
    pub auto_review: bool,
    /// Nobody is ever asked.
    pub never_asks: bool,
    pub goal_active: bool,
    pub agent_type: Option<Arc<str>>,
    place: Place,
    usage: Usage,
    mode: Option<Arc<str>>,
    /// The mode was told by somebody who knows plan mode too; a hook does not.
    mode_is_exact: bool,
}

impl Settings {
    pub fn cwd(&self) -> Option<&str> {
        self.place.cwd.as_deref()
    }

    /// Nobody will be asked, whatever a hook or a call says.
    pub fn decides_alone(&self) -> bool {
        self.auto_review || self.never_asks
    }
}

impl Thread {
    /// Tells where the session lives, each part once.
    pub fn lives_in(&mut self, mark: Mark, place: Place) {
        let news = self.settings.place.learn(place);
        if let Some(place) = news.filter(|_| self.agent.is_main()) {
            self.tell(mark, Fact::PlaceKnown { place });
        }
    }

    pub fn uses(&mut self, mark: Mark, news: Usage) {
        let known = &mut self.settings.usage;
        let old = known.clone();
        known.model = news.model.or(known.model.take());
        known.context_tokens = news.context_tokens.or(known.context_tokens);
        known.context_window = news.context_window.or(known.context_window);
        let usage = known.clone();
        if self.agent.is_main() && usage != old && usage.context_tokens.is_some() {
            self.tell(mark, Fact::UsageReported { usage });
        }
    }

    /// The mode in the words of Codex's hooks, where only `never` and the rest differ.
    pub fn hook_mode(&mut self, mark: Mark, mode: &str) {
        self.settings.never_asks = mode == "bypassPermissions";
        if !self.settings.mode_is_exact {
            self.change_mode(mark, mode);
        }
    }

    pub fn apply_settings(&mut self, mark: Mark, told: &wire::Settings) {
        if let Some(reviewer) = &told.approvals_reviewer {
            self.settings.auto_review = reviewer != "user";
        }
        if let Some(policy) = &told.approval_policy {
            self.settings.never_asks = policy.as_str() == Some("never");
        }
        let plan = told.collaboration_mode.as_ref().and_then(|mode| mode.mode.as_deref());
        if let Some(mode) = plan {
            self.turn.plan_mode = mode == "plan";
        }
        if told.approval_policy.is_some() {
            self.settings.mode_is_exact = true;
            let mode = match (plan, self.settings.never_asks, self.settings.auto_review) {
                (Some("plan"), ..) => "plan",
                (_, true, _) => "bypassPermissions",
                (_, _, true) => "autoReview",
                (_, false, false) => "default",
            };
            self.change_mode(mark, mode);
        }
        let model = told.model.as_deref().map(excerpt::label);
        self.uses(mark, Usage { model, ..Usage::default() });
        let cwd = told.cwd.as_deref().map(Arc::from);
        self.lives_in(mark, Place { cwd, ..Place::default() });
    }

    fn change_mode(&mut self, mark: Mark, mode: &str) {
        if self.agent.is_main() && self.settings.mode.as_deref() != Some(mode) {
            self.settings.mode = Some(Arc::from(mode));
            self.tell(mark, Fact::ModeChanged { mode: Arc::from(mode) });
        }
    }
}
