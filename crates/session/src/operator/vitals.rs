//! What the processes behind a session say about it: that they are stopped, or that nothing of them
//! has moved for long.
//!
//! Silence is not work. A stopped process can do nothing before somebody lets it go on; one that
//! neither reads, nor writes, nor has a child that computes may wait for ever.

use std::borrow::Cow;

use serde_json::json;

use super::state::{AgentState, Group, SubState, urgency_rank};
use crate::moment::{Source, Timestamp};

/// Signs of life of all processes that carry a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vitals {
    /// All of them are stopped, the last one since then.
    pub stopped_since: Option<Timestamp>,
    /// None has shown a sign of life since then: no byte in its files, none on a socket, no
    /// computing child. `None` where that cannot be measured.
    pub silent_since: Option<Timestamp>,
}

impl AgentState {
    /// Takes signs of life into account. `stalled_after_ms` is the operator's patience; without
    /// one nothing is called stalled.
    pub fn heed(&mut self, now: Timestamp, vitals: &Vitals, stalled_after_ms: Option<u64>) {
        if let Some(since) = vitals.stopped_since {
            return self.stop(since);
        }
        let due = vitals.stalls_at(self, stalled_after_ms);
        if let (Some(since), true) = (vitals.silent_since, due.is_some_and(|due| due <= now)) {
            self.stall(since);
        }
    }

    /// What waits for more than `fg` says so; it cannot be answered before that either.
    fn stop(&mut self, since: Timestamp) {
        let is_less = match self.group {
            Group::NeedsYou => urgency_rank(&self.state) > urgency_rank(&SubState::STOPPED),
            Group::Autonomous => true,
            Group::Delivered => return,
        };
        if !is_less {
            let context = self.context.get_or_insert_with(|| json!({}));
            context["stoppedSince"] = json!(since.0);
            return;
        }
        self.context = Some(json!({ "while": self.state, "hint": "fg" }));
        (self.group, self.state) = (Group::NeedsYou, SubState::STOPPED);
        self.label = "Stopped: type fg in its terminal".to_owned();
        self.told_by_process(since, 0.99, "its process is stopped, by Ctrl-Z or a signal");
    }

    fn stall(&mut self, since: Timestamp) {
        self.context = Some(json!({ "while": self.state, "label": self.label }));
        self.state = SubState::STALLED;
        self.label = "No sign of life".to_owned();
        let rule = "no output, no network traffic and no computing child process for a long time";
        self.told_by_process(since, 0.7, rule);
    }

    fn told_by_process(&mut self, since: Timestamp, confidence: f32, rule: &'static str) {
        (self.since, self.source, self.confidence) = (since, Source::Process, confidence);
        self.rule = Cow::Borrowed(rule);
    }
}

impl Vitals {
    /// When a session that is shown like this counts as stalled if nothing moves.
    pub fn stalls_at(
        &self,
        state: &AgentState,
        stalled_after_ms: Option<u64>,
    ) -> Option<Timestamp> {
        const AT_WORK: [SubState; 6] = [
            SubState::THINKING,
            SubState::ACTING,
            SubState::DELEGATING,
            SubState::COMPACTING,
            SubState::RETRYING,
            SubState::LOOPING,
        ];
        let works = state.group == Group::Autonomous && AT_WORK.contains(&state.state);
        Some(self.silent_since.filter(|_| works)?.plus_ms(stalled_after_ms?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Urgency;

    const MINUTE_MS: u64 = 60_000;

    fn shown(group: Group, state: SubState) -> AgentState {
        AgentState {
            group,
            state,
            label: "label".to_owned(),
            core_label: None,
            urgency: Urgency::Usual,
            confidence: 0.9,
            source: Source::Hook,
            rule: "rule".into(),
            context: None,
            since: Timestamp(1),
            evidence: Vec::new(),
        }
    }

    #[track_caller]
    fn check(before: (Group, SubState), vitals: Vitals, after: (Group, SubState)) {
        let mut state = shown(before.0, before.1);
        state.heed(Timestamp(10 * MINUTE_MS), &vitals, Some(5 * MINUTE_MS));
        assert_eq!((state.group, state.state), after);
    }

    #[test]
    fn a_stopped_process_needs_you_before_it_can_do_anything() {
        let since = Some(Timestamp(9 * MINUTE_MS));
        let stopped = Vitals { stopped_since: since, silent_since: Some(Timestamp(1)) };
        let needs = |state| (Group::NeedsYou, state);
        for state in [SubState::THINKING, SubState::ACTING, SubState::UNKNOWN, SubState::STALLED] {
            check((Group::Autonomous, state), stopped, needs(SubState::STOPPED));
        }
        for state in [SubState::INTERRUPTED, SubState::IDLE] {
            check(needs(state), stopped, needs(SubState::STOPPED));
        }
        for state in [SubState::NEEDS_PERMISSION, SubState::USAGE_LIMIT, SubState::PAUSED] {
            check(needs(state.clone()), stopped, needs(state));
        }
        let delivered = (Group::Delivered, SubState::TASK_COMPLETE);
        check(delivered.clone(), stopped, delivered);
        let mut asks = shown(Group::NeedsYou, SubState::NEEDS_PERMISSION);
        asks.heed(Timestamp(10 * MINUTE_MS), &stopped, None);
        assert_eq!(asks.context, Some(json!({ "stoppedSince": 9 * MINUTE_MS })));
    }

    #[test]
    fn only_work_without_a_sign_of_life_for_long_is_stalled() {
        let silent = |minutes: u64| Vitals {
            stopped_since: None,
            silent_since: Some(Timestamp(minutes * MINUTE_MS)),
        };
        let auto = |state| (Group::Autonomous, state);
        for state in [SubState::THINKING, SubState::ACTING, SubState::DELEGATING] {
            check(auto(state.clone()), silent(5), auto(SubState::STALLED));
            check(auto(state.clone()), silent(6), auto(state.clone()));
            check(auto(state.clone()), Vitals::default(), auto(state));
        }
        check(auto(SubState::UNKNOWN), silent(1), auto(SubState::UNKNOWN));
        let idle = (Group::NeedsYou, SubState::IDLE);
        check(idle.clone(), silent(1), idle);
        let mut never = shown(Group::Autonomous, SubState::THINKING);
        never.heed(Timestamp(u64::MAX), &silent(1), None);
        assert_eq!(never.state, SubState::THINKING, "the operator has switched it off");
    }
}
