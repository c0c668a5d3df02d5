//! Who decides what the operator is told, and when.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{NoticeTag, SessionId};
use crate::limits::{
    NOTICE_MATTERS_MAX, NOTICE_NEWS_MS, NOTICE_QUIET_LOOK_MS, NOTICE_SESSIONS_MAX,
};
use crate::moment::Timestamp;

use super::phase::{Around, Verdict};
use super::{Matter, Phase, Remembered, Rules, Situation};

#[derive(Debug, Clone)]
pub struct Herald {
    rules: Rules,
    sessions: BTreeMap<SessionId, Watched>,
    remembered: Remembered,
    focus: Focus,
}

/// A time, and which minute of the operator's day it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub at: Timestamp,
    pub minute: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Every session there is: what is not in it is gone.
    Board(Vec<Situation>),
    Shown(Situation),
    Removed(SessionId),
    /// The operator has the page before them, or has not.
    Focus(bool),
    Woken,
}

/// What goes to the operator's devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Tell {
        session: SessionId,
        matter: Matter,
    },
    /// What quiet hours held back, or what a session's subagents ask, together.
    Sum {
        tag: NoticeTag,
        matters: Vec<(SessionId, Matter)>,
    },
    /// What it was about is settled: devices clear it.
    Withdraw {
        tag: NoticeTag,
    },
}

/// Whether the operator has the page before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    There,
    Gone { since: Timestamp },
}

#[derive(Debug, Clone, Default)]
struct Watched {
    items: BTreeMap<NoticeTag, Item>,
    told_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct Item {
    matter: Matter,
    phase: Phase,
}

impl Herald {
    pub fn new(rules: Rules, remembered: Remembered) -> Self {
        let focus = Focus::Gone { since: Timestamp::ZERO };
        Self { rules, sessions: BTreeMap::new(), remembered, focus }
    }

    /// Takes something in, and says what the operator is to be told.
    pub fn handle(&mut self, now: Moment, input: Input) -> Vec<Notice> {
        let mut said = Vec::new();
        self.follow_clock(now.at);
        match input {
            Input::Board(situations) => self.take_board(now, situations, &mut said),
            Input::Shown(situation) => self.take(now, situation, &mut said),
            Input::Removed(session) => self.close_all(&session, &mut said),
            Input::Focus(true) => self.focus = Focus::There,
            Input::Focus(false) => {
                if self.focus == Focus::There {
                    self.focus = Focus::Gone { since: now.at };
                }
            }
            Input::Woken => {}
        }
        self.settle(now, &mut said);
        said
    }

    /// Nothing was told in the future, and nothing stands for longer than its dwell: a clock that
    /// was set back silences nobody.
    fn follow_clock(&mut self, now: Timestamp) {
        if let Focus::Gone { since } = &mut self.focus {
            *since = now.min(*since);
        }
        let latest = now.plus_ms(self.rules.dwell_ms);
        for watched in self.sessions.values_mut() {
            watched.told_at = watched.told_at.map(|at| at.min(now));
            for item in watched.items.values_mut() {
                if let Phase::Waiting { due } = &mut item.phase {
                    *due = latest.min(*due);
                }
            }
        }
    }

    /// When to come back, although nothing happens.
    pub fn next_timeout(&self, now: Timestamp) -> Option<Timestamp> {
        let moment = Moment { at: now, minute: 0 };
        let ripe = |watched: &Watched, item: &Item| match item.phase {
            Phase::Held => Some(now.plus_ms(NOTICE_QUIET_LOOK_MS)),
            Phase::Waiting { .. } | Phase::Seen | Phase::Told | Phase::Silent => {
                item.phase.ripe_at(&item.matter, &self.around(moment, watched))
            }
        };
        let all = self.sessions.values();
        all.flat_map(|watched| watched.items.values().filter_map(|item| ripe(watched, item))).min()
    }

    /// What was told: to be kept before a notice goes out.
    pub fn remembered(&self) -> &Remembered {
        &self.remembered
    }

    pub fn phase_of(&self, session: &SessionId, tag: &NoticeTag) -> Option<Phase> {
        Some(self.sessions.get(session)?.items.get(tag)?.phase)
    }

