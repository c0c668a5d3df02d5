//! A loop with a real journal, and a crew that follows a script: one call with a secret in its
//! arguments, one hook that fails with it in its words, and the model is done.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qd_broker::desk::Commanding;
use qd_broker::driving::{Ground, HookedRun, Report, Sending, Start};
use qd_broker::news::{BoardChange, BoardNews};
use qd_daemon::runtime::{Board, Handle, Runtime, Settings, SpawnWanted};
use qd_harness::Harness;
use qd_harness::native::{Piece, StopReason};
use qd_runners::crew::{Crew, Ended, HarnessOffer, HarnessOrder, Muster, Task};
use qd_runners::hooks::HookEnd;
use qd_runners::teller::Teller;
use qd_session::decision::{By, Command};
use qd_session::id::{DecisionId, SessionId, ToolName};
use qd_session::logbook::{Brief, Called, Frozen};
use qd_session::machine::{
    Change, HookConfig, Kind, Process, Setup, ToolOrder, ToolOutcome, Tools,
};
use qd_session::policy::Preset;
use qd_telemetry::Exporter;
use serde_json::json;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub const PATIENCE: Duration = Duration::from_secs(60);

/// In the arguments of the call, and recognised as a key.
pub const SECRET: &str = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAA";

/// In the arguments, the prompt, the answer, the output and the error: nobody's business.
pub const PRIVATE: &str = "moonraker";

struct Script;

impl Crew for Script {
    fn muster(&self, _harness: Harness, _brief: &Brief) -> Result<Muster, String> {
        let hook = json!({
            "name": "format", "command": ["false"], "failure_policy": {"type": "warn_continue"},
        });
        let hooks = vec![serde_json::from_value(hook).expect("a hook")];
        let setup = Setup { tools: Tools::Ours, process: Process::WholeSession, hooks };
        Ok(Muster { setup, vendor_id: None, trouble: None })
    }

    fn survey(&self, _workspace: Arc<str>, tools: Vec<ToolName>) -> Task<Ground> {
        Box::pin(async { Ground { mutating: tools, ..Ground::default() } })
    }

    fn run_tool(
        &self,
        _workspace: Arc<str>,
        _order: ToolOrder,
        _stop: CancellationToken,
    ) -> Task<ToolOutcome> {
        let output = format!("{PRIVATE} {SECRET}").into();
        Box::pin(async { ToolOutcome::Succeeded { output, is_error: false } })
    }

    fn run_hook(
        &self,
        _hook: HookConfig,
        _workspace: Arc<str>,
        _tool_runs: Vec<HookedRun>,
        _stop: CancellationToken,
    ) -> Task<HookEnd> {
        let error = Some(format!("exit code 1: {PRIVATE} {SECRET}").into());
        Box::pin(async { HookEnd { error, output: String::new() } })
    }

    fn offers(&self) -> Vec<HarnessOffer> {
        Vec::new()
    }

    fn run_harness(
        &self,
        _start: Start,
        mut orders: mpsc::Receiver<HarnessOrder>,
        mut tell: Teller,
        _stop: CancellationToken,
    ) -> Task<Ended> {
        Box::pin(async move {
            tell.tell(Report::Ready).await;
            let mut asked = 0;
            while let Some(order) = orders.recv().await {
                match order {
                    HarnessOrder::Send(sending) => {
                        asked += 1;
                        answer(asked, &mut tell, &sending).await;
                    }
                    HarnessOrder::Stop => return Ended::well(),
                    HarnessOrder::Answer { .. }
                    | HarnessOrder::Release
                    | HarnessOrder::Interrupt { .. } => {}
                }
            }
            Ended::killed()
        })
    }
}

async fn answer(nth: usize, tell: &mut Teller, sending: &Sending) {
    let turn = sending.turn.clone();
    tell.piece(&turn, Piece::Text { text: PRIVATE.into() }).await;
    let command = format!("export API_KEY={SECRET}; make {PRIVATE}");
    let called = Called {
        call_id: "call_1".into(),
        name: "bash".into(),
        arguments: json!({"command": command, "password": "hunter2"}),
    };
    let calls = if nth == 1 { vec![called] } else { Vec::new() };
    let frozen = Some(Box::new(Frozen { calls, ..Frozen::default() }));
    let text = Some(format!("All done: {PRIVATE}.").into());
    tell.tell(Report::Completed { turn, text, stop: StopReason::Done, frozen }).await;
}

pub struct Daemon {
    folder: PathBuf,
    pub handle: Handle,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Daemon {
    pub fn start(name: &str, exporter: Option<Exporter>) -> Self {
        let pid = std::process::id();
        let folder = std::env::temp_dir().join(format!("qd-telemetry-{name}-{pid}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("home/project")).expect("a home");
        let settings = Settings {
            home: folder.join("home"),
            environment: BTreeMap::new(),
            state: folder.join("state"),
            opencode_servers: Vec::new(),
            client_folders: Vec::new(),
            layers: folder.join("config/layers.toml"),
            policy: folder.join("config/policy.toml"),
        };
        let (stop, stopped) = watch::channel(false);
        let (mut runtime, handle) = Runtime::open(&settings, stopped).expect("it opens");
        runtime.keep_crew(Arc::new(Script));
        if let Some(exporter) = exporter {
            runtime.export_spans(exporter);
        }
        let running = tokio::spawn(async move { runtime.run().await.expect("it runs") });
        Self { folder, handle, stop, running }
    }

    /// A session with one prompt, until it waits for the next one.
    pub async fn drive(&self) -> SessionId {
        let workspace = self.folder.join("home/project").to_string_lossy().into_owned().into();
        let prompt = Some(format!("Build {PRIVATE}").into());
        let preset = Preset::Yolo;
        let (model, provider, is_chat) = (None, None, false);
        let brief = Brief { workspace, model, provider, preset, prompt, is_chat };
        let Board { mut changes, .. } = self.handle.board().await.expect("it lives");
        let wanted = SpawnWanted { harness: Harness::Native, brief };
        let session = self.handle.spawn_session(wanted).await.expect("it lives").expect("begun");
        moved(&mut changes, |from, to| (from, to) == (Kind::ProcessingResponse, Kind::Ready)).await;
        session
    }

    /// Ends the session, until its harness has exited.
    pub async fn end(&self, session: SessionId) {
        let Board { mut changes, .. } = self.handle.board().await.expect("it lives");
        let decision = DecisionId::new("dec_stop");
        let by = By { who: "operator".into(), device: "desk".into() };
        let commanding = Commanding { decision, session, by, command: Command::Stop, key: None };
        self.handle.command(commanding).await.expect("it lives").expect("taken");
        moved(&mut changes, |_, to| to == Kind::Stopped).await;
    }

    /// Ends the daemon.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.running).await.expect("it stops").expect("without a panic");
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn moved(
    changes: &mut broadcast::Receiver<Arc<BoardChange>>,
    wanted: impl Fn(Kind, Kind) -> bool,
) {
    let moved = async {
        loop {
            let change = changes.recv().await.expect("nobody is that slow");
            if let BoardNews::Changed(shown) = &change.news
                && let Change::StateChanged(changed) = &shown.change
                && wanted(changed.from, changed.to)
            {
                return;
            }
        }
    };
    timeout(PATIENCE, moved).await.expect("it gets there");
}
