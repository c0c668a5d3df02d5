//! Codex's daemons: one for each folder that Codex keeps its files in.
//!
//! A thread is reached through the daemon that has loaded it.

use futures_util::FutureExt;
use futures_util::future::select_all;
use qd_session::moment::Timestamp;

use super::codex_daemon::CodexDaemon;
use super::codex_daemon::errand::Errand;
use super::errand::ErrandReceipt;
use super::live::SourceNews;
use super::places::{Place, PlaceKind};
use crate::Error;

/// Never empty; the first is that of our own environment.
#[derive(Debug)]
pub struct CodexDaemons(Vec<CodexDaemon>);

impl CodexDaemons {
    /// Attaches to those whose sockets are among the places. Must be called in a Tokio runtime.
    pub fn start(places: &[Place], now: fn() -> Timestamp) -> Result<Self, Error> {
        let mut daemons = Self(Vec::new());
        daemons.follow(places, now)?;
        Ok(daemons)
    }

    /// Attaches to more of them.
    pub fn follow(&mut self, places: &[Place], now: fn() -> Timestamp) -> Result<(), Error> {
        for place in places.iter().filter(|place| place.kind == PlaceKind::Socket) {
            self.0.push(CodexDaemon::start(&place.path, now)?);
        }
        Ok(())
    }

    /// The next thing that one of them says. May be dropped and asked again.
    pub async fn next(&mut self) -> Option<SourceNews> {
        select_all(self.0.iter_mut().map(|daemon| daemon.next().boxed())).await.0
    }

    pub fn holds(&self, thread: &str) -> bool {
        self.0.iter().any(|daemon| daemon.holds(thread))
    }

    pub fn look_into(&mut self, thread: String) {
        if let Some(daemon) = self.0.iter_mut().find(|daemon| daemon.holds(&thread)) {
            daemon.look_into(thread);
        }
    }

    pub fn carry(&self, errand: Errand) -> ErrandReceipt {
        let holder = self.0.iter().find(|daemon| daemon.holds(&errand.thread));
        // One that has not loaded the thread says so.
        holder.unwrap_or(&self.0[0]).carry(errand)
    }
}
