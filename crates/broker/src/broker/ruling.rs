//! What rules answer, so that nobody has to: the broker's half that asks the policy.
//!
//! A request is judged once there is a way for an answer, after the files of its repository were
//! read again. Invariant: of one request a rule's answer is given once; where it does not arrive a
//! person decides.

use std::collections::BTreeSet;
use std::sync::Arc;

use qd_session::decision::{By, Decision, Scope, Standing};
use qd_session::event::{Entry, Event};
use qd_session::fnv::{BASIS, fnv};
use qd_session::id::{DecisionId, RequestId, RequestKey, RuleName, SessionId};
use qd_session::moment::Timestamp;
use qd_session::monitor::Stage;
use qd_session::policy::{Asked, Effect, Policy, Preset, Verdict};

use super::{Broker, Output};
use crate::desk::Answering;
use crate::rules::folder;
use crate::survey::{Followed, Survey, Surveyed};

impl Broker {
    /// The operator's rules are these from now on, also for what waits already.
    pub(super) fn take_policy(
        &mut self,
        now: Timestamp,
        policy: Policy,
        outputs: &mut Vec<Output>,
    ) {
        self.ruling.policy = policy;
        let shown = self.roster.iter().filter(|(_, tracked)| tracked.shown.is_some());
        let shown: Vec<SessionId> = shown.map(|(id, _)| id.clone()).collect();
        for id in shown {
            self.desk.judge_again(&id);
            self.rule_on(now, &id, outputs);
            self.show(now, &id, outputs);
        }
    }

    /// The operator lets a session do so much without asking.
    pub(super) fn choose_preset(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        preset: Option<Preset>,
        outputs: &mut Vec<Output>,
    ) {
        let entry = Entry::new(id.clone(), now, Event::PresetChosen { preset });
        if self.journal(id, entry, outputs) {
            self.desk.judge_again(id);
            self.rule_on(now, id, outputs);
        }
    }

    pub(super) fn folder(&self, id: &SessionId) -> Option<Arc<str>> {
        self.roster.get(id)?.session.folder()
    }

    /// Judges what waits in a session and can be answered, each request once.
    pub(super) fn rule_on(&mut self, now: Timestamp, id: &SessionId, outputs: &mut Vec<Output>) {
        let Some(tracked) = self.roster.get(id) else { return };
        let session = tracked.session.peek();
        let open = session.open_requests();
        let waiting = open.iter().filter(|open| open.stage == Stage::Waiting);
        let waiting: BTreeSet<RequestId> = waiting.map(|open| open.id.clone()).collect();
        let cwd = folder(&session);
        drop(session);
        for key in self.desk.take_unjudged(id, tracked.reach, &waiting) {
            self.judge_later(now, key, cwd.as_ref(), outputs);
        }
    }

    /// Judges a request once the files around its folder have been read.
    pub(super) fn judge_later(
        &mut self,
        now: Timestamp,
        key: RequestKey,
        folder: Option<&Arc<str>>,
        outputs: &mut Vec<Output>,
    ) {
        let Some(folder) = folder.cloned() else {
            return self.judge(now, &key, &[], outputs);
        };
        let request = Some((key.clone(), self.named(&key, &folder)));
        outputs.push(Output::Survey(Survey { folder, request }));
    }

    /// The files that a request names, as far as its agent has told.
    fn named(&self, key: &RequestKey, folder: &str) -> Vec<String> {
        let case = self.desk.case(key);
        case.map(|case| self.ruling.policy.named(&case.asked(Some(folder)))).unwrap_or_default()
    }

    /// The first look at the folder of a session on the board: its card says what holds there.
    pub(super) fn survey_unknown(&mut self, id: &SessionId, outputs: &mut Vec<Output>) {
        let Some(tracked) = self.roster.get(id).filter(|tracked| tracked.shown.is_some()) else {
            return;
        };
        let Some(folder) = tracked.session.folder() else { return };
        let is_known = self.ruling.tightenings.contains_key(&folder);
        if !is_known && self.ruling.surveys.insert(folder.clone()) {
            outputs.push(Output::Survey(Survey { folder, request: None }));
        }
    }