    fn around<'a>(&'a self, now: Moment, watched: &Watched) -> Around<'a> {
        Around { now, rules: &self.rules, focus: self.focus, told_at: watched.told_at }
    }

    fn take_board(&mut self, now: Moment, situations: Vec<Situation>, said: &mut Vec<Notice>) {
        let there: BTreeSet<SessionId> =
            situations.iter().map(|situation| situation.session.clone()).collect();
        let gone: Vec<SessionId> =
            self.sessions.keys().filter(|session| !there.contains(session)).cloned().collect();
        gone.iter().for_each(|session| self.close_all(session, said));
        situations.into_iter().for_each(|situation| self.take(now, situation, said));
        // What was told before a restart and closed meanwhile.
        let open: BTreeSet<&NoticeTag> =
            self.sessions.values().flat_map(|watched| watched.items.keys()).collect();
        let closed: Vec<NoticeTag> =
            self.remembered.standing().filter(|tag| !open.contains(tag)).cloned().collect();
        closed.iter().for_each(|tag| self.withdraw(tag, said));
    }

    fn take(&mut self, now: Moment, situation: Situation, said: &mut Vec<Notice>) {
        let Situation { session, matters } = situation;
        let has_room = self.sessions.len() < NOTICE_SESSIONS_MAX;
        if !self.sessions.contains_key(&session) && (matters.is_empty() || !has_room) {
            return;
        }
        let watched = self.sessions.entry(session).or_default();
        let mut before = std::mem::take(&mut watched.items);
        for mut matter in matters.into_iter().take(NOTICE_MATTERS_MAX) {
            let known = before.remove(&matter.tag).or_else(|| same_state(&mut before, &matter));
            let phase = match known {
                Some(known) => {
                    matter.tag = known.matter.tag;
                    known.phase
                }
                None => first_phase(now, &self.rules, &self.remembered, &matter),
            };
            watched.items.insert(matter.tag.clone(), Item { matter, phase });
        }
        before.keys().for_each(|tag| self.withdraw(tag, said));
    }

    fn close_all(&mut self, session: &SessionId, said: &mut Vec<Notice>) {
        // When the operator was last told of it is kept: it may come back.
        let watched = self.sessions.get_mut(session);
        let closed = watched.map(|watched| std::mem::take(&mut watched.items)).unwrap_or_default();
        closed.keys().for_each(|tag| self.withdraw(tag, said));
    }

    fn withdraw(&mut self, matter: &NoticeTag, said: &mut Vec<Notice>) {
        said.extend(self.remembered.close(matter).map(|tag| Notice::Withdraw { tag }));
    }

    fn settle(&mut self, now: Moment, said: &mut Vec<Notice>) {
        let mut held = Vec::new();
        for (session, watched) in &mut self.sessions {
            let mut of_subagents = Vec::new();
            let (subagents, others): (Vec<&mut Item>, Vec<&mut Item>) =
                watched.items.values_mut().partition(|item| item.matter.is_of_subagent());
            let last_told = &mut watched.told_at;
            let mut settle = |item: &mut Item, told_at| {
                let around = Around { now, rules: &self.rules, focus: self.focus, told_at };
                match item.phase.judge(&item.matter, &around) {
                    Verdict::Stay => {}
                    Verdict::See => item.phase = Phase::Seen,
                    Verdict::Hold => item.phase = Phase::Held,
                    Verdict::Tell => {
                        let told = (session.clone(), item.matter.clone());
                        match (item.phase == Phase::Held, item.matter.is_of_subagent()) {
                            (true, _) => held.push(told),
                            (false, true) => of_subagents.push(told),
                            (false, false) => said.push(tell(&mut self.remembered, told)),
                        }
                        item.phase = Phase::Told;
                        return Some(now.at);
                    }
                }
                None
            };
            for item in others {
                *last_told = settle(item, *last_told).or(*last_told);
            }
            // What subagents ask at a time is told at a time.
            let told_at = *last_told;
            for item in subagents {
                *last_told = settle(item, told_at).or(*last_told);
            }
            let tag = format!("subagents:{session}:{}", now.at.0);
            said.extend(sum(&mut self.remembered, &tag, of_subagents));
        }
        said.extend(sum(&mut self.remembered, &format!("summary:{}", now.at.0), held));
        let cooldown_ms = self.rules.cooldown_ms;
        let cools = |at: Timestamp| now.at < at.plus_ms(cooldown_ms);
        self.sessions
            .retain(|_, watched| !watched.items.is_empty() || watched.told_at.is_some_and(cools));
    }
}

/// A session that stays in a state is not in it anew when a later signal says so again.
fn same_state(before: &mut BTreeMap<NoticeTag, Item>, matter: &Matter) -> Option<Item> {
    let alike = |item: &Item| item.matter.is_state() && item.matter.kind == matter.kind;
    let tag = before.values().find(|item| matter.is_state() && alike(item))?.matter.tag.clone();
    before.remove(&tag)
}

fn first_phase(now: Moment, rules: &Rules, remembered: &Remembered, matter: &Matter) -> Phase {
    let is_old = matter.is_state() && now.at.ms_since(matter.since) >= NOTICE_NEWS_MS;
    match remembered.of(&matter.tag) {
        Some(told) if told.notice.is_some() => Phase::Told,
        // Its notice was taken back, and it is there again.
        Some(_) => Phase::Silent,
        None if is_old || !rules.kinds.contains(&matter.kind) => Phase::Silent,
        None => Phase::Waiting { due: now.at.plus_ms(rules.dwell_ms) },
    }
}

fn tell(remembered: &mut Remembered, (session, matter): (SessionId, Matter)) -> Notice {
    remembered.tell(matter.tag.clone(), matter.tag.clone());
    Notice::Tell { session, matter }
}

/// One alone is told as itself: it may be answered at once.
fn sum(
    remembered: &mut Remembered,
    tag: &str,
    mut matters: Vec<(SessionId, Matter)>,
) -> Option<Notice> {
    if matters.len() <= 1 {
        return matters.pop().map(|told| tell(remembered, told));
    }
    let tag = NoticeTag::new(tag);
    for (_, matter) in &matters {
        remembered.tell(matter.tag.clone(), tag.clone());
    }
    Some(Notice::Sum { tag, matters })
}
