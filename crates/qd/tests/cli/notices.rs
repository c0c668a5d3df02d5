//! The desktop's notifications: a `notify-send` that writes down what it was given, since no desktop
//! is here to show it.

use std::fs;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::json;

use crate::world::{GENEROUS, Running, World};

/// A daemon on a desktop, which tells at once.
fn on_a_desktop(world: &World, notify_send: &str) -> Running {
    let settings = "[notify]\nkinds = [\"permission\"]\ndwell_s = 0\ndesktop = true\n";
    world.write("home/.config/quarterdeck/config.toml", settings);
    world.program("tools/notify-send", notify_send);
    let mut command = world.qd(&["serve", "--port", "0"]);
    command.env("DISPLAY", ":7");
    Running::start(command, "Quarterdeck listens")
}

/// Asks until the answer is there.
fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < GENEROUS, "it never came");
        std::thread::yield_now();
    }
}

#[test]
fn the_desktop_shows_what_an_agent_asks_as_text_and_takes_it_back() {
    let world = World::new();
    // The whole of one notification comes under its name at once.
    let daemon = on_a_desktop(
        &world,
        "printf '%s\\n' \"$@\" > \"$HOME/shown.$$\"\nmv \"$HOME/shown.$$\" \"$HOME/shown\"\necho 41",
    );
    let shown = || {
        let path = world.path("home/shown");
        let text = fs::read_to_string(&path).ok()?;
        fs::remove_file(path).expect("removed");
        Some(text.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    let about = |event: &str| {
        json!({"session_id": "s1", "cwd": world.path("home/acme"), "hook_event_name": event,
            "tool_name": "Bash", "tool_use_id": "toolu_1",
            "tool_input": {"command": "echo '<b>$(id)</b>'"}, "permission_mode": "default"})
    };
    world.agent_starts("s1");
    world.hook(about("PreToolUse"));
    world.hook(about("PermissionRequest"));
    let asked = until(shown);
    let text = asked.iter().position(|word| word == "--").expect("the end of options");
    assert_eq!(asked[text + 1..], ["acme: allow Bash?", "echo '&lt;b&gt;$(id)&lt;/b&gt;'"]);
    assert!(asked[..text].contains(&"--urgency=critical".to_owned()), "{asked:?}");
    world.hook(about("PostToolUse"));
    let settled = until(shown);
    assert!(settled.contains(&"--replace-id=41".to_owned()), "{settled:?}");
    assert_eq!(daemon.stop(Signal::INT), Some(0));
}

#[test]
fn the_doctor_says_why_a_receiver_is_not_told() {
    let world = World::new();
    let daemon = on_a_desktop(&world, "echo 'no server answers' >&2\nexit 1");
    let about = || {
        let report = world.run(&["doctor", "--json"]).json();
        let checks = report["checks"].as_array().expect("checks").clone();
        checks.into_iter().find(|check| check["check"] == "notices").expect("a check")
    };
    assert_eq!(about()["verdict"], "ok");
    world.agent_starts("s1");
    world.agent_asks("s1");
    let found = until(|| Some(about()).filter(|found| found["verdict"] == "warn"));
    assert_eq!(found["reason"], "desktop: notify-send: no server answers (1 did not arrive)");
    assert_eq!(daemon.stop(Signal::INT), Some(0));
}

#[test]
fn settings_that_cannot_be_understood_keep_the_daemon_from_starting() {
    let world = World::new();
    world.write("home/.config/quarterdeck/config.toml", "[notify]\nquiet = [\"at night\"]\n");
    let outcome = world.run(&["serve", "--port", "0"]);
    assert_ne!(outcome.code, Some(0));
    assert!(outcome.err.contains("`at night` in `notify.quiet` is no range"), "{}", outcome.err);
}
