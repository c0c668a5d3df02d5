//! Agents that run and cannot be read: the process table is the witness.

use qd_testbed::{Client, Script, Terminal};
use serde_json::Value;

use crate::world::{World, eventually};

/// What the board lists of them.
fn unreadable(world: &World) -> Vec<Value> {
    let board: Value = serde_json::from_str(&world.must(&["status", "--json"])).expect("JSON");
    board["summary"]["unreadable"].as_array().cloned().unwrap_or_default()
}

/// It is listed while it runs, on the command line too, and claims nothing else.
fn it_is_listed_while_it_runs(world: &World, terminal: Terminal, product: &str) {
    let pid = terminal.pid().expect("it runs");
    let seen = eventually("an agent that cannot be read", || unreadable(world).into_iter().next());
    assert_eq!((&seen["product"], &seen["pid"]), (&Value::from(product), &Value::from(pid)));
    assert_eq!(seen["cwd"], *world.home.workspace().display().to_string());
    assert_eq!(world.status(), Vec::<Value>::new(), "it has no session");
    let said = world.must(&["status"]);
    assert!(said.contains("Running, not readable (1)") && said.contains(product), "{said}");
    assert!(said.contains(seen["help"].as_str().expect("a text")), "{said}");
    assert!(!said.contains("No agent"), "{said}");
    terminal.kill().unwrap();
    eventually("the end of it", || unreadable(world).is_empty().then_some(()));
    assert!(world.must(&["status"]).contains("No agent"));
}

#[test]
fn a_plain_opencode_terminal_is_listed_while_it_runs() {
    let world = World::served(Script::new());
    let client = Client::opencode(&world.home, &world.model).unwrap();
    it_is_listed_while_it_runs(&world, client.in_terminal().unwrap(), "OpenCode");
}

#[test]
fn a_claude_code_that_asks_whether_to_trust_its_folder_is_listed() {
    let world = World::served(Script::new());
    let installed = Client::claude_code(&world.home, &world.model).unwrap();
    let settings = world.home.path().join(".claude.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    let mut parsed: Value = serde_json::from_str(&text).unwrap();
    parsed["projects"] = serde_json::json!({});
    std::fs::write(&settings, parsed.to_string()).unwrap();
    // Not as the testbed starts it: that waits for its prompt, which does not come.
    let program = installed.program_path();
    let client = Client::program("claude", program, &world.home, &world.model);
    let terminal = client.in_terminal().unwrap();
    terminal.wait_for_text("trust").unwrap();
    it_is_listed_while_it_runs(&world, terminal, "Claude Code");
}
