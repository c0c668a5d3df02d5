//! What an operator would see of what a source tells: its signals through the real broker.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qd_broker::{Broker, Card, Input, Output};
use qd_session::moment::Timestamp;
use qd_sources::codex_daemon::CodexDaemon;
use qd_sources::live::{NoticeKind, SourceNews, SourceSignal};
use qd_sources::opencode_servers::OpencodeServers;
use tokio::time::{Instant, sleep, timeout_at};

/// Much longer than anything here takes; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(180);

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(u64::try_from(since.as_millis()).unwrap())
}

pub enum Source {
    Codex(CodexDaemon),
    Opencode(OpencodeServers),
}

impl Source {
    async fn next(&mut self) -> SourceNews {
        let news = match self {
            Self::Codex(source) => source.next().await,
            Self::Opencode(source) => source.next().await,
        };
        news.expect("a source goes on")
    }
}

pub struct Board {
    pub source: Source,
    broker: Broker,
    pub signals: Vec<SourceSignal>,
    pub notices: Vec<NoticeKind>,
    /// Each state that was shown, as `state`, for all sessions.
    pub shown: Vec<String>,
    /// Whether the daemon is asked what a thread waits for.
    pub is_curious: bool,
}

impl Board {
    pub fn of(source: Source) -> Self {
        let (signals, notices, shown) = (Vec::new(), Vec::new(), Vec::new());
        let broker = Broker::default();
        Self { source, broker, signals, notices, shown, is_curious: false }
    }

    pub fn cards(&self) -> Vec<Card> {
        self.broker.cards(now())
    }

    /// The states on the board.
    pub fn states(&self) -> Vec<String> {
        self.cards().iter().map(state).collect()
    }

    /// Takes news until what is wanted is so.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(self) {
            let woken = self.broker.next_wake().map(|at| at.ms_since(now()));
            let wake = sleep(woken.map_or(PATIENCE, Duration::from_millis));
            let step = async {
                tokio::select! {
                    news = self.source.next() => Some(news),
                    () = wake => None,
                }
            };
            match timeout_at(deadline, step).await {
                Ok(Some(news)) => self.take(news),
                Ok(None) => self.hand_in(None),
                Err(_) => panic!(
                    "waited for {what}; on the board: {:?}, notices: {:?}, last signals: {:#?}",
                    self.states(),
                    self.notices,
                    self.last_signals()
                ),
            }
        }
    }

    /// Until a card has this state.
    pub async fn until_state(&mut self, wanted: &str) -> Card {
        self.until(wanted, |board| board.states().iter().any(|state| state == wanted)).await;
        self.cards().into_iter().find(|card| state(card) == wanted).expect("it was there")
    }

    pub async fn until_notice(&mut self, wanted: &NoticeKind) {
        let seen = self.count(wanted);
        self.until(&format!("{wanted:?}"), |board| board.count(wanted) > seen).await;
    }

    pub fn count(&self, wanted: &NoticeKind) -> usize {
        self.notices.iter().filter(|notice| *notice == wanted).count()
    }

    fn take(&mut self, news: SourceNews) {
        match news {
            SourceNews::Notice(notice) => self.notices.push(notice.kind),
            SourceNews::Signal(signal) => {
                self.hand_in(Some(&signal));
                self.signals.push(signal);
            }
        }
    }

    fn hand_in(&mut self, signal: Option<&SourceSignal>) {
        let input = match signal {
            Some(signal) => Input::Signal { harness: signal.harness, signal: signal.signal() },
            None => Input::Woken,
        };
        for output in self.broker.handle(now(), input) {
            if let Output::Show(card) = output {
                self.shown.push(state(&card));
            } else if let Output::LookInto { session, .. } = output
                && let Source::Codex(daemon) = &mut self.source
                && self.is_curious
            {
                let (_, thread) = self.broker.named_on_server(&session).expect("a session");
                daemon.look_into(thread.to_string());
            }
        }
    }

    fn last_signals(&self) -> Vec<String> {
        let last = self.signals.iter().rev().take(12).rev();
        last.map(|signal| {
            let text = String::from_utf8_lossy(&signal.payload);
            let brief: String = text.chars().take(300).collect();
            format!("{:?} {:?} {brief}", signal.channel, signal.direction)
        })
        .collect()
    }
}

pub fn state(card: &Card) -> String {
    card.agent_state.state.as_str().to_owned()
}
