//! What a command of a driven session costs: below a warden and confined, below a warden alone as a
//! hook is, and started plainly, in turns of one run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use qd_runners::hooks::HookRunner;
use qd_runners::tools::{Toolbox, ToolboxSettings};
use qd_runners::warden::Warden;
use qd_session::machine::{FailurePolicy, HookConfig, ToolCall, ToolFilter, ToolOrder};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 200;

fn main() {
    let folder = std::env::temp_dir().join(format!("qd-bench-tools-{}", std::process::id()));
    let workspace = folder.join("workspace");
    std::fs::create_dir_all(&workspace).expect("a folder");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("threads").block_on(measure(&folder, workspace));
    std::fs::remove_dir_all(folder).expect("ours");
}

async fn measure(folder: &Path, workspace: PathBuf) {
    let warden = Warden::at(Path::new(env!("CARGO_BIN_EXE_qd-warden")), &[]);
    let settings = ToolboxSettings::new(workspace.clone(), folder.join("scratch"), warden.clone());
    let toolbox = Toolbox::open(settings).expect("it opens");
    let hooks = HookRunner::new(workspace.clone(), warden);
    let (mut plain, mut hooked, mut confined) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(timed(run_plainly(&workspace)).await);
        hooked.push(timed(run_hook(&hooks)).await);
        confined.push(timed(run_tool(&toolbox)).await);
    }
    let plain = half(plain);
    println!("`true`, half of {ROUNDS} runs each took less than:");
    println!("  started plainly                 {:>6.2} ms", ms(plain));
    for (what, took) in
        [("below a warden (a hook)", half(hooked)), ("confined (a tool)", half(confined))]
    {
        let ratio = took.as_secs_f64() / plain.as_secs_f64();
        println!("  {what:<31} {:>6.2} ms  {ratio:>5.1} x", ms(took));
    }
}

async fn run_plainly(workspace: &Path) {
    let status = tokio::process::Command::new("true").current_dir(workspace).status().await;
    assert!(status.expect("it starts").success());
}

async fn run_hook(hooks: &HookRunner) {
    let hook = HookConfig {
        name: "true".into(),
        command: vec!["true".to_owned()],
        timeout_ms: 10_000,
        failure_policy: FailurePolicy::default(),
        tool_filter: ToolFilter::default(),
        env_allow: Vec::new(),
    };
    let end = hooks.run(&hook, &[], &CancellationToken::new()).await;
    assert_eq!(end.error, None);
}

async fn run_tool(toolbox: &Toolbox) {
    let arguments = json!({"command": ["true"]});
    let (call_id, name) = ("call_1".into(), "run_command".into());
    let call = ToolCall { call_id, name, arguments, mutating: true };
    let order = ToolOrder { run: "toolrun_1".into(), attempt: 1, call };
    let outcome = toolbox.run(&order, CancellationToken::new()).await;
    assert!(format!("{outcome:?}").contains("is_error: false"), "{outcome:?}");
}

async fn timed(work: impl Future<Output = ()>) -> Duration {
    let begun = Instant::now();
    work.await;
    begun.elapsed()
}

fn half(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() / 2]
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}
