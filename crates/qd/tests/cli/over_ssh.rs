//! An agent on another machine, whose hooks SSH brings: docs/hooks-by-hand.md, with a real sshd.
//!
//! "There" has a home of its own and the same pids, so a pid that is believed would be found here.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::world::World;

/// The other machine. Its sshd runs for one connection at a time, at the end of a pipe.
struct There<'a> {
    world: &'a World,
}

impl<'a> There<'a> {
    fn new(world: &'a World) -> Self {
        for key in ["host", "key"] {
            let mut keygen = world.command("/usr/bin/ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(world.path(key));
            assert!(keygen.status().expect("ssh-keygen runs").success());
        }
        // Everybody may write to a test's folder above, which an sshd would else refuse.
        let config = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n",
            world.path("host").display(),
            world.path("key.pub").display(),
        );
        world.write("sshd_config", &config);
        if rustix::process::geteuid().is_root() {
            // Debian's service makes it before it starts the program.
            fs::create_dir_all("/run/sshd").expect("a folder");
        }
        let there = Self { world };
        fs::create_dir_all(there.socket().parent().expect("a folder")).expect("made");
        there
    }

    fn socket(&self) -> PathBuf {
        self.world.path("there/.local/state/quarterdeck/qd.sock")
    }

    /// Runs something over there while the daemon's socket is brought there.
    fn ssh(&self, command: &str) -> Command {
        let user = rustix::process::geteuid().as_raw();
        let user = Command::new("/usr/bin/id").args(["-un", &user.to_string()]).output();
        let user = String::from_utf8(user.expect("id runs").stdout).expect("a name");
        let sshd = format!("/usr/sbin/sshd -i -f {}", self.world.path("sshd_config").display());
        let sockets = format!("{}:{}", self.socket().display(), self.world.socket().display());
        // As the page says: sshd leaves the socket of an earlier connection.
        let _ = fs::remove_file(self.socket());
        let mut ssh = self.world.command("/usr/bin/ssh");
        ssh.args(["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"])
            .args(["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-i"])
            .arg(self.world.path("key"))
            .args(["-o", &format!("ProxyCommand={sshd}"), "-o", "ExitOnForwardFailure=yes"])
            .args(["-R", &sockets, &format!("{}@there", user.trim()), command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        ssh
    }

    /// A hook of Claude Code over there, as it runs it.
    fn hook(&self, words: &str, payload: &Value) -> Child {
        let session = payload["session_id"].as_str().expect("a session");
        let command = format!(
            "env -i HOME={} CLAUDE_CODE_SESSION_ID={session} CLAUDE_CODE_ENTRYPOINT=cli {} {words}",
            self.world.path("there").display(),
            env!("CARGO_BIN_EXE_qd-hook"),
        );
        let mut child = self.ssh(&command).spawn().expect("ssh runs");
        let mut stdin = child.stdin.take().expect("its input");
        stdin.write_all(payload.to_string().as_bytes()).expect("written");
        child
    }

    fn sends(&self, payload: &Value) {
        let said = ended(self.hook("send --harness claude-code", payload));
        assert!(said.stdout.is_empty(), "{said:?}");
        let spool = self.world.path("there/.local/state/quarterdeck/spool");
        assert!(!spool.exists(), "it arrived");
    }
}

fn ended(child: Child) -> Output {
    let output = child.wait_with_output().expect("ssh ends");
    assert!(output.status.success(), "{output:?}");
    output
}

fn payload(session: &str, event: &str) -> Value {
    json!({"session_id": session, "hook_event_name": event, "prompt": "fix the parser",
        "cwd": "/home/ann/acme", "permission_mode": "default", "tool_name": "Bash",
        "tool_input": {"command": "make"}, "reason": "other",
        "transcript_path": "/home/ann/.claude/projects/-home-ann-acme/far.jsonl"})
}

impl World {
    fn card(&self, session: &str) -> Value {
        let board = self.run(&["status", "--json"]).expect(0).json();
        let cards = board["sessions"].as_array().cloned().unwrap_or_default();
        cards.into_iter().find(|card| card["vendorId"] == session).expect("its card")
    }
}

#[test]
fn an_agent_on_another_machine_is_shown_and_answered_and_no_process_here_is_taken_for_it() {
    let world = World::new();
    let daemon = world.daemon();
    let there = There::new(&world);
    there.sends(&payload("far", "UserPromptSubmit"));
    let card = world.card("far");
    assert_eq!(card["agentState"]["state"], "thinking");
    assert_eq!((&card["where"], &card["alsoOpenIn"]), (&Value::Null, &Value::Null));
    assert_eq!(card["capabilities"]["canStop"], false);

    let waits = "wait --harness claude-code --event PermissionRequest --within 60";
    let hook = there.hook(waits, &payload("far", "PermissionRequest"));
    world.run(&["wait", "far", "--until", "needs-permission", "--timeout", "60"]).expect(0);
    world.run(&["approve", "far", "--yes"]).expect(0);
    let said: Value = serde_json::from_slice(&ended(hook).stdout).expect("an answer");
    assert_eq!(said["hookSpecificOutput"]["decision"]["behavior"], "allow");

    there.sends(&payload("far", "Stop"));
    assert_eq!(daemon.stop(rustix::process::Signal::TERM), Some(0));
    let _daemon = world.daemon();
    assert_eq!(world.card("far")["where"], Value::Null, "nor after a restart");
}

#[test]
fn another_machine_ends_no_session_of_this_one() {
    let world = World::new();
    let _daemon = world.daemon();
    world.agent_starts("near");
    assert_ne!(world.card("near")["where"], Value::Null, "a process here holds it");
    let there = There::new(&world);
    there.sends(&payload("near", "SessionEnd"));
    assert_eq!(world.card("near")["agentState"]["state"], "thinking");
    let report = world.run(&["doctor", "--json"]).json();
    let checks = report["checks"].as_array().expect("checks");
    let told = |check: &Value| check["reason"].as_str().is_some_and(|why| why.contains("ignored"));
    assert!(checks.iter().any(told), "{checks:?}");
}
