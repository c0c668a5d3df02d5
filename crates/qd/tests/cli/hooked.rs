//! Hooks of any length and from anybody: the real forwarder, the real daemon, agents that are
//! processes of their own.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::world::{GENEROUS, World};

const MEGABYTE: usize = 1 << 20;

impl World {
    /// An agent that runs one hook, in a process that is no shell by its name. It runs until its
    /// hook has ended.
    fn agent(&self, name: &str, hook: &str, payload: &[u8]) -> Child {
        let program = self.path("tools").join(name);
        if !program.exists() {
            std::fs::create_dir_all(self.path("tools")).expect("a folder");
            // By another process: a file that a test beside this one inherits open for writing
            // cannot be run.
            let copied = std::process::Command::new("cp").arg("/bin/sh").arg(&program).status();
            assert!(copied.expect("cp runs").success());
        }
        let mut command = self.command(program);
        command.args(["-c", &format!("\"$0\" {hook}; true"), env!("CARGO_BIN_EXE_qd-hook")]);
        // Anybody can say that they are Claude Code in this session.
        command.env("CLAUDE_CODE_ENTRYPOINT", "cli").env("CLAUDE_CODE_SESSION_ID", "s-1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("an agent");
        child.stdin.take().expect("its input").write_all(payload).expect("written");
        child
    }

    /// The session's card, once it waits for an answer that a hook can take.
    fn asked(&self, session: &str) -> Value {
        let begun = Instant::now();
        loop {
            let board = self.run(&["status", "--json"]).expect(0).json();
            let cards = board.as_array().cloned().or_else(|| board["sessions"].as_array().cloned());
            let mut cards = cards.unwrap_or_else(|| panic!("no cards: {board}")).into_iter();
            let card = cards.find(|card| card["vendorId"] == session);
            if let Some(card) = card.filter(|card| card["requests"][0]["way"] == "hook") {
                return card;
            }
            assert!(begun.elapsed() < GENEROUS, "nobody is asked: {board:#}");
        }
    }

    fn metric(&self, name: &str) -> u64 {
        let mut stream = UnixStream::connect(self.socket()).expect("it listens");
        let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("asked");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("text");
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().expect("a number")
    }
}

fn said(mut child: Child) -> String {
    let mut out = String::new();
    child.stdout.take().expect("its output").read_to_string(&mut out).expect("text");
    assert!(child.wait().expect("it ends").success());
    out
}

/// A call with all that matters behind what is long.
fn call(event: &str, tool: &str, input: &str) -> Vec<u8> {
    format!(
        r#"{{"tool_input":{input},"tool_name":"{tool}","hook_event_name":"{event}","cwd":"/tmp","session_id":"s-1"}}"#
    )
    .into_bytes()
}

fn long(fill: &str, megabytes: usize) -> String {
    fill.repeat(megabytes * MEGABYTE / fill.len())
}

#[test]
fn a_permission_of_any_length_is_asked_and_answered() {
    for megabytes in [0, 5, 40] {
        let world = World::new();
        let _daemon = world.daemon();
        let input = format!(r#"{{"content":"{}","file_path":"/tmp/x"}}"#, long("x", megabytes));
        let hook = "wait --harness claude-code --within 60";
        let agent = world.agent("claude", hook, &call("PermissionRequest", "Write", &input));
        let card = world.asked("s-1");
        let request = &card["requests"][0];
        assert_eq!(request["tool"], "Write");
        assert_eq!(request["cut"] == true, megabytes > 0, "{megabytes} MiB: {}", request["cut"]);
        assert_eq!(request["takesChanges"], megabytes == 0);
        assert_eq!(world.metric("qd_hooks_cut_total"), u64::from(megabytes > 0));
        // Nobody allows from here what is not shown here.
        let (verb, behavior) = if megabytes == 0 { ("approve", "allow") } else { ("deny", "deny") };
        if megabytes > 0 {
            let refused = world.run(&["approve", "s-1"]).expect(1);
            assert!(refused.err.contains("too long to be shown whole"), "{}", refused.err);
        }
        world.run(&[verb, "s-1"]).expect(0);
        let answer = said(agent);
        assert!(answer.contains(&format!(r#""behavior":"{behavior}""#)), "{answer}");
        assert!(!answer.contains("updatedInput"), "nothing is sent back that was cut");
    }
}

/// Gemini CLI asks nobody here: what a rule may deny is denied, or it runs.
#[test]
fn no_length_and_no_odd_letter_gets_a_call_past_a_rule_that_denies() {
    let world = World::new();
    world.write(
        "home/.config/quarterdeck/policy.toml",
        "[[rule]]\nname = \"no rm\"\neffect = \"deny\"\ncommand = \"rm *\"\n",
    );
    let _daemon = world.daemon();
    let command = |text: &str| format!(r#"{{"command":"{text}"}}"#);
    let deep = format!(r#"{{"command":"rm x","a":{}{}}}"#, "[".repeat(300), "]".repeat(300));
    let many = |megabytes| format!(r#"{{"list":[{}0],"command":"rm x"}}"#, long("0,", megabytes));
    let inputs = [
        command("rm x"),
        command(&format!("true {} ; rm x", long("a", 5))),
        command(&format!("true {} ; rm x", long("a", 40))),
        command(r"rm \ud83d"),
        deep,
        many(3),
        many(40),
    ];
    for input in inputs {
        let payload = call("BeforeTool", "run_shell_command", &input);
        let hook = "wait --harness gemini-cli --holds-agent --within 60";
        let answer = said(world.agent("gemini", hook, &payload));
        let shown = &input[..input.len().min(60)];
        assert!(answer.contains(r#""decision":"deny""#), "{shown}: {answer:?}");
    }
    let mut payload = call("BeforeTool", "run_shell_command", &command("rm x@"));
    let at = payload.iter().position(|byte| *byte == b'@').expect("there");
    payload[at] = 0xff;
    let hook = "wait --harness gemini-cli --holds-agent --within 60";
    let answer = said(world.agent("gemini", hook, &payload));
    assert!(answer.contains(r#""decision":"deny""#), "{answer:?}");
    // What no rule is about goes on, however long it is.
    let payload =
        call("BeforeTool", "write_file", &format!(r#"{{"content":"{}"}}"#, long("x", 40)));
    assert_eq!(said(world.agent("gemini", hook, &payload)), "");
}

#[test]
fn a_forged_hook_ends_nothing_of_another_session() {
    let world = World::new();
    let _daemon = world.daemon();
    let input = r#"{"command":"make"}"#;
    let wait = "wait --harness claude-code --within 60";
    let mut victim = world.agent("claude", wait, &call("PermissionRequest", "Bash", input));
    let before = world.asked("s-1")["requests"].clone();
    let forged = [
        json!({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}),
        json!({"hook_event_name": "Stop", "last_assistant_message": "Done."}),
        json!({"hook_event_name": "UserPromptSubmit", "prompt": "go"}),
        json!({"hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_input": {"command": "make"}, "tool_response": {}}),
        json!({"hook_event_name": "PostToolBatch", "tool_calls": []}),
        json!({"hook_event_name": "PermissionDenied", "tool_name": "Bash"}),
        json!({"hook_event_name": "SessionStart", "source": "clear"}),
        json!({"hook_event_name": "Notification", "notification_type": "idle_prompt"}),
    ];
    let count = forged.len() as u64;
    for mut payload in forged {
        payload["session_id"] = "s-1".into();
        let text = payload.to_string();
        let stranger = world.agent("evil", "send --harness claude-code", text.as_bytes());
        assert_eq!(said(stranger), "");
        assert_eq!(world.asked("s-1")["requests"], before, "{text}");
        assert!(victim.try_wait().expect("a child").is_none(), "its hook still waits: {text}");
    }
    // One that waits in its place is let go at once and told nothing.
    for event in ["PermissionRequest", "Stop"] {
        let payload = call(event, "Bash", input);
        let stranger = world.agent("evil", &format!("{wait} --event {event}"), &payload);
        assert_eq!(said(stranger), "");
    }
    assert_eq!(world.metric("qd_hooks_strangers_total"), count + 2);
    world.run(&["approve", "s-1"]).expect(0);
    assert!(said(victim).contains(r#""behavior":"allow""#));
}