    /// What the files around a folder say now.
    pub(super) fn take_survey(
        &mut self,
        now: Timestamp,
        surveyed: Surveyed,
        outputs: &mut Vec<Output>,
    ) {
        let Surveyed { folder: read, tightening, followed } = surveyed;
        let is_here =
            |tracked: &super::Tracked| tracked.session.folder().is_some_and(|cwd| cwd == read);
        let here = self.roster.iter().filter(|(_, tracked)| is_here(tracked));
        let here: Vec<SessionId> = here.map(|(id, _)| id.clone()).collect();
        self.ruling.know(read.clone(), tightening);
        self.ruling.surveys.remove(&read);
        if let Some(Followed { request, named, led_to }) = followed {
            match self.named(&request, &read) == named {
                true => self.judge(now, &request, &led_to, outputs),
                // More was told of it meanwhile: nobody has looked where that leads.
                false => self.judge_later(now, request, Some(&read), outputs),
            }
        }
        here.iter().for_each(|id| self.show(now, id, outputs));
    }

    fn judge(
        &mut self,
        now: Timestamp,
        key: &RequestKey,
        led_to: &[Option<String>],
        outputs: &mut Vec<Output>,
    ) {
        let Some(case) = self.desk.case(key) else { return };
        let Some(tracked) = self.roster.get(&case.session) else { return };
        let (layer, cwd) = (tracked.session.layer(), tracked.session.folder());
        let effective = self.ruling.effective_in(cwd.as_deref(), &layer);
        let asked = Asked { led_to, ..case.asked(cwd.as_deref()) };
        let verdict = match case.is_unasked {
            true => effective.judge_unasked(&asked),
            false => effective.judge(&asked),
        };
        let reach = tracked.reach;
        let answering = answer_by(&verdict, key).map(|one| self.desk.fitted(one, reach));
        let mut desk_outputs = Vec::new();
        // Whoever was first stays first, and what cannot be given this way a person gives.
        let given = answering.is_some_and(|one| {
            let taken = self.desk.answer(now, one, reach, &mut desk_outputs);
            taken.is_ok_and(|taken| !matches!(taken.standing, Standing::Failed { .. }))
        });
        if let Some(frame) = case.frame
            && self.ruling.forget(frame)
            && !given
        {
            self.desk.dismiss(now, frame, &mut desk_outputs);
        }
        self.desk.judged(key);
        self.desk.close_unasked(now, key, &mut desk_outputs);
        self.pass_on(desk_outputs, outputs);
        self.carry_to_machines(now, outputs);
        self.show(now, &case.session, outputs);
    }
}

/// The answer that a verdict gives; none where a person is asked.
pub(super) fn answer_by(verdict: &Verdict, request: &RequestKey) -> Option<Answering> {
    let rule = verdict.rule.as_deref()?;
    let answer = match verdict.effect {
        Effect::Ask => return None,
        Effect::Allow => Decision::Allow { input: None, scope: Scope::Once },
        Effect::Deny => {
            let message = verdict.message.clone();
            let message = message.unwrap_or_else(|| format!("Denied by the rule `{rule}`."));
            Decision::Deny { message: Some(message), interrupt: false }
        }
    };
    Some(Answering {
        // The same whenever it is judged again, so that it is given once.
        decision: DecisionId::new(format!(
            "dec_rule_{}_{:016x}",
            request.as_str(),
            fnv(BASIS, rule.as_bytes())
        )),
        request: request.clone(),
        by: By { who: "policy".to_owned(), device: "daemon".to_owned() },
        rule: Some(RuleName::new(rule)),
        answer,
        revision: None,
        key: None,
    })
}
