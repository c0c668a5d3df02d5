//! The operator's rules, and what repositories add to them.

mod judge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qd_hook_wire::FrameId;
use qd_session::Session;
use qd_session::logbook::Logbook;
use qd_session::policy::{Effect, Effective, Layer, Policy, Preset, Tightening};

pub use self::judge::{Judge, Ruled};
use crate::desk::Rules;

/// Folders whose repositories are remembered: of every session on the board.
const FOLDERS_MAX: usize = 4_096;

/// The operator's rules, and what repositories add to them.
#[derive(Debug, Default)]
pub struct Ruling {
    pub(crate) policy: Policy,
    /// What the files around these folders say, as they were last read.
    pub(crate) tightenings: BTreeMap<Arc<str>, Tightening>,
    /// Folders that are being read for the first time.
    pub(crate) surveys: BTreeSet<Arc<str>>,
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

pub(crate) fn folder(session: &Session) -> Option<Arc<str>> {
    Some(session.monitor().about()?.cwd.as_ref()?.value.clone())
}
