//! Driven sessions in the one loop, with a real journal and a crew that follows a script: begun,
//! asked, answered, stopped, killed and back.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qd_broker::Card;
use qd_broker::desk::{Answering, Commanding};
use qd_broker::driving::{Ground, HookedRun, Report, Sending, Start, Unspawned};
use qd_broker::news::BoardNews;
use qd_daemon::runtime::{Board, Handle, Runtime, Settings, SpawnWanted};
use qd_harness::Harness;
use qd_harness::native::{Piece, StopReason};
use qd_runners::crew::{Crew, Ended, HarnessOffer, HarnessOrder, Muster, Task};
use qd_runners::hooks::HookEnd;
use qd_runners::teller::Teller;
use qd_session::decision::{By, Command, Decision, Scope, Standing};
use qd_session::id::{DecisionId, SessionId, ToolName};
use qd_session::logbook::{Brief, Called, Frozen};
use qd_session::machine::{HookConfig, Kind, Process, Setup, ToolOrder, ToolOutcome, Tools};
use qd_session::policy::Preset;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(60);

/// The model makes one call, then says that it is done. Tools do what the test says.
#[derive(Clone, Default)]
struct Script {
    /// A tool that hangs until it is stopped.
    hangs: bool,
    /// The process of an agent that ends before it has said anything.
    process: Option<&'static str>,
    ran: Arc<Mutex<Vec<String>>>,
    asked: Arc<Mutex<usize>>,
}

impl Crew for Script {
    fn muster(&self, harness: Harness, _brief: &Brief) -> Result<Muster, String> {
        match harness {
            Harness::Native => {
                let (tools, process) = (Tools::Ours, Process::WholeSession);
                let setup = Setup { tools, process, hooks: Vec::new() };
                Ok(Muster { setup, vendor_id: None, trouble: None })
            }
            Harness::Cline if self.process.is_some() => {
                let (tools, process) = (Tools::Theirs, Process::WholeSession);
                let setup = Setup { tools, process, hooks: Vec::new() };
                Ok(Muster { setup, vendor_id: None, trouble: None })
            }
            other @ (Harness::ClaudeCode
            | Harness::Codex
            | Harness::GeminiCli
            | Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp) => Err(format!("{} cannot be driven here", other.name())),
        }
    }

    fn offers(&self) -> Vec<HarnessOffer> {
        Vec::new()
    }

    fn survey(&self, _workspace: Arc<str>, tools: Vec<ToolName>) -> Task<Ground> {
        Box::pin(async { Ground { mutating: tools, ..Ground::default() } })
    }

    fn run_tool(
        &self,
        _workspace: Arc<str>,
        order: ToolOrder,
        stop: CancellationToken,
    ) -> Task<ToolOutcome> {
        let script = self.clone();
        Box::pin(async move {
            script.ran.lock().expect("no panic").push(order.call.call_id.to_string());
            if script.hangs {
                stop.cancelled().await;
            }
            ToolOutcome::Succeeded { output: "ok".into(), is_error: false }
        })
    }

    fn run_hook(
        &self,
        _hook: HookConfig,
        _workspace: Arc<str>,
        _tool_runs: Vec<HookedRun>,
        _stop: CancellationToken,
    ) -> Task<HookEnd> {
        Box::pin(async { HookEnd { error: None, output: String::new() } })
    }

    fn run_harness(
        &self,
        _start: Start,
        mut orders: mpsc::Receiver<HarnessOrder>,
        mut tell: Teller,
        stop: CancellationToken,
    ) -> Task<Ended> {
        let script = self.clone();
        Box::pin(async move {
            if let Some(process) = script.process {
                tell.tell(Report::Process { process: process.into() }).await;
                return Ended::killed();
            }
            tell.tell(Report::Ready).await;
            loop {
                let order = tokio::select! {
                    () = stop.cancelled() => return Ended::killed(),
                    order = orders.recv() => order,
                };
                match order {
                    Some(HarnessOrder::Send(sending)) => script.answer(&mut tell, &sending).await,
                    Some(HarnessOrder::Stop) => return Ended::well(),
                    Some(
                        HarnessOrder::Answer { .. }
                        | HarnessOrder::Release
                        | HarnessOrder::Interrupt { .. },
                    ) => {}
                    None => return Ended::killed(),
                }
            }
        })
    }
}

