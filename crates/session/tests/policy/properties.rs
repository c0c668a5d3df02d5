//! What holds for any rules and any request.

use proptest::prelude::*;
use proptest::sample::select;
use qd_session::policy::{Asked, Effect, Policy, Preset, TOOLS, Tightening, ToolKind};
use serde_json::{Value, json};

use super::world::{CWD, HOME, World, input};

fn any_tool() -> impl Strategy<Value = &'static str> {
    let names: Vec<&str> = TOOLS.iter().map(|(name, _)| *name).chain(["", "mcp__x__y"]).collect();
    select(names)
}

/// Pieces that a shell gives a meaning to, in any order.
fn any_line() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "git",
        "status",
        "push",
        "rm",
        "-rf",
        "/",
        "x",
        "-C",
        " ",
        " ",
        " ",
        ";",
        "&",
        "&&",
        "|",
        "||",
        "\n",
        "$(",
        ")",
        "(",
        "`",
        "'",
        "\"",
        "\\",
        "$X",
        "${X}",
        "${",
        "$'",
        ">",
        ">>",
        "<",
        "<<EOF\n",
        "\nEOF\n",
        "<<<",
        "2>&1",
        "/dev/null",
        "{",
        "}",
        "*",
        "?",
        "~",
        "#",
        "FOO=1 ",
        "sudo ",
        "bash -c ",
        "eval ",
        "xargs ",
        "\t",
        "\r",
        "\0",
        "é",
        "=",
        "[",
        "!",
    ]);
    prop_oneof![
        3 => prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

fn any_input(tool: &'static str) -> impl Strategy<Value = Value> {
    let path = select(vec!["a.rs", "/w/src/a", "../x", "/etc/passwd", "~/x", ".git/config", ""]);
    let file = path.prop_map(move |path| input(tool, path));
    prop_oneof![
        any_line().prop_map(move |line| input(tool, &line)),
        file,
        Just(Value::Null),
        any::<String>().prop_map(Value::from),
    ]
}

fn any_request() -> impl Strategy<Value = (&'static str, Value)> {
    any_tool().prop_flat_map(|tool| any_input(tool).prop_map(move |input| (tool, input)))
}

fn any_rule() -> impl Strategy<Value = Value> {
    let conditions = select(vec![
        json!({"kind": "read"}),
        json!({"kind": ["edit", "run"]}),
        json!({"tool": "*"}),
        json!({"tool": "Bash", "command": ["git *", "ls"]}),
        json!({"command": "git status *"}),
        json!({"command": "rm *"}),
        json!({"kind": "edit", "path": "src"}),
        json!({"kind": "read", "path": "**/.env"}),
        json!({"kind": "edit", "inside": "workspace"}),
        json!({"kind": "edit", "outside": "workspace"}),
        json!({"tool": "*", "input": {"url": "https://*"}}),
        json!({"tool": "*", "colour": "red"}),
        json!({"path": ".."}),
    ]);
    (select(vec!["allow", "ask", "deny"]), conditions).prop_map(|(effect, mut rule)| {
        rule["effect"] = json!(effect);
        rule
    })
}

fn any_layer() -> impl Strategy<Value = Value> {
    let preset = prop::option::of(select(vec!["manual", "careful", "auto-edit", "yolo", "yolp"]));
    (preset, prop::collection::vec(any_rule(), 0..4)).prop_map(|(preset, rules)| {
        let mut layer = json!({"rule": rules});
        if let Some(preset) = preset {
            layer["preset"] = json!(preset);
        }
        layer
    })
}

fn any_operator() -> impl Strategy<Value = (Value, Value)> {
    let project = prop::option::of(any_layer());
    (any_layer(), project, any_layer()).prop_map(|(mut global, project, session)| {
        if let Some(project) = project {
            global["project"] = json!({CWD: project});
        }
        (global, session)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_repository_widens(
        (global, session) in any_operator(),
        repository in any_layer(),
        one_more in any_rule(),
        no_yolo in any::<bool>(),
        (tool, input) in any_request(),
    ) {
        let judged = |repository: &Value, no_yolo| {
            World::written(&global, &session, repository, no_yolo).judge(tool, &input).effect
        };
        let (without, before) = (judged(&json!({}), false), judged(&repository, false));
        prop_assert!(before <= without);
        prop_assert!(judged(&repository, no_yolo) <= before);
        let mut more = repository.clone();
        more["rule"].as_array_mut().expect("a list").push(one_more);
        prop_assert!(judged(&more, false) <= before);
    }

    /// A broken part is as good as one that allows nothing.
    #[test]
    fn what_is_not_understood_never_widens(
        (mut global, session) in any_operator(),
        (tool, input) in any_request(),
        broken in select(vec![
            json!({"effect": "deny", "colour": "red"}), json!({"effect": "allow"}), json!(7),
            json!({"effect": "alow", "tool": "*"}), json!({"effect": "allow", "tool": []}),
        ]),
        at in any::<prop::sample::Index>(),
    ) {
        let judged = |global: &Value| {
            World::written(global, &session, &json!({}), false).judge(tool, &input).effect
        };
        let before = judged(&global);
        let rules = global["rule"].as_array_mut().expect("a list");
        rules.insert(at.index(rules.len() + 1), broken);
        prop_assert!(judged(&global) <= before);
    }

    #[test]
    fn an_allow_never_holds_with_another_command_in_the_line(
        before in any_line(), after in any_line(), joint in select(vec![";", "&&", "|", "\n", "&"]),
    ) {
        let world = World::of("allow command git status *");
        // However it stands there, it is no `git status`; in quotes it may be its argument.
        let line = format!("{before}{joint} rm -rf / {joint}{after}");
        let verdict = world.judge("Bash", &json!({"command": line}));
        let is_argument = line.contains(['\'', '"', '\\', '#']);
        prop_assert!(is_argument || verdict.effect == Effect::Ask, "{line:?} {verdict:?}");
    }

    #[test]
    fn a_deny_is_never_passed_by_an_allow(
        before in any_line(), joint in select(vec![";", "&&", "|", "\n", "&"]),
    ) {
        let world = World::of("preset yolo + deny command rm *");
        // With a space: `>& rm` would write to a file of that name.
        let line = format!("{before} {joint} rm -rf /");
        let verdict = world.judge("Bash", &json!({"command": line}));
        let is_argument = line.contains(['\'', '"', '\\', '#']);
        prop_assert!(is_argument || verdict.effect < Effect::Allow, "{line:?} {verdict:?}");
    }

    #[test]
    fn whatever_is_decided_has_a_rule(
        (global, session) in any_operator(), (tool, input) in any_request(),
    ) {
        let verdict = World::written(&global, &session, &json!({}), false).judge(tool, &input);
        prop_assert!(verdict.rule.is_some() || verdict.effect == Effect::Ask);
        prop_assert!(ToolKind::of(tool) != ToolKind::Question || verdict.effect == Effect::Ask);
    }

    #[test]
    fn nothing_is_too_strange_to_be_judged(
        tool in any::<String>(), text in any::<String>(), cwd in any::<String>(),
        key in any::<String>(), value in any::<String>(),
    ) {
        let file = json!({"preset": "yolo", "rule": [
            {"effect": "deny", "command": value, "path": text, "tool": tool},
            {"effect": "allow", "command": "*"}, {"effect": "ask", "path": text}, {&key: value},
        ], "project": {&cwd: {&key: value}}});
        let (policy, _) = Policy::of_operator(&file, &cwd);
        let (repository, _) = Tightening::of_repository(&json!({&key: value}), HOME);
        let session = Default::default();
        for input in [Some(text.as_str()), Some(&json!({"command": text}).to_string()), None] {
            for tool in [tool.as_str(), "Bash", "apply_patch", "Glob"] {
                let here = policy.effective(Some(&cwd), &session, &repository);
                here.judge(&Asked { tool, input, cwd: Some(&cwd), ..Asked::default() });
                prop_assert!(Preset::ALL.contains(&here.mode()));
            }
        }
    }
}

/// Long lines are bounded work.
#[test]
fn a_line_made_to_be_slow_is_judged() {
    let world = World::of("preset yolo + deny command git push * + deny command *a*b*c*d*e*");
    let units =
        ["sudo ", "-a ", "$(", "git -x ", "`", "(", "eval '", "a;", "\\", "<<E\n", "bash -c "];
    for unit in units {
        let line = unit.repeat(16_000 / unit.len());
        world.judge("Bash", &json!({"command": line}));
        world.judge("Bash", &json!({"command": line.repeat(2)}));
    }
}
