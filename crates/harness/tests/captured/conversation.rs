//! What captured sessions said, as a reader of the transcript sees it.

use qd_harness::Channel;
use qd_harness::conversation::{Conversation, Entry, Form, Role};
use qd_harness::gemini_cli::Chat;

use super::capture::{Capture, captures, top};

/// The entries of a capture's own transcript, read line by line.
fn entries_of(capture: &Capture) -> Vec<Entry> {
    let harness = capture.scenario.harness;
    let signals = capture.signals.iter().filter_map(|signal| signal.signal());
    let lines = signals.filter(|signal| {
        let file = signal.file.unwrap_or_default();
        signal.channel == Channel::Transcript && !file.contains("subagents")
    });
    let lines = lines.zip(0..).map(|(line, place)| (line.payload, place));
    match harness.transcript_form().expect("a form") {
        Form::Lines(read) => {
            let pieces = lines.flat_map(|(line, place)| read(line, place));
            pieces.collect::<Conversation>().into_entries()
        }
        // No capture holds a database.
        Form::Rows => Vec::new(),
        Form::Whole => {
            let mut chat = Chat::default();
            lines.for_each(|(line, place)| chat.take(line, place));
            chat.into_entries()
        }
    }
}

fn told(name: &str) -> Vec<String> {
    let short = |text: &str| -> String { text.chars().take(60).collect() };
    let line = |entry: &Entry| {
        let role = format!("{:?}", entry.role).to_lowercase();
        let agent = entry.agent.as_ref().map(|_| " sub").unwrap_or_default();
        let text = entry.text.as_deref().map(|text| format!(" {:?}", short(text)));
        let tool = entry.tool.as_ref().map(|tool| {
            let input = tool.input.as_ref().map(|input| short(&input.to_string()));
            let output = tool.output.as_deref().map(short);
            let failed = if tool.failed { " failed" } else { "" };
            format!(" {} {} -> {:?}{failed}", tool.name, input.unwrap_or_default(), output)
        });
        format!("{role}{agent}{}{}", text.unwrap_or_default(), tool.unwrap_or_default())
    };
    entries_of(&Capture::read(&top().join(name))).iter().map(line).collect()
}

fn check(name: &str, expected: &[&str]) {
    assert_eq!(told(name), expected, "{name}");
}

#[test]
fn claude_codes_transcript_is_told_without_what_the_client_put_into_it() {
    check(
        "claude-code/tui-permission-deny",
        &[
            r#"user "write the file""#,
            r#"assistant "I will write the file.""#,
            r#"tool Write {"content":"hello\n","file_path":"/home/user/acme/x.txt"} -> Some("The user doesn't want to proceed with this tool use. The too") failed"#,
            r#"system "Request interrupted by user for tool use""#,
        ],
    );
    check(
        "claude-code/tui-compact",
        &[
            r#"user "hello""#,
            r#"assistant "First answer.""#,
            r#"system "Conversation compacted""#,
            r#"system "/compact keep it short""#,
            r#"system "Compacted (ctrl+o to see full summary)\nPreCompact [/home/use""#,
            r#"user "next""#,
            r#"assistant "Second.""#,
        ],
    );
    check(
        "claude-code/tui-api-error-529",
        &[
            r#"user "hello""#,
            r#"system "API Error: Repeated 529 Overloaded errors. The API is at cap""#,
            r#"user "try again""#,
            r#"assistant "Recovered on retry.""#,
        ],
    );
}

#[test]
fn codexs_rollout_is_told_with_what_really_ran() {
    check(
        "codex/app-command-fail",
        &[
            r#"user "run the failing thing""#,
            r#"assistant "Working.""#,
            r#"tool exec_command {"cmd":"echo oops >&2; exit 3"} -> Some("oops\n") failed"#,
            r#"assistant "It failed.""#,
        ],
    );
    check(
        "codex/hook-stop-block",
        &[
            r#"user "go""#,
            r#"assistant "First stop.""#,
            r#"system "Run the tests too""#,
            r#"assistant "Second stop.""#,
        ],
    );
    let script = told("codex/app-codemode-approval");
    assert!(script[2].starts_with(r#"tool exec_command "touch /home/coder/outside.txt""#));
    assert!(told("codex/app-approve-decline")[2].ends_with(" failed"));
}

#[test]
fn geminis_chat_is_told_as_it_is_after_its_last_patch() {
    check(
        "gemini/tool-error",
        &[
            r#"user "read it #scn:g-fail""#,
            r#"tool read_file {"file_path":"/home/dev/acme/nope.js"} -> Some("Path not in workspace: Attempted path \"/home/dev/acme/nope.j") failed"#,
            r#"assistant "That file does not exist.""#,
        ],
    );
    // A cancelled prompt made the client write the past again.
    let again = told("gemini/interactive-permission");
    let roles: Vec<&str> = again.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"], "{again:#?}");
}

#[test]
fn nothing_the_client_injected_is_a_persons_words() {
    for capture in captures() {
        if capture.scenario.harness.transcript_form().is_none() {
            continue;
        }
        for entry in entries_of(&capture) {
            let words = entry.text.unwrap_or_default();
            let injected = words.starts_with('<') || words.contains("<system-reminder>");
            assert!(entry.role != Role::User || !injected, "{}: {words}", capture.name);
        }
    }
}
