//! The unit is written, started and removed; systemd is a program in a folder of ours.

use std::fs;

use crate::world::World;

/// A systemctl that writes down what it was asked.
fn with_systemctl(script: &str) -> World {
    let world = World::new();
    world.program("tools/systemctl", &format!("echo \"$@\" >> \"$HOME/asked\"\n{script}"));
    world
}

fn asked(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.path("home/asked")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

const UNIT: &str = "home/.config/systemd/user/quarterdeck.service";

#[test]
fn the_unit_is_shown_written_started_and_removed() {
    let world = with_systemctl("case \"$2\" in is-*) echo yes;; esac");
    let installed = world.run(&["service", "install"]).expect(0);
    let unit = fs::read_to_string(world.path(UNIT)).expect("the unit");
    let line = format!("ExecStart=\"{}\" serve\n", env!("CARGO_BIN_EXE_qd"));
    assert!(unit.contains(&line) && unit.contains("Restart=on-failure"), "{unit}");
    assert!(installed.out.contains(line.trim()), "{installed:?}");
    let state = format!("Environment=\"XDG_STATE_HOME={}\"", world.path("state").display());
    assert!(unit.contains(&state), "{unit}");
    assert_eq!(asked(&world), ["--user daemon-reload", "--user enable --now quarterdeck.service"]);
    assert!(world.run(&["service", "install"]).expect(0).out.contains("there already"));
    let status = world.run(&["service", "status", "--json"]).expect(0).json();
    assert_eq!((&status["installed"], &status["active"]), (&true.into(), &"yes".into()));
    fs::remove_file(world.path("home/asked")).expect("forgotten");
    world.run(&["service", "uninstall"]).expect(0);
    assert!(!world.path(UNIT).exists());
    assert_eq!(asked(&world), ["--user disable --now quarterdeck.service", "--user daemon-reload"]);
    assert!(world.run(&["service", "uninstall"]).expect(0).out.contains("nothing to do"));
}

#[test]
fn a_dry_run_changes_nothing() {
    let world = with_systemctl("");
    let told = world.run(&["service", "install", "--dry-run"]).expect(0).out;
    assert!(told.contains("ExecStart=") && told.contains("enable --now"), "{told}");
    assert!(!world.path(UNIT).exists());
    world.run(&["service", "install"]).expect(0);
    let before = asked(&world);
    world.run(&["service", "uninstall", "--dry-run"]).expect(0);
    assert!(world.path(UNIT).exists());
    assert_eq!(asked(&world), before);
}

#[test]
fn where_systemd_does_not_run_it_says_what_to_do() {
    let world = with_systemctl("echo 'Failed to connect to bus' >&2; exit 1");
    let outcome = world.run(&["service", "install"]).expect(1);
    for told in ["Failed to connect", "systemctl --user daemon-reload", "enable --now"] {
        assert!(outcome.err.contains(told), "{outcome:?}");
    }
    assert!(world.path(UNIT).exists());
    world.run(&["service", "uninstall"]).expect(1);
    assert!(!world.path(UNIT).exists());
}

#[test]
fn a_unit_of_somebody_else_is_left_alone() {
    let world = with_systemctl("");
    world.write(UNIT, "[Service]\nExecStart=/mine\n");
    for command in ["install", "uninstall", "status"] {
        let outcome = world.run(&["service", command]).expect(1);
        assert!(outcome.err.contains("not written by us"), "{outcome:?}");
    }
    assert!(fs::read_to_string(world.path(UNIT)).expect("there").contains("/mine"));
    assert!(asked(&world).is_empty());
}
