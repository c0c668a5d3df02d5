//! What holds for any layers and any session.

use proptest::prelude::*;
use proptest::sample::select;
use qd_session::deed::{deeds, written};
use qd_session::operator::AgentState;
use qd_session::operator::layer::{Icon, Layers};
use serde_json::{Value, json};

use super::world::World;

fn any_world() -> impl Strategy<Value = World> {
    let commands = select(vec![
        ("Bash", "cargo test"),
        ("Bash", "git commit -m \"x"),
        ("Bash", "gh pr create"),
        ("Write", "/w/a.md"),
        ("Edit", "/w/a.rs"),
    ]);
    let step = (commands, any::<bool>(), prop::option::of(0..3_i32), any::<bool>());
    (prop::collection::vec(step, 0..6), select(vec!["", "Done.", "Which one?"])).prop_map(
        |(steps, said)| {
            let mut world = World::working();
            for ((tool, about), ends, exit_code, ok) in steps {
                let call = world.start(tool, about);
                if ends {
                    world.end(call, ok, exit_code);
                }
            }
            if said.is_empty() { world } else { world.said(said) }
        },
    )
}

fn any_rule() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just(Value::Null),
        any::<String>().prop_map(Value::from),
        select(vec!["delivered", "acting", "Bash", ".*", "{tool}", "star", "/**"])
            .prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
    ];
    let key = select(vec!["label", "icon", "urgency", "when", "group", "state"]);
    let table = prop::collection::btree_map(key, word, 0..4).prop_map(|table| json!(table));
    (table.clone(), prop::option::of(table)).prop_map(|(mut rule, when)| {
        if let Some(when) = when {
            rule["when"] = when;
        }
        rule
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Label, core label and place in the group: nothing else of a state is a layer's.
    #[test]
    fn no_layer_changes_group_or_state(
        world in any_world(),
        rules in prop::collection::vec(any_rule(), 0..4),
    ) {
        let (layers, _) = Layers::of_operator(&json!({"rule": rules}), "/home/u");
        let core = world.state();
        let (shown, _) = world.shown(&layers);
        let core_label = shown.core_label.as_ref().unwrap_or(&shown.label);
        prop_assert_eq!(core_label, &core.label);
        prop_assert!(!shown.label.trim().is_empty());
        let undressed = AgentState {
            label: core.label.clone(),
            core_label: None,
            urgency: core.urgency,
            ..shown
        };
        prop_assert_eq!(undressed, core);
    }

    #[test]
    fn no_command_is_too_strange_to_be_read(text in any::<String>(), tail in "[ -~\n]{0,80}") {
        let line = format!("{text}{tail}");
        deeds("Bash", &line);
        written("Write", &line);
        written("apply_patch", &line);
    }

    /// An icon is found by the name that it goes by on the wire.
    #[test]
    fn icons_have_one_name(icon in select(Icon::ALL)) {
        prop_assert_eq!(json!(icon), json!(icon.name()));
        prop_assert_eq!(Icon::named(icon.name()), Some(icon));
    }
}
