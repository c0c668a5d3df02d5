//! What sessions cost, live: the loop with a bookkeeper, real files, and lines that are appended.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use qd_broker::news::BoardNews;
use qd_broker::{Card, SpentView};
use qd_daemon::runtime::{Board, Handle, Runtime, Settings};
use qd_harness::usage::PriceTable;
use qd_history::{Bookkeeper, Books, By, Question};
use qd_sources::places::places;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("qd-books-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("home/.claude/projects/-w")).expect("a home");
        fs::create_dir_all(folder.join("state")).expect("a state");
        Self(folder)
    }

    /// Appends a response of so many tokens.
    fn respond(&self, session: &str, nth: u32, output: u32) {
        let at = jiff::Timestamp::now();
        let line = format!(
            r#"{{"type":"assistant","sessionId":"{session}","requestId":"r{nth}","timestamp":"{at}","cwd":"/w","uuid":"u{nth}","message":{{"id":"m{nth}","role":"assistant","model":"claude-opus-4-6","content":[{{"type":"text","text":"Done."}}],"stop_reason":"end_turn","usage":{{"input_tokens":100,"output_tokens":{output}}}}}}}"#
        );
        let path = self.0.join(format!("home/.claude/projects/-w/{session}.jsonl"));
        let mut file = fs::File::options().create(true).append(true).open(path).expect("a file");
        writeln!(file, "{line}").expect("written");
    }

    fn start(&self) -> Daemon {
        let settings = Settings {
            home: self.0.join("home"),
            environment: BTreeMap::new(),
            state: self.0.join("state"),
            opencode_servers: Vec::new(),
            client_folders: Vec::new(),
            layers: self.0.join("config/layers.toml"),
            policy: self.0.join("config/policy.toml"),
        };
        let (stop, stopped) = watch::channel(false);
        let (mut runtime, handle) = Runtime::open(&settings, stopped).expect("it opens");
        let (books, news) = Bookkeeper::start(Books {
            places: places(&settings.home, &settings.environment),
            index: self.0.join("state/usage.db"),
            prices: PriceTable::bundled(),
            offset: Box::new(|_| 0),
        })
        .expect("a thread");
        runtime.keep_books(books.clone(), news);
        let running = tokio::spawn(async move { runtime.run().await.expect("it runs") });
        Daemon { handle, books, stop, running }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Daemon {
    handle: Handle,
    books: Bookkeeper,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Daemon {
    async fn stop(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.running).await.expect("it stops").expect("without a panic");
    }

    /// Waits until a session's card says that it has put out so many tokens.
    async fn until(&self, session: &str, output: u64) -> SpentView {
        let spent = |card: &Card| {
            let spent = card.usage.spent.filter(|_| *card.vendor_id == *session);
            spent.filter(|spent| spent.output_tokens == output)
        };
        let Board { cards, mut changes, .. } = self.handle.board().await.expect("it lives");
        if let Some(spent) = cards.iter().find_map(spent) {
            return spent;
        }
        let found = async {
            loop {
                if let BoardNews::Shown(card) = &changes.recv().await.expect("it lives").news
                    && let Some(spent) = spent(card)
                {
                    return spent;
                }
            }
        };
        timeout(PATIENCE, found)
            .await
            .unwrap_or_else(|_| panic!("{session} never put out {output}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_cost_is_on_its_card_and_grows_with_each_line() {
    let place = Place::new("grows");
    place.respond("s1", 1, 10);
    let daemon = place.start();
    let first = daemon.until("s1", 10).await;
    assert_eq!((first.input_tokens, first.total_tokens), (100, 110));
    assert!(first.cost_usd > 0.0 && !first.estimated);
    for nth in 2..=20 {
        place.respond("s1", nth, 10);
    }
    let last = daemon.until("s1", 200).await;
    assert!((last.cost_usd - 20.0 * first.cost_usd).abs() < 1e-9);
    // The same line again is the same response.
    place.respond("s1", 20, 10);
    place.respond("s2", 21, 7);
    daemon.until("s2", 7).await;
    assert_eq!(daemon.until("s1", 200).await, last);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_says_what_the_cards_say_also_after_a_restart() {
    let place = Place::new("report");
    place.respond("s1", 1, 10);
    let daemon = place.start();
    daemon.until("s1", 10).await;
    place.respond("s1", 2, 10);
    daemon.until("s1", 20).await;
    daemon.stop().await;
    place.respond("s2", 3, 5);
    let daemon = place.start();
    daemon.until("s2", 5).await;
    let question = Question { since: None, until: None, by: By::Session };
    let answer = daemon.books.ask(question).await.expect("an answer");
    assert_eq!(answer.report.totals.tokens.output, 25);
    assert_eq!(answer.report.rows.len(), 2);
    let odd = Question { since: Some("soon".into()), until: None, by: By::Day };
    assert!(daemon.books.ask(odd).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_somebody_rewrites_is_counted_anew() {
    let place = Place::new("rewritten");
    place.respond("s1", 1, 10);
    place.respond("s1", 2, 10);
    let daemon = place.start();
    daemon.until("s1", 20).await;
    fs::write(place.0.join("home/.claude/projects/-w/s1.jsonl"), "").expect("emptied");
    place.respond("s1", 3, 3);
    daemon.until("s1", 3).await;
}
