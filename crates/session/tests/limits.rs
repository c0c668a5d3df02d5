//! `spec/limits.md` shows the numbers that hold.

use qd_session::limits::*;
use qd_session::machine::{FailurePolicy, HookConfig, ToolFilter};

#[test]
fn the_page_shows_the_limits_that_hold() {
    let [first, second] = LLM_RETRY_DELAYS_MS;
    let held = [
        ("ABOUT_BYTES_MAX", ABOUT_BYTES_MAX.to_string()),
        ("LAYER_LABEL_CHARS_MAX", LAYER_LABEL_CHARS_MAX.to_string()),
        ("LAYER_RULES_MAX", LAYER_RULES_MAX.to_string()),
        ("LAYER_PATTERN_BYTES_MAX", LAYER_PATTERN_BYTES_MAX.to_string()),
        ("LAYER_PATTERN_COMPILED_BYTES_MAX", LAYER_PATTERN_COMPILED_BYTES_MAX.to_string()),
        ("LAYER_COMMAND_BYTES_MAX", LAYER_COMMAND_BYTES_MAX.to_string()),
        ("POLICY_RULES_MAX", POLICY_RULES_MAX.to_string()),
        ("POLICY_PATTERNS_MAX", POLICY_PATTERNS_MAX.to_string()),
        ("POLICY_TEXT_BYTES_MAX", POLICY_TEXT_BYTES_MAX.to_string()),
        ("POLICY_COMMAND_BYTES_MAX", POLICY_COMMAND_BYTES_MAX.to_string()),
        ("POLICY_COMMANDS_MAX", POLICY_COMMANDS_MAX.to_string()),
        ("POLICY_COMMAND_DEPTH_MAX", POLICY_COMMAND_DEPTH_MAX.to_string()),
        ("POLICY_WRAPPED_WORDS_MAX", POLICY_WRAPPED_WORDS_MAX.to_string()),
        ("POLICY_OPTIONS_MAX", POLICY_OPTIONS_MAX.to_string()),
        ("POLICY_PATHS_MAX", POLICY_PATHS_MAX.to_string()),
        ("TOOL_SPANS_MAX", TOOL_SPANS_MAX.to_string()),
        ("REQUESTS_MAX", REQUESTS_MAX.to_string()),
        ("REQUEST_ASKS_MAX", REQUEST_ASKS_MAX.to_string()),
        ("SUBAGENTS_MAX", SUBAGENTS_MAX.to_string()),
        ("PROCESSES_MAX", PROCESSES_MAX.to_string()),
        ("TIMELINE_RUNS_MAX", TIMELINE_RUNS_MAX.to_string()),
        ("TIMELINE_SPANS_MAX", TIMELINE_SPANS_MAX.to_string()),
        ("MISSING_PROCESS_GRACE_MS", MISSING_PROCESS_GRACE_MS.to_string()),
        ("UNOBSERVED_WORK_MAX_MS", UNOBSERVED_WORK_MAX_MS.to_string()),
        ("UNOBSERVED_KEPT_MS", UNOBSERVED_KEPT_MS.to_string()),
        ("FAILED_TOOL_GRACE_MS", FAILED_TOOL_GRACE_MS.to_string()),
        ("LOOPING_CALLS_MIN", LOOPING_CALLS_MIN.to_string()),
        ("STALLED_AFTER_MS", STALLED_AFTER_MS.to_string()),
        ("ENDED_ON_BOARD_MS", ENDED_ON_BOARD_MS.to_string()),
        ("LLM_SILENCE_MAX_MS", LLM_SILENCE_MAX_MS.to_string()),
        ("LLM_RETRY_DELAYS_MS", format!("{first}, {second}")),
        ("RETRY_AFTER_MAX_MS", RETRY_AFTER_MAX_MS.to_string()),
        ("TOOL_RETRIES_MAX", TOOL_RETRIES_MAX.to_string()),
        ("TOOL_RETRY_DELAY_MS", TOOL_RETRY_DELAY_MS.to_string()),
        ("TOOL_TIMEOUT_MS", TOOL_TIMEOUT_MS.to_string()),
        ("HOOK_TIMEOUT_MS", HOOK_TIMEOUT_MS.to_string()),
        ("STOP_GRACE_MS", STOP_GRACE_MS.to_string()),
        ("SESSION_CREATED_GRACE_MS", SESSION_CREATED_GRACE_MS.to_string()),
        ("FROZEN_BYTES_MAX", FROZEN_BYTES_MAX.to_string()),
        ("FROZEN_DEPTH_MAX", FROZEN_DEPTH_MAX.to_string()),
        ("CALLS_PER_ANSWER_MAX", CALLS_PER_ANSWER_MAX.to_string()),
        ("CONVERSATION_BYTES_MAX", CONVERSATION_BYTES_MAX.to_string()),
        ("CALL_OUTPUT_BYTES_MAX", CALL_OUTPUT_BYTES_MAX.to_string()),
        ("THEIR_OUTPUT_BYTES_MAX", THEIR_OUTPUT_BYTES_MAX.to_string()),
        ("RECORD_BYTES_MAX", RECORD_BYTES_MAX.to_string()),
        ("SHOWN_TEXT_BYTES_MAX", SHOWN_TEXT_BYTES_MAX.to_string()),
        ("SHOWN_INPUT_BYTES_MAX", SHOWN_INPUT_BYTES_MAX.to_string()),
        ("WHY_BYTES_MAX", WHY_BYTES_MAX.to_string()),
        ("BOOK_DECISIONS_MAX", BOOK_DECISIONS_MAX.to_string()),
        ("BOOK_BYTES_MAX", BOOK_BYTES_MAX.to_string()),
        ("BOOK_REQUESTS_MAX", BOOK_REQUESTS_MAX.to_string()),
        ("BOOK_CLOSED_MAX", BOOK_CLOSED_MAX.to_string()),
        ("BOOK_RECORDS_MAX", BOOK_RECORDS_MAX.to_string()),
        ("NOTICE_DWELL_MS", NOTICE_DWELL_MS.to_string()),
        ("NOTICE_COOLDOWN_MS", NOTICE_COOLDOWN_MS.to_string()),
        ("NOTICE_NEWS_MS", NOTICE_NEWS_MS.to_string()),
        ("NOTICE_QUIET_LOOK_MS", NOTICE_QUIET_LOOK_MS.to_string()),
        ("NOTICE_SESSIONS_MAX", NOTICE_SESSIONS_MAX.to_string()),
        ("NOTICE_MATTERS_MAX", NOTICE_MATTERS_MAX.to_string()),
        ("NOTICE_SUMMARY_MAX", NOTICE_SUMMARY_MAX.to_string()),
        ("NOTICES_REMEMBERED_MAX", NOTICES_REMEMBERED_MAX.to_string()),
        ("NOTICE_TITLE_CHARS_MAX", NOTICE_TITLE_CHARS_MAX.to_string()),
        ("NOTICE_TEXT_CHARS_MAX", NOTICE_TEXT_CHARS_MAX.to_string()),
        ("NOTICE_ALLOW_CHARS_MAX", NOTICE_ALLOW_CHARS_MAX.to_string()),
        ("QUIET_RANGES_MAX", QUIET_RANGES_MAX.to_string()),
    ];
    let page = include_str!("../../../spec/limits.md");
    let written: Vec<(&str, String)> = page
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let name = cells.next().expect("a name");
            (name, cells.next().expect("a value").to_owned())
        })
        .collect();
    assert_eq!(written, held);
}

/// `hooks.json` as the seed writes it, with what it leaves out.
#[test]
fn a_hook_has_defaults() {
    let written = r#"{"name":"auto_commit","command":["git","commit","-am","Auto-commit"]}"#;
    let hook: HookConfig = serde_json::from_str(written).expect("only what is necessary");
    assert_eq!(hook.timeout_ms, 120_000);
    assert_eq!(hook.failure_policy, FailurePolicy::FailSession);
    assert_eq!(hook.tool_filter, ToolFilter::AnyMutating);
    let full = r#"{"name":"fmt","command":["cargo","fmt"],"timeout_ms":9,
        "failure_policy":{"type":"retry","max_attempts":2,"delay_ms":500},
        "tool_filter":{"type":"tool_names","names":["edit_file"]}}"#;
    let hook: HookConfig = serde_json::from_str(full).expect("all of it");
    assert_eq!(hook.failure_policy, FailurePolicy::Retry { max_attempts: 2, delay_ms: 500 });
    assert_eq!(hook.tool_filter, ToolFilter::ToolNames { names: vec!["edit_file".into()] });
}
