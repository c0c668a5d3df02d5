//! Observed agents that are held after their tools while the operator's hooks run.
//!
//! Beside the loop; of one session one at a time. An agent is let go when its hooks are done, when
//! they take too long, and when whoever holds it goes. Hooks that the end of a daemon cut off are
//! not run again: the forwarder that comes back is let go.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use qd_harness::Harness;
use qd_harness::tools_ran::ToolsRan;
use qd_hook_wire::{FrameId, HookReply};
use qd_runners::hooks::ObservedHooks;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Runtime;

/// How long an observed agent is held for post-tool hooks, all that it waits for included. Clients
/// give a hook ten minutes; the forwarder leaves before that, and so it goes before the forwarder.
const OBSERVED_HOOKS_MAX: Duration = Duration::from_secs(570);

pub struct Held {
    hooks: Arc<ObservedHooks>,
    frames: BTreeMap<FrameId, CancellationToken>,
    /// One hook at a time, by the agent's own id of its session.
    sessions: BTreeMap<Arc<str>, Arc<Mutex<()>>>,
    tasks: JoinSet<(FrameId, Option<String>)>,
}

/// A forwarder, and whether it was here before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coming {
    First,
    Again,
}

impl Held {
    pub fn new(hooks: ObservedHooks) -> Self {
        let (frames, sessions) = (BTreeMap::new(), BTreeMap::new());
        Self { hooks: Arc::new(hooks), frames, sessions, tasks: JoinSet::new() }
    }

    fn hold(&mut self, frame: FrameId, ran: ToolsRan) {
        self.sessions.retain(|_, turn| Arc::strong_count(turn) > 1);
        let turn = self.sessions.entry(ran.session.clone()).or_default().clone();
        let (hooks, cancel) = (self.hooks.clone(), CancellationToken::new());
        self.frames.insert(frame, cancel.clone());
        self.tasks.spawn(async move {
            let running = async {
                let _turn = turn.lock().await;
                hooks.run(&ran, &cancel).await
            };
            tokio::pin!(running);
            let told = match tokio::time::timeout(OBSERVED_HOOKS_MAX, &mut running).await {
                // Hooks that were cut off did not fail.
                Ok(told) => told.filter(|_| !cancel.is_cancelled()),
                Err(_) => {
                    warn!(vendor_id = &*ran.session, "hooks take too long; the agent goes on");
                    cancel.cancel();
                    running.await;
                    None
                }
            };
            (frame, told)
        });
    }

    /// Who is let go next; never, while nobody is held.
    async fn next(&mut self) -> (FrameId, Option<String>) {
        match self.tasks.join_next().await {
            Some(Ok(done)) => done,
            // A task that broke down: its forwarder leaves by itself in the end.
            Some(Err(_)) | None => pending().await,
        }
    }
}

impl Runtime {
    /// Lets post-tool hooks run for agents that we only observe.
    pub fn keep_observed_hooks(&mut self, hooks: ObservedHooks) {
        self.held = Some(Held::new(hooks));
    }

    /// Whether the forwarder holds its agent for hooks of ours; they run from now on.
    pub(super) fn holds(
        &mut self,
        coming: Coming,
        harness: Harness,
        frame: FrameId,
        payload: &[u8],
    ) -> bool {
        let Some(held) = &mut self.held else { return false };
        if held.frames.contains_key(&frame) {
            return true;
        }
        let ran = ToolsRan::read(harness, payload).filter(|_| coming == Coming::First);
        let ran = ran.filter(|ran| held.hooks.wants(ran));
        // What we drive has its hooks run by its machine.
        let ran = ran.filter(|ran| self.broker.driven_session(harness, &ran.session).is_none());
        let is_held = ran.is_some();
        ran.into_iter().for_each(|ran| held.hold(frame, ran));
        is_held
    }

    pub(super) fn let_go(&mut self, (frame, told): (FrameId, Option<String>)) {
        if let Some(held) = &mut self.held {
            held.frames.remove(&frame);
        }
        let reply = told.and_then(|why| HookReply::print(ToolsRan::complaint(&why)));
        drop(self.waiting.answer(frame, reply.unwrap_or_else(HookReply::release)));
    }

    /// Whoever held the agent is gone: nobody waits for its hooks any more.
    pub(super) fn unhold(&mut self, frame: FrameId) {
        if let Some(cancel) = self.held.as_ref().and_then(|held| held.frames.get(&frame)) {
            cancel.cancel();
        }
    }
}

/// Who is let go next; never, where nobody is held.
pub(super) async fn let_go_next(held: &mut Option<Held>) -> (FrameId, Option<String>) {
    match held {
        Some(held) => held.next().await,
        None => pending().await,
    }
}
