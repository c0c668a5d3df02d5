//! Who has the page before them: while somebody does, nobody is told elsewhere, and a hook may keep
//! a dialog from its terminal for as long as its card is looked at.
//!
//! A tab is known while its stream is open, and counts as looked at for as long as it keeps saying
//! so: a phone that drops off the network takes minutes to be missed by TCP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use qd_broker::viewing::Viewing;
use qd_daemon::runtime::Handle;
use qd_notices::Notices;
use qd_session::id::SessionId;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::error::Refusal;
use crate::limits::{PRESENCE_LIVES, TAB_BYTES_MAX};
use crate::server::Server;
use crate::wire::PresenceTold;

pub async fn presence(
    State(server): State<Server>,
    told: Result<Json<PresenceTold>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    let Json(told) = told.map_err(|_| Refusal::Unreadable)?;
    match server.tabs().tell(told) {
        true => Ok(Json(json!({ "known": true }))),
        false => Err(Refusal::NoSuchTab),
    }
}

/// The tabs whose stream is open.
#[derive(Debug, Clone, Default)]
pub struct Tabs {
    /// No more than there are connections.
    open: Arc<Mutex<BTreeMap<String, Tab>>>,
    /// Who wants to know; nobody in a demo.
    notices: Option<Notices>,
    /// Who holds hooks only for what is looked at.
    handle: Option<Handle>,
}

#[derive(Debug, Default)]
struct Tab {
    streams: u32,
    focused_until: Option<Instant>,
    shows_board: bool,
    shows_session: Option<SessionId>,
}

/// Keeps a tab known while it lives.
#[derive(Debug)]
pub struct OpenTab {
    tabs: Tabs,
    name: String,
}

impl Tabs {
    pub fn of(notices: Option<Notices>, handle: Handle) -> Self {
        Self { open: Arc::default(), notices, handle: Some(handle) }
    }

    /// None for a name that is too long to be one of ours.
    pub fn open(&self, name: String) -> Option<OpenTab> {
        if name.is_empty() || name.len() > TAB_BYTES_MAX {
            return None;
        }
        self.all().entry(name.clone()).or_default().streams += 1;
        Some(OpenTab { tabs: self.clone(), name })
    }

    /// False if no stream of that tab is open.
    fn tell(&self, told: PresenceTold) -> bool {
        let until = Instant::now() + PRESENCE_LIVES;
        match self.all().get_mut(&told.tab) {
            Some(tab) => {
                tab.focused_until = told.focused.then_some(until);
                tab.shows_board = told.board;
                tab.shows_session = told.session.map(SessionId::new);
            }
            None => return false,
        }
        self.settle();
        if told.focused {
            let tabs = self.clone();
            tokio::spawn(async move {
                sleep_until(until).await;
                tabs.settle();
            });
        }
        true
    }

    fn settle(&self) {
        let now = Instant::now();
        let open = self.all();
        let is_focused = |tab: &&Tab| tab.focused_until.is_some_and(|until| until > now);
        let focused: Vec<&Tab> = open.values().filter(is_focused).collect();
        // While it is locked nobody else says something else.
        if let Some(notices) = &self.notices {
            notices.set_focused(!focused.is_empty());
        }
        if let Some(handle) = &self.handle {
            let board = focused.iter().any(|tab| tab.shows_board);
            let sessions = focused.iter().filter_map(|tab| tab.shows_session.clone()).collect();
            handle.set_viewing(Viewing { board, sessions });
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Tab>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenTab {
    fn drop(&mut self) {
        let mut open = self.tabs.all();
        if let Some(tab) = open.get_mut(&self.name) {
            tab.streams -= 1;
            if tab.streams == 0 {
                open.remove(&self.name);
            }
        }
        drop(open);
        self.tabs.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn focused(tabs: &Tabs) -> usize {
        let now = Instant::now();
        tabs.all().values().filter(|tab| tab.focused_until.is_some_and(|until| until > now)).count()
    }

    #[tokio::test]
    async fn a_tab_is_looked_at_while_it_says_so_and_its_stream_is_open() {
        let tabs = Tabs::default();
        let tell = |focused| {
            let tab = "one".to_owned();
            tabs.tell(PresenceTold { tab, focused, board: true, session: None })
        };
        assert!(!tell(true), "it has no stream");
        let first = tabs.open("one".to_owned()).expect("a name");
        let again = tabs.open("one".to_owned()).expect("a name");
        assert!(tell(true));
        assert_eq!(focused(&tabs), 1);
        drop(first);
        assert_eq!(focused(&tabs), 1, "it came again before the old stream ended");
        assert!(tell(false));
        assert_eq!(focused(&tabs), 0);
        assert!(tell(true));
        drop(again);
        assert_eq!(focused(&tabs), 0);
        assert!(tabs.all().is_empty());
        assert!(tabs.open("x".repeat(TAB_BYTES_MAX + 1)).is_none());
    }
}
