//! How a policy is written, and what is said of one that cannot be used.

use qd_session::policy::{
    Amounts, Asked, Budget, Effect, Exceeded, Layer, Measure, Policy, Preset, Span, Spent, Sum,
    Tightening,
};
use serde_json::{Value, json};

use super::world::{CWD, HOME, World};

#[track_caller]
fn troubles(file: &Value, expected: &[(&str, &str)]) -> Policy {
    let (policy, troubles) = Policy::of_operator(file, HOME);
    let found: Vec<_> =
        troubles.iter().map(|one| (one.place.as_str(), one.what.as_str())).collect();
    let is_told = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(found, (place, what))| found.0 == *place && found.1.contains(what));
    assert!(is_told, "{found:#?}");
    policy
}

/// Whether `ls`, which the file allows, is still allowed.
fn allows_ls(policy: &Policy, cwd: &str) -> bool {
    let (session, repository) = (Layer::default(), Tightening::default());
    let here = policy.effective(Some(cwd), &session, &repository);
    let input = Some(r#"{"command":"ls"}"#);
    here.judge(&Asked { tool: "Bash", input, cwd: Some(cwd), ..Asked::default() }).effect
        == Effect::Allow
}

#[test]
fn what_may_have_forbidden_something_stops_what_is_allowed() {
    let ls = json!({"effect": "allow", "command": "ls"});
    for (rule, what) in [
        (json!({"effect": "deny", "colour": "red"}), "unknown field `colour`"),
        (json!({"effect": "denied"}), "unknown variant `denied`"),
        (json!({"command": "rm *"}), "missing field `effect`"),
        (json!({"effect": "deny", "command": " "}), "a command is empty"),
        (json!({"effect": "deny", "path": "../x"}), "has a `..`"),
        (json!({"effect": "deny", "tool": []}), "a list is empty"),
        (json!({"effect": "deny", "kind": "question"}), "questions and plans are yours"),
        (json!({"effect": "deny", "inside": "workspace", "outside": "workspace"}), "nothing is"),
        (json!({"effect": "ask", "message": "x"}), "`message` is for rules that deny"),
        (json!({"effect": "deny", "name": "x".repeat(501)}), "longer than 500 bytes"),
        (json!({"effect": "deny", "command": "x".repeat(257)}), "longer than 256 bytes"),
    ] {
        let policy = troubles(&json!({"rule": [ls, rule]}), &[("rule 2", what)]);
        assert!(!allows_ls(&policy, CWD), "{rule}");
    }
    for (key, value, what) in [
        ("rules", json!([]), "none of preset, rule, budget, project"),
        ("preset", json!("yoloo"), "none of manual, careful, auto-edit, yolo"),
        ("budget", json!({"week": {}}), "unknown field `week`"),
        ("budget", json!({"day": {"usd": -1.0}}), "no amount"),
        ("project", json!([]), "write [project.\"/path\"]"),
    ] {
        let mut file = json!({"rule": [ls]});
        file[key] = value;
        assert!(!allows_ls(&troubles(&file, &[(key, what)]), CWD), "{file}");
    }
    let file = json!({"rule": [ls], "project": {"relative": {}}});
    assert!(!allows_ls(&troubles(&file, &[("project relative", "no path")]), CWD));
    assert!(!allows_ls(&Policy::unreadable(HOME), CWD));
}

#[test]
fn a_rule_that_allows_and_is_broken_is_only_left_out() {
    let ls = json!({"effect": "allow", "command": "ls"});
    let file = json!({"rule": [{"effect": "allow"}, {"effect": "allow", "tol": "x"}, ls]});
    let told = [("rule 1", "names a tool, a kind or a command"), ("rule 2", "unknown field")];
    assert!(allows_ls(&troubles(&file, &told), CWD));
}

#[test]
fn a_project_that_is_broken_holds_up_only_itself() {
    let ls = json!({"effect": "allow", "command": "ls"});
    let file = json!({"rule": [ls], "project": {"/w": {"rule": [{"effect": "deny", "x": 1}]}}});
    let policy = troubles(&file, &[("project /w, rule 1", "unknown field `x`")]);
    assert_eq!((allows_ls(&policy, "/w/sub"), allows_ls(&policy, "/v")), (false, true));
}

#[test]
fn too_many_rules_are_told_and_allow_nothing() {
    let rules = vec![json!({"effect": "allow", "command": "ls"}); 201];
    let policy = troubles(&json!({"rule": rules}), &[("rule 201", "more than 200")]);
    assert_eq!((policy.rules_len(), allows_ls(&policy, CWD)), (200, false));
}

#[test]
fn the_nearest_project_says_preset_budget_and_who_waits() {
    let file = json!({"preset": "careful", "budget": {"day": {"usd": 40.0}, "session": {"usd": 9.0}},
        "project": {"~/work": {"preset": "auto-edit", "wait_headless": true},
            "~/work/shop": {"preset": "manual", "budget": {"session": {"tokens": 5}}}}});
    let (policy, told) = Policy::of_operator(&file, HOME);
    assert_eq!(told, []);
    let (session, repository) = (Layer::default(), Tightening::default());
    let at = |cwd| {
        let here = policy.effective(cwd, &session, &repository);
        (here.mode(), here.waits_headless(), here.budget().session)
    };
    let amounts = |tokens| Amounts { tokens, usd: Some(9.0), minutes: None };
    assert_eq!(at(None), (Preset::Careful, false, amounts(None)));
    assert_eq!(at(Some("/home/u/work/x")), (Preset::AutoEdit, true, amounts(None)));
    let shop = (Preset::Manual, true, amounts(Some(5)));
    assert_eq!(at(Some("/home/u/work/shop/web")), shop);
    let (_, told) = Policy::of_operator(&json!({"project": {"/w": {"wait_headless": 1}}}), HOME);
    assert_eq!(told[0].place, "project /w, wait_headless");
    let (_, told) = Policy::of_operator(&json!({"wait_headless": true}), HOME);
    assert_eq!(told.len(), 1, "not for the whole machine");
}

#[test]
fn a_repository_that_allows_is_told_so() {
    let file = json!({"rule": [{"effect": "allow", "command": "ls"}], "budget": {}});
    let (repository, told) = Tightening::of_repository(&file, HOME);
    assert_eq!(repository.rules_len(), 0);
    let told: Vec<_> = told.iter().map(|one| one.place.as_str()).collect();
    assert_eq!(told, ["budget", "rule 1"]);
}

#[test]
fn the_home_and_the_root_are_no_workspace() {
    let (policy, _) = Policy::of_operator(&json!({"preset": "auto-edit"}), HOME);
    let (session, repository) = (Layer::default(), Tightening::default());
    let input = Some(r#"{"file_path":"/home/u/x/a"}"#);
    let effect = |cwd| {
        let here = policy.effective(Some(cwd), &session, &repository);
        here.judge(&Asked { tool: "Read", input, cwd: Some(cwd), ..Asked::default() }).effect
    };
    assert_eq!(effect("/home/u/x"), Effect::Allow);
    for cwd in ["/home/u", "/home/u/x/..", "/home", "/", "", "x"] {
        assert_eq!(effect(cwd), Effect::Ask, "{cwd}");
    }
}

/// What real clients sent with their requests.
#[test]
fn every_client_is_understood() {
    let run = "allow command touch *";
    let edit = "preset auto-edit";
    let shell = "/bin/bash -lc 'touch made'";
    for (rules, tool, input) in [
        (run, "Bash", json!({"command": "touch made", "description": "make it"})),
        (
            run,
            "exec_command",
            json!({"kind": "command", "command": shell, "cwd": "/w",
            "commandActions": [{"type": "unknown", "command": "touch made"}]}),
        ),
        (run, "exec_command", json!({"cmd": "touch made"})),
        (run, "execute", json!({"command": ["/bin/bash", "-lc", "touch made"], "cwd": "/w"})),
        (
            run,
            "bash",
            json!({"permission": "bash", "patterns": ["touch made"],
            "metadata": {"command": "touch made"}, "always": ["touch *"]}),
        ),
        (
            run,
            "run_shell_command",
            json!({"type": "exec", "command": "touch made",
            "rootCommand": "touch"}),
        ),
        (run, "command", json!("touch made")),
        (edit, "Write", json!({"file_path": "/w/a", "content": "/etc/passwd"})),
        (
            edit,
            "edit",
            json!({"permission": "edit", "patterns": ["a"],
            "metadata": {"filepath": "/w/a", "diff": "…"}, "always": ["*"]}),
        ),
        (edit, "edit", json!([{"type": "diff", "path": "/w/a", "oldText": "", "newText": ""}])),
        (edit, "newFileCreated", json!({"tool": "newFileCreated", "path": "a"})),
    ] {
        let verdict = World::of(rules).judge(tool, &input);
        assert_eq!(verdict.effect, Effect::Allow, "{tool} {input} {verdict:?}");
    }
    for (rules, tool, input) in [
        // Two commands are told: which one runs?
        (run, "Bash", json!({"command": "touch made", "cmd": "rm made"})),
        (run, "Bash", json!({"command": ["touch", 1]})),
        (run, "execute", json!({})),
        (edit, "apply_patch", json!({"itemId": "c", "reason": "x"})),
        (edit, "edit", json!([{"type": "diff", "path": "/w/a"}, {"type": "diff", "path": "/x"}])),
    ] {
        let verdict = World::of(rules).judge(tool, &input);
        assert_eq!(verdict.effect, Effect::Ask, "{tool} {input} {verdict:?}");
    }
}

/// Handlers cut long input, and a part says nothing of the rest.
#[test]
fn an_input_that_was_cut_is_asked_about() {
    let judged = |rules: &str, tool| {
        let world = World::of(rules);
        let input = Some(r#"{"command":"ls","file_path":"/w/a","content":"xxx"#);
        world.effective().judge(&Asked { tool, input, cwd: Some(CWD), ..Asked::default() }).effect
    };
    assert_eq!(judged("preset auto-edit", "Write"), Effect::Ask);
    assert_eq!(judged("allow command ls", "Bash"), Effect::Ask);
    assert_eq!(judged("preset yolo + deny command rm *", "Bash"), Effect::Ask);
    assert_eq!(judged("preset yolo + deny path /etc", "Write"), Effect::Ask);
    assert_eq!(judged("preset yolo + deny tool Write", "Write"), Effect::Deny);
    assert_eq!(judged("preset yolo", "Write"), Effect::Allow);
}

#[test]
fn a_denied_agent_is_told_why() {
    let rule = json!({"effect": "deny", "name": "no pushing", "command": "git push *",
        "message": "Push is done by a person."});
    let world = World::written(&json!({"rule": [rule]}), &json!({}), &json!({}), false);
    assert_eq!(world.troubles, []);
    let verdict = world.judge("Bash", &json!({"command": "git push"}));
    assert_eq!(verdict.message.as_deref(), Some("Push is done by a person."));
    assert_eq!(verdict.rule.as_deref(), Some("no pushing"));
}

#[test]
fn a_budget_says_which_limit_was_reached() {
    let amounts = |tokens, usd, minutes| Amounts { tokens, usd, minutes };
    let budget = Budget {
        session: amounts(Some(100), Some(5.0), Some(60)),
        day: amounts(None, Some(20.0), None),
    };
    let spent = |tokens, usd, minutes, day| Spent {
        session: Sum { tokens, usd, minutes },
        day: Sum { usd: day, ..Sum::default() },
    };
    let reached = |span, measure| Some(Exceeded { span, measure });
    for (spent, expected) in [
        (spent(99, 4.99, 59, 19.0), None),
        (spent(100, 0.0, 0, 0.0), reached(Span::Session, Measure::Tokens)),
        (spent(0, 5.0, 0, 25.0), reached(Span::Session, Measure::Usd)),
        (spent(0, 0.0, 60, 0.0), reached(Span::Session, Measure::Minutes)),
        (spent(0, 0.0, 0, 20.0), reached(Span::Day, Measure::Usd)),
        (spent(0, f64::NAN, 0, 0.0), reached(Span::Session, Measure::Usd)),
    ] {
        assert_eq!(budget.exceeded(&spent), expected, "{spent:?}");
    }
    assert_eq!(Budget::default().exceeded(&spent(u64::MAX, 1e9, u64::MAX, 1e9)), None);
}
