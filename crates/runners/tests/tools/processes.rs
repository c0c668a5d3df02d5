//! Whatever a tool starts is gone when the tool is.

use futures_util::future::join_all;
use qd_session::machine::ToolOutcome;
use serde_json::json;

use super::world::{World, alive, mark};

/// A way to leave something behind; `SLEEP` is what is left.
const WAYS: [(&str, &str); 8] = [
    ("in the background", "SLEEP & disown"),
    ("nohup", "nohup SLEEP > /dev/null 2>&1 &"),
    ("a session of its own", "setsid --fork SLEEP"),
    ("forked twice", "(setsid bash -c 'SLEEP & SLEEP & exit' &) ; true"),
    ("deaf to signals", "(trap '' TERM HUP INT; setsid SLEEP) & disown"),
    ("with every stream closed", "setsid SLEEP < /dev/null > /dev/null 2>&1 & disown"),
    ("stopped", "SLEEP & sleep 0.5; kill -STOP $!"),
    ("many", "for i in $(seq 30); do (setsid bash -c 'SLEEP & wait' &); done"),
];

async fn check(way: &str, command: &str, end: &str, timeout_ms: u64, ended: &str) {
    let (world, mark) = (World::new(), mark());
    let command = command.replace("SLEEP", &format!("sleep {mark}"));
    // Nothing is left because it never was: wait until it is there, as a word of a command line.
    let wait = format!("until grep -qszx {mark} /proc/[0-9]*/cmdline; do :; done");
    let command = format!("{command}\n{wait}\necho there; {end}");
    let outcome = world.run("bash", json!({"command": command, "timeout_ms": timeout_ms})).await;
    let ToolOutcome::Succeeded { output, .. } = outcome else { panic!("{way}: {outcome:?}") };
    assert_eq!(output.lines().last(), Some(ended), "{way}: {output}");
    assert!(output.contains("there"), "{way}: {output}");
    assert_eq!(alive(&mark), Vec::<String>::new(), "{way}");
}

#[tokio::test]
async fn nothing_is_left_when_a_command_ends() {
    for (way, command) in WAYS {
        check(way, command, "exit 0", 120_000, "there").await;
    }
}

#[tokio::test]
async fn nothing_is_left_when_the_time_is_up() {
    let ended = "[stopped: it ran longer than 15000 ms]";
    join_all(WAYS.map(|(way, command)| Box::pin(check(way, command, "sleep 600", 15_000, ended))))
        .await;
}

/// One that is never where one looks: each forks the next and ends.
#[tokio::test]
async fn a_process_that_keeps_running_away_is_caught() {
    let (world, mark) = (World::new(), mark());
    let script = format!(
        "import os, sys\n\
         # {mark}\n\
         if os.fork(): sys.exit(0)\n\
         os.setsid()\n\
         while True:\n    if os.fork(): os._exit(0)\n"
    );
    let world = world.with(&[(&format!("run-{mark}.py"), &script)]);
    let command = format!("/usr/bin/python3 run-{mark}.py; sleep 0.2; echo away");
    let said = world.ok("bash", json!({"command": command})).await;
    assert_eq!((said.as_str(), alive(&mark)), ("away\n", Vec::new()));
}

/// Zombies are nobody's, too.
#[tokio::test]
async fn no_zombie_is_left() {
    let (world, mark) = (World::new(), mark());
    world
        .ok(
            "bash",
            json!({"command": format!("for i in 1 2 3; do setsid --fork sleep {mark}; done")}),
        )
        .await;
    let me = std::process::id().to_string();
    let zombies = std::fs::read_dir("/proc").expect("processes").flatten().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, parent) = (fields.next()?, fields.next()?);
        // Other tests of this process have wardens of their own, which are on their way.
        (state == "Z" && parent == me && stat.contains("(sleep)")).then_some(stat)
    });
    assert_eq!(zombies.collect::<Vec<_>>(), Vec::<String>::new());
}
