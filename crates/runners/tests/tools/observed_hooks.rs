//! Post-tool hooks for an agent that somebody else started.

use qd_harness::Harness;
use qd_harness::tools_ran::ToolsRan;
use qd_runners::hooks::{HooksFile, ObservedHooks};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::world::{World, warden};

fn hook(name: &str, line: &str, more: Value) -> Value {
    let mut hook = json!({"name": name, "command": ["sh", "-c", line]});
    let fields = hook.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    hook
}

/// A batch of Claude Code with these tools, and what it is told in the end.
async fn check(world: &World, hooks: &[Value], tools: &[&str], told: Option<&str>) {
    let text = json!({"hooks": hooks}).to_string();
    let hooks = HooksFile::parsed(&text, "hooks.json".as_ref()).expect("they are right");
    let hooks = ObservedHooks { hooks, warden: warden() };
    let call =
        |(nth, tool): (usize, &&str)| json!({"tool_name": tool, "tool_use_id": format!("c{nth}")});
    let calls: Vec<Value> = tools.iter().enumerate().map(call).collect();
    let payload = json!({"session_id": "s", "cwd": world.workspace(),
        "hook_event_name": "PostToolBatch", "tool_calls": calls});
    let ran = ToolsRan::read(Harness::ClaudeCode, payload.to_string().as_bytes()).expect("tools");
    let said = hooks.run(&ran, &CancellationToken::new()).await;
    assert_eq!(said.as_deref(), told, "{text}");
    assert!(hooks.wants(&ran) || said.is_none());
}

#[tokio::test]
async fn hooks_that_are_for_it_run_in_their_order_until_one_fails() {
    let world = World::new();
    let hooks = [
        hook(
            "warns",
            "echo warns >> log; exit 1",
            json!({"failure_policy": {"type": "warn_continue"}}),
        ),
        hook(
            "edits",
            "echo edits >> log",
            json!({"tool_filter": {"type": "tool_names", "names": ["Edit"]}}),
        ),
        hook("fails", "echo fails >> log; echo why; exit 2", json!({})),
        hook("never", "echo never >> log", json!({})),
    ];
    let why = "post-tool hook fails failed: exit code 2: why";
    check(&world, &hooks, &["Read", "Bash"], Some(why)).await;
    assert_eq!(world.text("log"), "warns\nfails\n");
    check(&world, &hooks[..2], &["Edit"], None).await;
    assert_eq!(world.text("log"), "warns\nfails\nwarns\nedits\n");
}

#[tokio::test]
async fn what_changed_nothing_calls_for_no_hook() {
    let world = World::new().with(&[("log", "")]);
    let named = json!({"tool_filter": {"type": "tool_names", "names": ["Read"]}});
    let hooks =
        [hook("any", "echo any >> log", json!({})), hook("named", "echo named >> log", named)];
    check(&world, &hooks, &["Read", "Grep"], None).await;
    assert_eq!(world.text("log"), "");
}

#[tokio::test]
async fn a_hook_is_tried_again_as_often_as_it_says() {
    let world = World::new();
    let retry = json!({"failure_policy": {"type": "retry", "max_attempts": 3, "delay_ms": 1}});
    let hooks = [hook("third", "echo x >> log; test $(wc -l < log) = 3", retry.clone())];
    check(&world, &hooks, &["Bash"], None).await;
    assert_eq!(world.text("log"), "x\nx\nx\n");
    let hooks = [hook("never", "exit 1", retry)];
    check(&world, &hooks, &["Bash"], Some("post-tool hook never failed: exit code 1")).await;
}
