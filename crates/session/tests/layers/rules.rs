//! The operator's own rules.

use qd_session::operator::layer::{Icon, Layers, Trouble};
use qd_session::operator::{AgentState, Urgency};
use serde_json::{Value, json};

use super::world::World;

fn layers(file: &Value) -> Layers {
    let (layers, troubles) = Layers::of_operator(file, "/home/u");
    assert_eq!(troubles, []);
    layers
}

fn shown(world: &World, file: &Value) -> (AgentState, Option<Icon>) {
    world.shown(&layers(file))
}

fn testing() -> World {
    let mut world = World::working();
    world.start("Bash", "make deploy");
    world
}

#[test]
fn the_first_rule_that_fits_is_shown() {
    let file = json!({"rule": [
        {"when": {"group": "delivered"}, "label": "no"},
        {"when": {"state": "acting", "harness": "claude_code", "project": "~/acme",
            "tool": "bash", "command": "^make deploy", "label": "^Running"},
            "label": "Deploying {project} with {tool}", "icon": "deploy", "urgency": 1},
        {"label": "never reached"},
    ]});
    let (state, icon) = shown(&testing(), &file);
    assert_eq!(state.label, "Deploying acme with Bash");
    assert_eq!(state.core_label.as_deref(), Some("Running Bash"));
    assert_eq!((icon, state.urgency), (Some(Icon::Deploy), Urgency::High));
}

#[test]
fn every_condition_must_hold() {
    for when in [
        json!({"group": "needs_you"}),
        json!({"state": "thinking"}),
        json!({"harness": "codex"}),
        json!({"project": "~/other"}),
        json!({"tool": "Write"}),
        json!({"command": "^deploy"}),
        json!({"label": "^Finished"}),
    ] {
        let file = json!({"rule": [{"when": when, "label": "mine"}]});
        assert_eq!(shown(&testing(), &file).0.label, "Running Bash", "{file}");
    }
}

#[test]
fn an_operators_rule_comes_before_the_built_in_layers() {
    let world = World::working().ran("cargo test", 1).finished();
    let file = json!({"rule": [{"when": {"state": "task_complete"}, "icon": "star"}]});
    let (state, icon) = shown(&world, &file);
    assert_eq!(
        (state.label.as_str(), state.core_label, icon),
        ("Finished", None, Some(Icon::Star))
    );
}

#[test]
fn a_project_says_which_layers_it_wants() {
    let world = World::working().ran("cargo test", 0).finished();
    let file = |path: &str| json!({"project": [{"path": path, "layers": ["creative"]}]});
    assert_eq!(shown(&world, &file("~/acme")).0.label, "Finished");
    assert_eq!(shown(&world, &file("~/novel")).0.label, "Finished, tests pass");
}

#[test]
fn a_label_whose_parts_are_not_known_is_for_others() {
    let file = json!({"rule": [{"label": "On {branch}"}, {"label": "{label}!"}]});
    let mut world = testing();
    assert_eq!(shown(&world, &file).0.label, "Running Bash!");
    world.at("/home/u/acme", Some("main"));
    assert_eq!(shown(&world, &file).0.label, "On main");
}

#[track_caller]
fn troubled(file: &Value, place: &str, what: &str) -> Layers {
    let (layers, troubles) = Layers::of_operator(file, "/home/u");
    let [Trouble { place: found, what: said }] = troubles.as_slice() else {
        panic!("{troubles:?}")
    };
    assert!(found == place && said.contains(what), "{troubles:?}");
    layers
}

#[test]
fn a_rule_that_cannot_be_used_is_told_and_the_rest_holds() {
    for (when, what) in [
        (json!({"command": "("}), "unclosed group"),
        (json!({"group": "mine"}), "unknown variant"),
        (json!({"projects": "x"}), "unknown field"),
        (json!({"project": "acme"}), "is no path"),
        (json!({"command": "x".repeat(300)}), "longer than 256 bytes"),
    ] {
        let file = json!({"rule": [{"when": when, "label": "broken"}, {"label": "whole"}]});
        let layers = troubled(&file, "rule 1", what);
        assert_eq!(testing().shown(&layers).0.label, "whole");
    }
    troubled(&json!({"rules": []}), "file", "neither [[rule]] nor [[project]]");
    troubled(&json!({"project": [{"path": "/w", "layers": ["music"]}]}), "project 1", "no layer");
    let many = json!({"rule": vec![json!({"label": "x"}); 200]});
    assert_eq!(troubled(&many, "rule 101", "not read").rules_len(), 100);
}

#[test]
fn a_rule_that_fits_and_cannot_be_shown_leaves_the_core_label() {
    for (shows, what) in [
        (json!({"label": "x", "icon": "unicorn"}), "is no icon"),
        (json!({"label": "x", "urgency": 2}), "-1, 0 or 1"),
        (json!({"label": "{user}"}), "is none of"),
        (json!({"label": "{tool"}), "without a }"),
        (json!({"lable": "x"}), "unknown field"),
    ] {
        let layers = troubled(&json!({"rule": [shows, {"label": "whole"}]}), "rule 1", what);
        let (state, icon) = testing().shown(&layers);
        assert_eq!((state.label.as_str(), icon), ("Running Bash", None));
    }
}

#[test]
fn a_label_is_one_short_line() {
    let file = json!({"rule": [{"label": format!("a\nb{}", "x".repeat(200))}]});
    let label = shown(&testing(), &file).0.label;
    assert!(label.starts_with("a b") && label.chars().count() == 81, "{label}");
}
