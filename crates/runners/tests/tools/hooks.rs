//! `hooks.json`, and hooks that run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use qd_broker::driving::HookedRun;
use qd_runners::hooks::{HookConfigInvalid, HookEnd, HookRunner, HooksFile};
use qd_session::machine::{FailurePolicy, HookConfig, ToolFilter};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::world::{SECRET, World, alive, mark, warden};

const PAGE: &str = include_str!("../../../../docs/hooks.md");

fn parsed(text: &str) -> Result<Vec<HookConfig>, HookConfigInvalid> {
    HooksFile::parsed(text, Path::new("hooks.json"))
}

#[test]
fn the_example_of_the_page_is_read() {
    let example = PAGE.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
    let hooks = parsed(example.expect("an example")).expect("it is right");
    assert_eq!(
        hooks,
        [
            HookConfig {
                name: "format".into(),
                command: ["cargo", "fmt"].map(str::to_owned).to_vec(),
                timeout_ms: 60_000,
                failure_policy: FailurePolicy::Retry { max_attempts: 2, delay_ms: 500 },
                tool_filter: ToolFilter::ToolNames {
                    names: ["edit_file", "write_file", "apply_patch"].map(str::to_owned).to_vec(),
                },
                env_allow: Vec::new(),
            },
            HookConfig {
                name: "auto_commit".into(),
                command: ["git", "-c", "core.hooksPath=/dev/null", "commit", "-am", "Auto-commit"]
                    .map(str::to_owned)
                    .to_vec(),
                timeout_ms: 120_000,
                failure_policy: FailurePolicy::WarnContinue,
                tool_filter: ToolFilter::AnyMutating,
                env_allow: vec!["SSH_AUTH_SOCK".to_owned()],
            },
        ]
    );
    let plain = parsed(r#"{"hooks":[{"name":"x","command":["true"]}]}"#).expect("defaults");
    assert_eq!(plain[0].failure_policy, FailurePolicy::FailSession);
    assert_eq!((plain[0].timeout_ms, &plain[0].tool_filter), (120_000, &ToolFilter::AnyMutating));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let hook = |more: Value| {
        let mut hook = json!({"name": "x", "command": ["true"]});
        let fields = hook.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        json!({"hooks": [{"name": "first", "command": ["true"]}, hook]}).to_string()
    };
    for (text, place) in [
        ("{".to_owned(), ""),
        ("[]".to_owned(), ""),
        ("{}".to_owned(), "hooks"),
        (json!({"hooks": {}}).to_string(), "hooks"),
        (json!({"hooks": [], "more": 1}).to_string(), "more"),
        (json!({"hooks": [1]}).to_string(), "hooks[0]"),
        (json!({"hooks": [{"command": ["x"]}]}).to_string(), "hooks[0].name"),
        (json!({"hooks": [{"name": "x"}]}).to_string(), "hooks[0].command"),
        (hook(json!({"name": "first"})), "hooks[1].name"),
        (hook(json!({"name": " "})), "hooks[1].name"),
        (hook(json!({"command": []})), "hooks[1].command"),
        (hook(json!({"command": "ls"})), "hooks[1].command"),
        (hook(json!({"command": ["a\0b"]})), "hooks[1].command"),
        (hook(json!({"timeout_ms": 0})), "hooks[1].timeout_ms"),
        (hook(json!({"timeout_ms": -1})), "hooks[1].timeout_ms"),
        (hook(json!({"timeout_ms": 9_999_999_999_u64})), "hooks[1].timeout_ms"),
        (hook(json!({"timeout": 5})), "hooks[1].timeout"),
        (hook(json!({"failure_policy": "retry"})), "hooks[1].failure_policy"),
        (hook(json!({"failure_policy": {"type": "ignore"}})), "hooks[1].failure_policy.type"),
        (
            hook(json!({"failure_policy": {"type": "retry", "delay_ms": 1}})),
            "hooks[1].failure_policy.max_attempts",
        ),
        (
            hook(json!({"failure_policy": {"type": "retry", "max_attempts": 0, "delay_ms": 1}})),
            "hooks[1].failure_policy.max_attempts",
        ),
        (
            hook(json!({"failure_policy": {"type": "fail_session", "delay_ms": 1}})),
            "hooks[1].failure_policy.delay_ms",
        ),
        (hook(json!({"tool_filter": {"type": "tool_names"}})), "hooks[1].tool_filter.names"),
        (
            hook(json!({"tool_filter": {"type": "tool_names", "names": []}})),
            "hooks[1].tool_filter.names",
        ),
        (hook(json!({"tool_filter": {"type": "any"}})), "hooks[1].tool_filter.type"),
        (hook(json!({"env_allow": ["A=B"]})), "hooks[1].env_allow"),
    ] {
        let error = parsed(&text).expect_err(&text);
        assert_eq!(error.place, place, "{text}: {error}");
        assert!(error.to_string().starts_with("hooks.json: "), "{error}");
    }
    assert_eq!(serde_json::to_value(HookConfigInvalid::CODE).expect("text"), "hook_config_invalid");
}

#[test]
fn a_file_that_is_missing_has_no_hooks_and_one_that_is_odd_is_an_error() {
    let world =
        World::new().with(&[("hooks.json", r#"{"hooks":[]}"#), ("long", &" ".repeat(300_000))]);
    assert_eq!(HooksFile::read(&world.path("none.json")), Ok(Vec::new()));
    assert_eq!(HooksFile::read(&world.path("hooks.json")), Ok(Vec::new()));
    assert!(HooksFile::read(&world.path("long")).is_err());
    fs::create_dir(world.path("folder.json")).expect("made");
    assert!(HooksFile::read(&world.path("folder.json")).is_err());
}

async fn ran(
    world: &World,
    command: &[&str],
    timeout_ms: u64,
    cancel: &CancellationToken,
) -> HookEnd {
    let runner = HookRunner {
        workspace: world.workspace(),
        warden: warden(),
        environment: world.settings().environment,
    };
    let hook = HookConfig {
        name: "hook".into(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        timeout_ms,
        failure_policy: FailurePolicy::FailSession,
        tool_filter: ToolFilter::AnyMutating,
        env_allow: vec!["WANTED".to_owned()],
    };
    let runs = [
        HookedRun { run: "toolrun_1".into(), tool: "edit_file".into() },
        HookedRun { run: "toolrun_2".into(), tool: "bash".into() },
    ];
    runner.run(&hook, &runs, cancel).await
}

async fn check(world: &World, command: &[&str], error: Option<&str>, output: &str) {
    let end = ran(world, command, 60_000, &CancellationToken::new()).await;
    assert_eq!((end.error.as_deref(), end.output.as_str()), (error, output), "{command:?}");
}

#[tokio::test]
async fn a_hook_runs_in_the_workspace_and_is_told_which_tools_ran() {
    let world = World::new();
    let workspace = world.workspace();
    check(&world, &["pwd"], None, &format!("{}\n", workspace.display())).await;
    let end = ran(&world, &["cat"], 60_000, &CancellationToken::new()).await;
    let told: Value = serde_json::from_str(&end.output).expect("JSON");
    assert_eq!(
        told,
        json!({"hook": "hook", "workspace": workspace, "toolRuns": [
            {"runId": "toolrun_1", "toolName": "edit_file"},
            {"runId": "toolrun_2", "toolName": "bash"},
        ]})
    );
    // It is the operator's: it may write where they may.
    let out = world.outside().join("hooked");
    check(&world, &["touch", out.to_str().expect("text")], None, "").await;
    assert!(out.exists());
}

#[tokio::test]
async fn a_hook_gets_the_environment_that_it_may_have() {
    let world = World::new();
    let end = ran(&world, &["env"], 60_000, &CancellationToken::new()).await;
    let names: BTreeMap<&str, &str> =
        end.output.lines().filter_map(|line| line.split_once('=')).collect();
    assert_eq!(names.into_keys().collect::<Vec<_>>(), ["HOME", "LANG", "PATH", "USER", "WANTED"]);
    assert!(!end.output.contains(SECRET));
}

#[tokio::test]
async fn a_hook_that_fails_says_why() {
    let world = World::new();
    let script = ["sh", "-c", "echo checking; echo 'not formatted' >&2; exit 4"];
    check(&world, &script, Some("exit code 4: not formatted"), "checking\nnot formatted\n").await;
    check(&world, &["sh", "-c", "exit 1"], Some("exit code 1"), "").await;
    let end = ran(&world, &["no-such-hook"], 60_000, &CancellationToken::new()).await;
    assert!(end.error.expect("it failed").starts_with("cannot run no-such-hook: "));
}

#[tokio::test]
async fn a_hook_ends_at_its_time_with_all_that_it_started() {
    let (world, mark) = (World::new(), mark());
    let script = format!("echo so far; setsid sleep {mark} & sleep {mark}");
    let end = ran(&world, &["bash", "-c", &script], 3_000, &CancellationToken::new()).await;
    assert_eq!(end.error.as_deref(), Some("it ran longer than 3000 ms: so far"));
    assert_eq!(alive(&mark), Vec::<String>::new());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let end = ran(&world, &["bash", "-c", &script], 60_000, &cancel).await;
    assert!(end.error.is_some());
    assert_eq!(alive(&mark), Vec::<String>::new());
}
