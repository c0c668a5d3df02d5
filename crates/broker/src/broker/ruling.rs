//! What rules answer, so that nobody has to: the broker's half that asks the policy.
//!
//! A request is judged once there is a way for an answer, after the files of its repository were
//! read again. Invariant: of one request a rule's answer is given once; where it does not arrive a
//! person decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qd_hook_wire::FrameId;
use qd_session::Session;
use qd_session::decision::{By, Decision, Scope, Standing};
use qd_session::event::{Entry, Event};
use qd_session::fnv::{BASIS, fnv};
use qd_session::id::{DecisionId, RequestId, RequestKey, RuleName, SessionId};
use qd_session::logbook::Logbook;
use qd_session::moment::Timestamp;
use qd_session::monitor::Stage;
use qd_session::policy::{Asked, Effect, Effective, Layer, Policy, Preset, Tightening, Verdict};

use super::{Broker, Output};
use crate::desk::{Answering, Rules};
use crate::driving::Judge;
use crate::survey::{Followed, Survey, Surveyed};

/// Folders whose repositories are remembered: of every session on the board.
const FOLDERS_MAX: usize = 4_096;

/// The operator's rules, and what repositories add to them.
#[derive(Debug, Default)]
pub struct Ruling {
    pub(super) policy: Policy,
    /// What the files around these folders say, as they were last read.
    tightenings: BTreeMap<Arc<str>, Tightening>,
    /// Folders that are being read for the first time.
    surveys: BTreeSet<Arc<str>>,
    /// Forwarders that stay for a rule's answer only.
    passing: BTreeSet<FrameId>,
    /// For a folder that nobody has read, or that is not known.
    nothing: Tightening,
}

impl Ruling {
    /// What holds for a session now, as far as its repository has been read.
    pub fn effective<'a>(&'a self, session: &Session, layer: &'a Layer) -> Effective<'a> {
        self.effective_in(folder(session).as_deref(), layer)
    }

    /// The same, of a session that works in a folder.
    pub fn effective_in<'a>(&'a self, cwd: Option<&str>, layer: &'a Layer) -> Effective<'a> {
        let tightening = cwd.and_then(|cwd| self.tightenings.get(cwd));
        self.policy.effective(cwd, layer, tightening.unwrap_or(&self.nothing))
    }

    /// What happens in a driven session where no rule says anything, as far as its repository has
    /// been read.
    pub fn driven_preset(&self, logbook: &Logbook) -> Preset {
        let tightening = self.tightenings.get(&logbook.brief().workspace).unwrap_or(&self.nothing);
        Judge { policy: &self.policy, logbook, tightening }.preset()
    }

    /// The files around a folder say this.
    pub fn know(&mut self, folder: Arc<str>, tightening: Tightening) {
        if self.tightenings.len() >= FOLDERS_MAX {
            // Those that are asked for again are read again.
            self.tightenings.clear();
        }
        self.tightenings.insert(folder, tightening);
    }

    /// Whether any request of the session could be answered without the operator.
    pub fn may_answer(&self, session: &Session) -> Rules {
        let layer = layer(session);
        let effective = self.effective(session, &layer);
        let says_anything = effective.rules().any(|(_, rule)| rule.effect != Effect::Ask)
            || effective.mode() != Preset::Manual;
        if says_anything { Rules::MayAnswer } else { Rules::AskAll }
    }

    /// A forwarder that stays for a rule's answer stays no more.
    pub fn forget(&mut self, frame: FrameId) -> bool {
        self.passing.remove(&frame)
    }

    pub fn let_pass(&mut self, frame: FrameId) {
        self.passing.insert(frame);
    }
}

/// The session's own layer.
pub(crate) fn layer(session: &Session) -> Layer {
    let chosen = session.logbook().map(|logbook| logbook.preset()).or_else(|| session.preset());
    chosen.map(Layer::with_preset).unwrap_or_default()
}

pub(super) fn folder(session: &Session) -> Option<Arc<str>> {
    Some(session.monitor().about()?.cwd.as_ref()?.value.clone())
}

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
