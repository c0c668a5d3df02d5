//! `/metrics` of a daemon that has driven a session, beside `spec/metrics.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_broker::driving::{Ground, HookedRun, Report, Sending, Start};
use qd_harness::Harness;
use qd_harness::native::{Piece, StopReason};
use qd_runners::crew::{Crew, Ended, HarnessOffer, HarnessOrder, Muster, Task};
use qd_runners::hooks::HookEnd;
use qd_runners::teller::Teller;
use qd_session::id::ToolName;
use qd_session::logbook::{Brief, Called, Frozen, Used};
use qd_session::machine::{
    HarnessTrouble, HookConfig, Process, Setup, ToolOrder, ToolOutcome, Tools, TroubleKind,
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Daemon, HEADER, Scope};

/// The model fails once, makes a call, and is done. A hook follows the call.
struct Script;

impl Crew for Script {
    fn muster(&self, _harness: Harness, _brief: &Brief) -> Result<Muster, String> {
        let hook = serde_json::from_value(json!({"name": "format", "command": ["true"]}));
        let hooks = vec![hook.expect("a hook")];
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
        Box::pin(async { ToolOutcome::Succeeded { output: "ok".into(), is_error: false } })
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
                if let HarnessOrder::Send(sending) = order {
                    asked += 1;
                    answer(asked, &mut tell, &sending).await;
                }
            }
            Ended::killed()
        })
    }
}

async fn answer(nth: usize, tell: &mut Teller, sending: &Sending) {
    let turn = sending.turn.clone();
    tell.piece(&turn, Piece::Text { text: "I build it.".into() }).await;
    if nth == 1 {
        let trouble = HarnessTrouble {
            trouble: TroubleKind::Passing,
            message: "overloaded".into(),
            retry_after_ms: Some(1),
        };
        return tell
            .tell(Report::Failed { turn, trouble, failure: None, used: Used::default() })
            .await;
    }
    let called = Called {
        call_id: "call_1".into(),
        name: "bash".into(),
        arguments: json!({"command": "make"}),
    };
    let calls = if nth == 2 { vec![called] } else { Vec::new() };
    let frozen = Some(Box::new(Frozen { calls, ..Frozen::default() }));
    let text = Some("All done.".into());
    tell.tell(Report::Completed { turn, text, stop: StopReason::Done, frozen }).await;
}

/// Each metric's type and labels.
type Metrics = BTreeMap<String, (String, String)>;

/// What the table says.
fn written() -> Metrics {
    let table = include_str!("../../../../spec/metrics.md");
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        (cells[1].to_owned(), (cells[2].to_owned(), cells[3].to_owned()))
    };
    rows.map(row).collect()
}

/// What the page has: types from their lines, labels from the values.
fn shown(page: &str) -> Metrics {
    let mut metrics = Metrics::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some(about) = line.strip_prefix("# TYPE ") {
            let (name, kind) = about.split_once(' ').expect("a type");
            let before = metrics.insert(name.to_owned(), (kind.to_owned(), String::new()));
            assert_eq!(before, None, "{name} is explained once");
            current = name.to_owned();
        } else if !line.starts_with('#') {
            let (name, labels) = line.split_once(['{', ' ']).expect("a value");
            let ending =
                name.strip_prefix(&current).unwrap_or_else(|| panic!("{line} stands alone"));
            assert!(matches!(ending, "" | "_bucket" | "_sum" | "_count"), "{line}");
            let names = labels.split(',').filter_map(|label| label.split_once("=\""));
            let names: Vec<&str> =
                names.map(|(name, _)| name).filter(|name| *name != "le").collect();
            metrics.get_mut(&current).expect("it was just seen").1 = names.join(", ");
        }
    }
    metrics
}

#[test]
fn the_page_shows_what_the_table_says_and_nothing_else() {
    let daemon = Daemon::with("metrics", |runtime| runtime.keep_crew(Arc::new(Script)));
    let mut stream = daemon.request("GET", "/api/live/stream").token(Scope::Observe).listen();
    let wanted = json!({
        "harness": "native", "workspace": daemon.folder, "preset": "yolo", "prompt": "Build it",
    });
    let begin = daemon.request("POST", "/api/sessions").token(Scope::Operate);
    let begin = begin.with("content-type", "application/json").with(HEADER, "1");
    begin.body(wanted.to_string()).json();
    let told = stream.until("\"from\":\"ProcessingResponse\",\"to\":\"Ready\"");
    for channel in ["agent:state_event", "agent:stream_event"] {
        assert!(told.contains(&format!("event: {channel}\n")), "no {channel} in\n{told}");
    }

    let (status, page) = daemon.request("GET", "/metrics").token(Scope::Observe).send();
    assert_eq!(status, 200, "{page}");
    assert_eq!(shown(&page), written());
    for line in [
        "agent_state_transitions_total{from=\"CallingLlm\",to=\"Error\"} 1",
        "agent_state_transitions_total{from=\"ExecutingTools\",to=\"PostToolsHook\"} 1",
        "tool_run_duration_ms_count{tool_name=\"bash\"} 1",
        "hook_run_duration_ms_bucket{hook_name=\"format\",le=\"+Inf\"} 1",
        "session_errors_total{code=\"streaming_failed\"} 1",
        "stream_event_count{type=\"text_delta\"} 3",
        "stream_event_count{type=\"completed\"} 2",
        "stream_latency_ms_count 2",
    ] {
        assert!(page.lines().any(|known| known == line), "{line} in\n{page}");
    }
}
