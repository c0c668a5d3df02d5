//! Our own files, and those of agents, inside a workspace: every way to them that we know, tried.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use qd_host::private_places::PrivatePlaces;
use qd_runners::tools::{Toolbox, ToolboxSettings};
use qd_session::machine::ToolOutcome;
use serde_json::json;

use super::world::{SECRET, World, run};

/// What lies in the home and must stay as it is.
const FILES: [(&str, &str); 6] = [
    (".local/state/quarterdeck/tokens/admin", SECRET),
    (".config/quarterdeck/policy.toml", SECRET),
    (".claude/settings.json", SECRET),
    (".claude.json", SECRET),
    (".codex/auth.json", SECRET),
    ("run/quarterdeck/token", SECRET),
];

/// Those that are not there yet, and must not be made.
const ABSENT: [&str; 4] = [
    ".gemini/settings.json",
    ".local/share/opencode/auth.json",
    ".config/opencode/opencode.json",
    ".local/state/quarterdeck/policy.toml",
];

struct Home(World);

impl Home {
    fn new() -> Self {
        let home = Self(World::new());
        fs::remove_dir_all(home.path(".ssh")).expect("removed");
        for (name, text) in FILES.into_iter().chain([
            ("project/file", "mine\n"),
            ("notes.txt", "mine\n"),
            (".config/other/file", "mine\n"),
        ]) {
            let path = home.path(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.base.join("home").join(name)
    }

    fn private(&self) -> PrivatePlaces {
        let ours = [".local/state/quarterdeck", ".config/quarterdeck", "run/quarterdeck"];
        PrivatePlaces::new(ours.map(|name| self.path(name)), &self.path(""), &BTreeMap::new())
    }

    fn settings(&self, workspace: &str) -> ToolboxSettings {
        let workspace = self.path(workspace);
        let scratch = self.path(".local/state/quarterdeck/scratch/0");
        ToolboxSettings { workspace, scratch, ..self.0.settings() }.without(self.private())
    }

    fn toolbox(&self, workspace: &str) -> Toolbox {
        Toolbox::open(self.settings(workspace)).expect("it opens")
    }

    fn check_untouched(&self, after: &str) {
        for (name, text) in FILES {
            let now = fs::read_to_string(self.path(name));
            assert_eq!(now.ok().as_deref(), Some(text), "{name} after {after}");
        }
        for name in ABSENT {
            assert!(fs::symlink_metadata(self.path(name)).is_err(), "{name} after {after}");
        }
    }
}

fn said(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Succeeded { output, .. } => output.to_string(),
        ToolOutcome::Failed { error } => error.to_string(),
    }
}

const ATTACKS: [&str; 44] = [
    "cat ~/.local/state/quarterdeck/tokens/admin",
    "cat ~/.config/quarterdeck/policy.toml",
    "cat ~/.claude/settings.json ~/.claude.json ~/.codex/auth.json",
    "cat ~/run/quarterdeck/*",
    "ls -R ~/.local/state/quarterdeck | grep admin && echo the-operators-secret",
    "ls ~/.claude && echo the-operators-secret",
    "find ~ -name admin 2>/dev/null | grep . && echo the-operators-secret",
    "grep -r operators ~/ 2>/dev/null",
    "cat /proc/self/root$HOME/.claude.json",
    "cat /proc/self/cwd/.claude.json",
    "cat /proc/self/cwd/quarterdeck/policy.toml",
    "cd ~/.local/state/quarterdeck/tokens && cat admin",
    "cd ~/.claude && cat settings.json",
    "cat $TMPDIR/../../tokens/admin",
    "ln -s ~/.claude.json ~/project/soft && cat ~/project/soft",
    "ln -s ~/.local/state/quarterdeck $TMPDIR/soft && cat $TMPDIR/soft/tokens/admin",
    "ln ~/.claude.json ~/project/hard && cat ~/project/hard",
    "ln ~/.local/state/quarterdeck/tokens/admin $TMPDIR/hard && cat $TMPDIR/hard",
    "mv ~/.config ~/project/config && cat ~/project/config/quarterdeck/policy.toml",
    "mv ~/.config ~/config; mkdir -p ~/.config/quarterdeck; echo x > ~/.config/quarterdeck/policy.toml",
    "mv ~/.config/quarterdeck ~/.config/other/moved && cat ~/.config/other/moved/policy.toml",
    "mv ~/.config/quarterdeck ./moved && cat moved/policy.toml",
    "mv ~/.local ~/local && cat ~/local/state/quarterdeck/tokens/admin",
    "mv ~/.local/state ~/project/state && cat ~/project/state/quarterdeck/tokens/admin",
    "mv ~/.claude ~/project/claude && cat ~/project/claude/settings.json",
    "mv ~/.claude.json ~/project/ && cat ~/project/.claude.json",
    "mv ~/run ~/project/run && cat ~/project/run/quarterdeck/token",
    "python3 -c \"import ctypes; print(ctypes.CDLL(None).syscall(316, -100, b'project', -100, b'.claude', 2))\" && cat project/settings.json",
    "cp -r ~/.claude ~/project/copy && cat ~/project/copy/settings.json",
    "tar cf - ~/.codex 2>/dev/null",
    "echo 'preset = \"yolo\"' > ~/.config/quarterdeck/policy.toml",
    "echo 'preset = \"yolo\"' > quarterdeck/policy.toml",
    "echo x >> ~/.claude/settings.json",
    "truncate -s 0 ~/.claude.json",
    "rm -rf ~/.config/quarterdeck ~/.claude ~/.codex ~/.local/state/quarterdeck/tokens",
    "cp ~/project/file ~/.claude/settings.json",
    "ln -sfn ~/project ~/.config",
    "ln -sfn ~/project ~/.gemini; echo x > ~/.gemini/settings.json",
    "mkdir -p ~/.gemini && echo x > ~/.gemini/settings.json",
    "mkdir -p ~/.local/share/opencode && echo x > ~/.local/share/opencode/auth.json",
    "mkdir -p ~/.config/opencode && echo x > ~/.config/opencode/opencode.json",
    "mkdir opencode && echo x > opencode/opencode.json",
    "echo x > ~/.local/state/quarterdeck/policy.toml",
    "mount --bind ~/.claude ~/project && cat ~/project/settings.json; unshare -rm cat ~/.claude.json",
];

#[tokio::test]
async fn no_command_reaches_our_files_or_the_agents() {
    let home = Home::new();
    for workspace in ["", ".config", ".local", "project"] {
        let toolbox = home.toolbox(workspace);
        for command in ATTACKS {
            let outcome = run(&toolbox, "bash", json!({"command": command})).await;
            let said = said(&outcome);
            assert!(!said.contains(SECRET), "in ~/{workspace}: {command}: {said}");
            home.check_untouched(&format!("{command} in ~/{workspace}"));
        }
    }
}

#[tokio::test]
async fn the_rest_of_such_a_workspace_can_be_worked_in() {
    let home = Home::new();
    let toolbox = home.toolbox("");
    for (command, output) in [
        ("cat notes.txt project/file .config/other/file", "mine\nmine\nmine\n"),
        ("echo more >> notes.txt; cat notes.txt", "mine\nmore\n"),
        (
            "mkdir project/new; echo x > project/new/file; mv project/new project/n; ls project",
            "file\nn\n",
        ),
        ("echo x > $TMPDIR/file; cat $TMPDIR/file", "x\n"),
        ("cd .config/other; echo x > new; cat new", "x\n"),
    ] {
        let outcome = run(&toolbox, "bash", json!({"command": command})).await;
        assert_eq!(
            outcome,
            ToolOutcome::Succeeded { output: output.into(), is_error: false },
            "{command}"
        );
    }
}

#[tokio::test]
async fn no_tool_reaches_them_either() {
    let home = Home::new();
    std::os::unix::fs::symlink("../.claude", home.path("project/link")).expect("linked");
    std::os::unix::fs::symlink("../.claude.json", home.path("project/file-link")).expect("linked");
    let toolbox = home.toolbox("");
    let ways = FILES.map(|(name, _)| name.to_owned()).into_iter().chain([
        "project/link/settings.json".to_owned(),
        "project/file-link".to_owned(),
        "project/../.claude.json".to_owned(),
        home.path(".claude.json").display().to_string(),
    ]);
    for way in ways {
        // Where the file itself lies in a folder that is open, one that is not is tried.
        let above = way.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_open = ["", "project", "project/.."].contains(&above) || way.starts_with('/');
        let folder = if is_open { ".claude" } else { above };
        for (tool, arguments) in [
            ("read_file", json!({"path": way})),
            ("grep", json!({"pattern": ".", "path": way})),
            ("write_file", json!({"path": way, "content": "x"})),
            ("edit_file", json!({"path": way, "old_text": SECRET, "new_text": "x"})),
            ("list_files", json!({"path": folder})),
            ("bash", json!({"command": "cat *", "folder": folder})),
            (
                "apply_patch",
                json!({"patch": format!("--- a/{way}\n+++ b/{way}\n@@ -1 +1 @@\n-{SECRET}\n\\ No newline at end of file\n+x\n")}),
            ),
        ] {
            let outcome = run(&toolbox, tool, arguments).await;
            let is_refused =
                matches!(&outcome, ToolOutcome::Failed { error } if error.starts_with("refused: "));
            let is_outside = tool == "apply_patch" && way.starts_with('/');
            assert!(is_refused || is_outside, "{tool} {way}: {outcome:?}");
            assert!(!said(&outcome).contains(SECRET), "{tool} {way}: {outcome:?}");
            home.check_untouched(&format!("{tool} {way}"));
        }
    }
    for way in ABSENT {
        let patch = format!("--- /dev/null\n+++ b/{way}\n@@ -0,0 +1 @@\n+x\n");
        for (tool, arguments) in [
            ("write_file", json!({"path": way, "content": "x"})),
            ("apply_patch", json!({"patch": patch})),
        ] {
            let outcome = run(&toolbox, tool, arguments).await;
            assert!(said(&outcome).starts_with("refused: "), "{tool} {way}: {outcome:?}");
            home.check_untouched(way);
        }
    }
    for (tool, arguments) in [
        ("list_files", json!({"depth": 9})),
        ("grep", json!({"pattern": "operators"})),
        ("search", json!({"query": "admin token policy settings auth"})),
    ] {
        let said = said(&run(&toolbox, tool, arguments).await);
        let is_seen = ["admin", "policy.toml", "settings.json", "auth.json", SECRET];
        assert!(!is_seen.iter().any(|name| said.contains(name)), "{tool}: {said}");
    }
}

/// Whoever reaches our socket needs no token.
#[tokio::test]
async fn our_socket_in_a_workspace_is_closed() {
    let home = Home::new();
    let listener = UnixListener::bind(home.path("run/quarterdeck/qd.sock")).expect("a socket");
    listener.set_nonblocking(true).expect("set");
    let script = "import socket, os\ns = socket.socket(socket.AF_UNIX)\n\
                  s.connect(os.environ['HOME'] + '/run/quarterdeck/qd.sock')\nprint('in')";
    let call = json!({"command": ["python3", "-c", script]});
    for workspace in ["", "run"] {
        let said = said(&run(&home.toolbox(workspace), "run_command", call.clone()).await);
        assert!(said.contains("PermissionError"), "{said}");
    }
    assert!(listener.accept().is_err(), "nobody called");
}

#[tokio::test]
async fn a_workspace_that_holds_them_says_so_and_one_that_is_theirs_is_refused() {
    let home = Home::new();
    let caution = home.toolbox("").caution().expect("it says so");
    assert!(caution.starts_with("This folder contains settings of Quarterdeck"), "{caution}");
    assert_eq!(home.toolbox("project").caution(), None);
    for inside in [".config/quarterdeck", ".local/state/quarterdeck/tokens", ".codex", ".claude"] {
        let error = Toolbox::open(home.settings(inside)).expect_err("refused").to_string();
        assert!(error.ends_with("choose another folder"), "{inside}: {error}");
    }
}
