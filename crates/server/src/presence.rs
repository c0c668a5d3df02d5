//! Who has the page before them: while somebody does, nobody is told elsewhere.
//!
//! A tab is known while its stream is open, and counts as looked at for as long as it keeps saying
//! so: a phone that drops off the network takes minutes to be missed by TCP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use qd_broker::notices::Notices;
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
    let Json(PresenceTold { tab, focused }) = told.map_err(|_| Refusal::Unreadable)?;
    match server.tabs().tell(&tab, focused) {
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
}

#[derive(Debug, Default)]
struct Tab {
    streams: u32,
    focused_until: Option<Instant>,
}

/// Keeps a tab known while it lives.
#[derive(Debug)]
pub struct OpenTab {
    tabs: Tabs,
    name: String,
}

impl Tabs {
    pub fn of(notices: Option<Notices>) -> Self {
        Self { open: Arc::default(), notices }
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
    fn tell(&self, name: &str, is_focused: bool) -> bool {
        let until = Instant::now() + PRESENCE_LIVES;
        match self.all().get_mut(name) {
            Some(tab) => tab.focused_until = is_focused.then_some(until),
            None => return false,
        }
        self.settle();
        if is_focused {
            let tabs = self.clone();
            tokio::spawn(async move {
                sleep_until(until).await;
                tabs.settle();
            });
        }
        true
    }

    fn settle(&self) {
        let Some(notices) = &self.notices else { return };
        let now = Instant::now();
        let open = self.all();
        let mut until = open.values().filter_map(|tab| tab.focused_until);
        // While it is locked nobody else says something else.
        notices.set_focused(until.any(|until| until > now));
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
        assert!(!tabs.tell("one", true), "it has no stream");
        let first = tabs.open("one".to_owned()).expect("a name");
        let again = tabs.open("one".to_owned()).expect("a name");
        assert!(tabs.tell("one", true));
        assert_eq!(focused(&tabs), 1);
        drop(first);
        assert_eq!(focused(&tabs), 1, "it came again before the old stream ended");
        assert!(tabs.tell("one", false));
        assert_eq!(focused(&tabs), 0);
        assert!(tabs.tell("one", true));
        drop(again);
        assert_eq!(focused(&tabs), 0);
        assert!(tabs.all().is_empty());
        assert!(tabs.open("x".repeat(TAB_BYTES_MAX + 1)).is_none());
    }
}