impl Script {
    async fn answer(&self, tell: &mut Teller, sending: &Sending) {
        let nth = {
            let mut asked = self.asked.lock().expect("no panic");
            *asked += 1;
            *asked
        };
        // A flood: far more than anybody takes.
        for _ in 0..2_000 {
            tell.piece(&sending.turn, Piece::Text { text: "word ".into() }).await;
        }
        let calls = match nth {
            1 => vec![Called {
                call_id: "call_1".into(),
                name: "bash".into(),
                arguments: json!({"command": "make"}),
            }],
            _ => Vec::new(),
        };
        let frozen = Some(Box::new(Frozen { calls, ..Frozen::default() }));
        let (turn, text) = (sending.turn.clone(), Some("All done.".into()));
        tell.tell(Report::Completed { turn, text, stop: StopReason::Done, frozen }).await;
    }
}

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("qd-crewed-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("home/project")).expect("a home");
        Self(folder)
    }

    fn start(&self, script: &Script) -> Daemon {
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
        runtime.keep_crew(Arc::new(script.clone()));
        let running = tokio::spawn(async move { runtime.run().await.expect("it runs") });
        Daemon { handle, stop, running }
    }

    fn wanted(&self, harness: Harness) -> SpawnWanted {
        let workspace = self.0.join("home/project").to_string_lossy().into_owned().into();
        let prompt = Some("Build it".into());
        let preset = Preset::Careful;
        let (model, provider, is_chat) = (None, None, false);
        let brief = Brief { workspace, model, provider, preset, prompt, is_chat };
        SpawnWanted { harness, brief }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Daemon {
    handle: Handle,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Daemon {
    async fn spawn(&self, place: &Place) -> SessionId {
        let wanted = place.wanted(Harness::Native);
        self.handle.spawn_session(wanted).await.expect("it lives").expect("a session")
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.running).await.expect("it stops").expect("without a panic");
    }

    /// As kill -9 would: nothing more is written, and every runner is gone.
    async fn kill(self) {
        self.running.abort();
        let _ = self.running.await;
    }

    /// Waits until the session is there.
    async fn until(&self, kind: Kind) -> Card {
        let is = |card: &Card| card.drive.as_ref().is_some_and(|drive| drive.state == kind);
        self.until_card(is).await
    }

    async fn until_card(&self, is: impl Fn(&Card) -> bool) -> Card {
        let looking = async {
            loop {
                let Board { cards, mut changes, .. } = self.handle.board().await.expect("it lives");
                if let Some(card) = cards.into_iter().find(&is) {
                    return card;
                }
                // Whoever is too slow for the flood asks again.
                while let Ok(change) = changes.recv().await {
                    if let BoardNews::Shown(card) = &change.news
                        && is(card)
                    {
                        return (**card).clone();
                    }
                }
            }
        };
        timeout(PATIENCE, looking).await.expect("such a card")
    }

    async fn allow(&self, card: &Card) -> Standing {
        let answering = Answering {
            decision: DecisionId::new("dec_allow"),
            request: card.requests[0].key.clone().expect("a key"),
            by: By { who: "operator".into(), device: "desk".into() },
            rule: None,
            answer: Decision::Allow { input: None, scope: Scope::Once },
            revision: None,
            key: None,
        };
        self.handle.decide(answering).await.expect("it lives").expect("taken").standing
    }

    async fn command(&self, session: &SessionId, name: &str, command: Command) -> Standing {
        let commanding = Commanding {
            decision: DecisionId::new(name),
            session: session.clone(),
            by: By { who: "operator".into(), device: "desk".into() },
            command,
            key: None,
        };
        self.handle.command(commanding).await.expect("it lives").expect("taken").standing
    }
}

#[tokio::test]
async fn a_session_is_begun_asked_for_answered_and_stopped() {
    let place = Place::new("whole");
    let script = Script::default();
    let daemon = place.start(&script);
    let session = daemon.spawn(&place).await;
    let card = daemon.until(Kind::AwaitingApproval).await;
    assert!(script.ran.lock().expect("no panic").is_empty(), "nothing runs before it is allowed");
    assert!(matches!(daemon.allow(&card).await, Standing::Confirmed { .. }));
    let card = daemon.until(Kind::Ready).await;
    assert_eq!(card.agent_state.state.as_str(), "task_complete");
    assert_eq!(*script.ran.lock().expect("no panic"), ["call_1"]);
    let detail = daemon.handle.detail(session.as_str()).await.expect("it lives").expect("known");
    let attached = detail.expect("a detail").attached.expect("it is driven");
    assert_eq!(attached.messages_len, 4, "prompt, call, output, answer");
    daemon.command(&session, "dec_stop", Command::Stop).await;
    daemon.until(Kind::Stopped).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_killed_daemon_finds_its_session_again_and_runs_nothing_twice() {
    let place = Place::new("killed");
    let script = Script { hangs: true, ..Script::default() };
    let daemon = place.start(&script);
    let session = daemon.spawn(&place).await;
    let card = daemon.until(Kind::AwaitingApproval).await;
    daemon.allow(&card).await;
    daemon.until(Kind::ExecutingTools).await;
    daemon.kill().await;

    let daemon = place.start(&script);
    let card = daemon.until(Kind::Ready).await;
    assert_eq!(card.agent_state.label, "Cut off by a restart");
    daemon.command(&session, "dec_on", Command::Prompt { text: "Go on".into() }).await;
    let card = daemon.until(Kind::Ready).await;
    assert_eq!(card.session_id, session);
    assert_eq!(*script.ran.lock().expect("no panic"), ["call_1"], "once");
    daemon.stop().await;
}

#[tokio::test]
async fn a_process_that_ended_unseen_is_gone_after_a_restart_and_makes_no_card() {
    let place = Place::new("phantom");
    // No process has that pid: it is above every limit.
    let script = Script { process: Some("4194999:1"), ..Script::default() };
    let daemon = place.start(&script);
    let wanted = place.wanted(Harness::Cline);
    let session = daemon.handle.spawn_session(wanted).await.expect("it lives").expect("a session");
    let card = daemon.until(Kind::Error).await;
    assert_eq!(card.place.map(|place| place.pid), Some(4_194_999));
    daemon.stop().await;

    let daemon = place.start(&script);
    let card = daemon.until_card(|card| card.place.is_none()).await;
    assert_eq!(card.session_id, session);
    let cards = daemon.handle.board().await.expect("it lives").cards;
    assert_eq!(cards.iter().map(|card| &card.session_id).collect::<Vec<_>>(), [&session]);
    daemon.stop().await;
}

#[tokio::test]
async fn what_cannot_be_driven_is_said_before_anything_is_begun() {
    let place = Place::new("refused");
    let daemon = place.start(&Script::default());
    let refused = daemon.handle.spawn_session(place.wanted(Harness::Cline)).await;
    let refused = refused.expect("it lives").expect_err("no session");
    assert!(matches!(&refused, Unspawned::Impossible { why } if why.contains("cline")));
    let mut wanted = place.wanted(Harness::Native);
    wanted.brief.workspace = "no/such/folder".into();
    let refused = daemon.handle.spawn_session(wanted).await.expect("it lives");
    assert_eq!(refused, Err(Unspawned::NoWorkspace));
    assert!(daemon.handle.board().await.expect("it lives").cards.is_empty());
    daemon.stop().await;
}
