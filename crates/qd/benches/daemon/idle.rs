//! P8: what the daemon uses while nothing happens, with 200 sessions that live.

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use qd_host::processes::Process as Found;

use crate::world::{World, session_files};

const SESSIONS: usize = 200;

pub fn measure(minutes: u32) {
    println!("P8 at rest for {minutes} min, {SESSIONS} session files and registries");
    let world = World::new("idle");
    session_files(&world, SESSIONS);
    let registry = world.home(".claude/sessions");
    fs::create_dir_all(&registry).expect("a folder");
    let mut agents: Vec<Child> = (0..SESSIONS).map(|_| sleeper()).collect();
    for (nth, agent) in agents.iter().enumerate() {
        let process = Found::with_pid(agent.id()).expect("it lives");
        let text = format!(
            r#"{{"pid":{},"sessionId":"{nth:08x}-0000-4000-8000-000000000000","cwd":"/home/ann/acme","procStart":"{}","kind":"interactive","entrypoint":"cli","status":"idle"}}"#,
            process.pid, process.start
        );
        fs::write(registry.join(format!("{}.json", process.pid)), text).expect("written");
    }
    let daemon = world.serve();
    world.wait_until_caught_up();
    // What is due after a start is over by then.
    std::thread::sleep(Duration::from_secs(10));
    let before = daemon.used();
    std::thread::sleep(Duration::from_secs(60) * minutes);
    let after = daemon.used();
    let cpu_ms = after.cpu_ms - before.cpu_ms;
    println!(
        "  CPU {cpu_ms:.1} ms ({:.3} % of a core)  {:.1} wake-ups a second  RSS {} → {} KiB",
        cpu_ms / f64::from(minutes) / 600.0,
        (after.wakes - before.wakes) as f64 / f64::from(minutes) / 60.0,
        before.rss_kib,
        after.rss_kib
    );
    for agent in &mut agents {
        let _ = agent.kill();
        let _ = agent.wait();
    }
}

fn sleeper() -> Child {
    Command::new("sleep").arg("100000").spawn().expect("it starts")
}
