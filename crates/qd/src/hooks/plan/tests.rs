//! Install, then uninstall: byte for byte as it was, or refused.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::hooks::product::Product;
use crate::hooks::wanted::{AfterTools, Dialect, is_ours};

const FORWARDER: &str = "/opt/quarterdeck/qd-hook";

fn wanted(product: Product) -> Wanted {
    product.wanted(FORWARDER, Some("secret"), AfterTools::GoesOn)
}

fn hooks_only(product: Product) -> Wanted {
    Wanted { telemetry: None, ..wanted(product) }
}

/// There and back, with and without telemetry; twice in is once in.
fn check_round_trip(text: &str, product: Product) {
    if product != Product::ClaudeCode && text.starts_with('\u{feff}') {
        assert!(install(Some(text), &wanted(product)).is_err());
        return;
    }
    for install_wanted in [wanted(product), hooks_only(product)] {
        let installed = install(Some(text), &install_wanted).unwrap();
        let new_text = installed.new_text.unwrap();
        let again = install(Some(&new_text), &install_wanted).unwrap();
        assert_eq!(again.changes, Vec::<String>::new(), "{new_text}");
        assert_eq!(again.new_text.as_ref(), Some(&new_text));
        let findings = inspect(Some(&new_text), &install_wanted).unwrap();
        assert!(findings.missing.is_empty() && findings.changed.is_empty(), "{findings:?}");
        check_foreign_survives(text, &new_text, product);

        let all = wanted(product);
        let out = uninstall(&new_text, Some(text), &all, Extent::Everything).unwrap();
        assert_eq!(out.new_text.as_deref(), Some(text));
        // Nobody kept the first text: then what is said is the same, and nothing is ours.
        let clean = uninstall(&new_text, None, &all, Extent::Everything).unwrap();
        if let Some(clean) = clean.new_text {
            check_foreign_survives(text, &clean, product);
            assert!(!clean.contains(FORWARDER), "{clean}");
        }
    }
}

/// Everything that was in the old text is in the new one, at its place and in its order.
fn check_foreign_survives(old: &str, new: &str, product: Product) {
    let value = |text: &str| {
        let root = open(text, &wanted(product)).unwrap();
        without_ours(root.to_serde_value().unwrap(), product)
    };
    assert_eq!(value(old), value(new), "\n{old}\n---\n{new}");
}

/// The value without our entries and without what is empty around them.
fn without_ours(mut value: Value, product: Product) -> Value {
    let telemetry = wanted(product).telemetry;
    if let Some(hooks) = value.get_mut("hooks").and_then(Value::as_object_mut) {
        for groups in hooks.values_mut().filter_map(Value::as_array_mut) {
            for group in groups.iter_mut() {
                if let Some(list) = group.get_mut("hooks").and_then(Value::as_array_mut) {
                    let had = list.len();
                    list.retain(|hook| !hook["command"].as_str().is_some_and(is_ours));
                    if list.is_empty() && had > 0 {
                        *group = Value::Null;
                    }
                }
            }
            groups.retain(|group| !group.is_null());
        }
        hooks.retain(|_, groups| *groups != json!([]));
    }
    let object = value.as_object_mut().unwrap();
    if let Some(telemetry) = telemetry {
        if let Some(section) = object.get_mut(telemetry.section).and_then(Value::as_object_mut) {
            section.retain(|key, v| !telemetry.values.iter().any(|(k, w)| k == key && w == v));
        }
        object.retain(|key, value| key != telemetry.section || *value != json!({}));
    }
    object.retain(|key, value| key != "hooks" || *value != json!({}));
    value
}

const FOREIGN: &str = r#"{
  "model": "opus",
  "hooks": {
    "Stop": [
      {
        "matcher": "x",
        "hooks": [{ "type": "command", "command": "say done" }]
      }
    ],
    "PreToolUse": [
      { "matcher": "Bash|Write", "hooks": [ {"type":"command","command":"/usr/bin/guard --strict"} ] },
      { "hooks": [] }
    ],
    "WorktreeCreate": [{"hooks":[{"type":"command","command":"mktree"}]}]
  },
  "env": {"FOO": "bar"}
}
"#;

fn texts() -> Vec<String> {
    let plain = [
        "",
        "{}",
        "{}\n",
        " \n\t\n",
        "{ }",
        "{\n}\n",
        "\n\n{\n\n}\n\n",
        r#"{"a":1}"#,
        r#"{"a":1,"b":[1,2,{"c":null}]}"#,
        r#"{"hooks":{}}"#,
        r#"{ "hooks": { } , "z": 0 }"#,
        r#"{"hooks":{"Stop":[]}}"#,
        r#"{"hooks":{"Stop":[{"hooks":[]}]}}"#,
        r#"{"hooks":{"Stop":[{"matcher":"*","hooks":[{"type":"command","command":"true"}]}]}}"#,
        "{\n      \"a\" : 1 ,\n  \"b\":2\n}",
        "{\n\t\"a\": 1,\n\t\"env\": {\n\t\t\"X\": \"y\"\n\t}\n}\n",
        "{\r\n  \"a\": 1,\r\n  \"hooks\": {\r\n  }\r\n}\r\n",
        "{\r\n  \"a\": 1,\n  \"b\": 2\r\n}",
        "\u{feff}{\n  \"a\": 1\n}\n",
        "\u{feff}",
        "{\"schlüssel\":\"ü\\u00fc\\\"\",\"键\":\"\u{1f600}\",\"a\\u0062\":1}",
        r#"{"a":1,"a":2,"n":1e5,"m":-0.0,"big":123456789012345678901234567890}"#,
        r#"{"env":{}}"#,
        r#"{"env":{"CLAUDE_CODE_ENABLE_TELEMETRY":"1","X":"1"}}"#,
        r#"{"telemetry":{"enabled":true}}"#,
        r#"{"permissions":{"allow":["Bash(qd-hook:*)"]}}"#,
        FOREIGN,
    ];
    plain.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_readable_file_comes_back_byte_for_byte() {
    for product in Product::ALL {
        for text in texts() {
            check_round_trip(&text, product);
        }
    }
}

#[test]
fn comments_stay_where_the_client_reads_them() {
    for text in [
        "// mine\n{\n  // first\n  \"a\": 1 // one\n  /* last */\n}\n// end",
        "{ /* nothing */ }",
        "{\n  \"hooks\": { // events\n    \"BeforeTool\": [ /* none yet */ ]\n  }\n}\n",
        "// only this\n",
        "{\n  \"a\": 1 // no comma\n}",
    ] {
        check_round_trip(text, Product::GeminiCli);
        let refused = install(Some(text), &wanted(Product::ClaudeCode)).unwrap_err();
        assert!(refused.line >= 1 && refused.column >= 1, "{refused}");
    }
}

#[test]
fn no_file_becomes_a_file_and_no_file_again() {
    for product in Product::ALL {
        let installed = install(None, &hooks_only(product)).unwrap().new_text.unwrap();
        assert!(installed.starts_with("{\n  \"hooks\": {\n") && installed.ends_with("}\n"));
        let out = uninstall(&installed, None, &wanted(product), Extent::Everything).unwrap();
        assert_eq!(out.new_text, None);
    }
}

#[test]
fn what_cannot_be_edited_is_refused_with_its_place() {
    for (text, line, column) in [
        ("{", 1, 1),
        ("{\n  \"a\": 1,\n}", 3, 1),
        ("{\n \"a\" 1}", 2, 6),
        ("[]", 1, 1),
        ("null", 1, 1),
        ("{\"hooks\": []}", 1, 11),
        ("{\"hooks\": null}", 1, 11),
        ("{\n\"hooks\": {\n  \"Stop\": {}}}", 3, 11),
        ("{\"hooks\": {}, \"hooks\": {}}", 1, 15),
        ("{\"hooks\": {\"Stop\": [], \"Stop\": []}}", 1, 24),
        ("{\"env\": 1}", 1, 9),
        ("{\"a\": 01}", 1, 8),
        ("{\"a\": 'x'}", 1, 7),
        ("{} {}", 1, 4),
        ("{\"a\": \"\n\"}", 1, 7),
    ] {
        let refused = install(Some(text), &wanted(Product::ClaudeCode)).unwrap_err();
        assert_eq!((refused.line, refused.column), (line, column), "{text}: {refused}");
        assert!(inspect(Some(text), &wanted(Product::ClaudeCode)).is_err());
        let out = uninstall(text, None, &wanted(Product::ClaudeCode), Extent::Everything);
        assert!(out.is_err());
    }
}

#[test]
fn nesting_without_end_is_refused() {
    let text = format!("{{\"a\": {}{}}}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    for product in Product::ALL {
        assert!(install(Some(&text), &wanted(product)).is_err());
        check_round_trip(&format!("{{\"a\": {}{}}}", "[".repeat(400), "]".repeat(400)), product);
    }
}

#[test]
fn edits_made_in_between_stay() {
    let installed = install(Some(FOREIGN), &wanted(Product::ClaudeCode)).unwrap().new_text.unwrap();
    let edited = installed.replace("\"model\": \"opus\"", "\"model\": \"sonnet\",\n  \"new\": [1]");
    let plan = uninstall(&edited, Some(FOREIGN), &wanted(Product::ClaudeCode), Extent::Everything)
        .unwrap();
    let expected = FOREIGN.replace("\"model\": \"opus\"", "\"model\": \"sonnet\",\n  \"new\": [1]");
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let new_text = plan.new_text.unwrap();
    assert_eq!(value(&new_text), value(&expected));
    assert!(new_text.contains(
        "  \"new\": [1],\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"matcher\""
    ));
}

#[test]
fn a_foreign_hook_put_beside_ours_stays() {
    let installed =
        install(Some("{}\n"), &hooks_only(Product::ClaudeCode)).unwrap().new_text.unwrap();
    let mut value: Value = serde_json::from_str(&installed).unwrap();
    let hooks = value["hooks"]["Stop"][0]["hooks"].as_array_mut().unwrap();
    hooks.push(json!({"type": "command", "command": "say done"}));
    let edited = serde_json::to_string_pretty(&value).unwrap();
    let plan =
        uninstall(&edited, Some("{}\n"), &wanted(Product::ClaudeCode), Extent::Everything).unwrap();
    let left: Value = serde_json::from_str(&plan.new_text.unwrap()).unwrap();
    let hook = json!({"type": "command", "command": "say done"});
    assert_eq!(left, json!({"hooks": {"Stop": [{"hooks": [hook]}]}}));
}

#[test]
fn drift_is_seen_and_put_right() {
    let product = Product::Codex;
    let good = install(Some(FOREIGN), &wanted(product)).unwrap().new_text.unwrap();
    let moved = good.replace(FORWARDER, "/old/qd-hook");
    let findings = inspect(Some(&moved), &wanted(product)).unwrap();
    assert_eq!(findings.programs, ["/old/qd-hook"]);
    assert_eq!(findings.changed.len(), wanted(product).entries.len());
    assert_eq!(install(Some(&moved), &wanted(product)).unwrap().new_text, Some(good.clone()));

    let mut value: Value = serde_json::from_str(&good).unwrap();
    value["hooks"].as_object_mut().unwrap().remove("SubagentStop");
    let ours = value["hooks"]["Stop"][1].clone();
    value["hooks"]["Stop"].as_array_mut().unwrap().push(ours);
    value["hooks"]["PostToolUse"][0]["matcher"] = json!("Bash");
    value["hooks"]["Unheard"] = value["hooks"]["PreCompact"].clone();
    let drifted = value.to_string();
    let findings = inspect(Some(&drifted), &wanted(product)).unwrap();
    assert_eq!(findings.missing, ["SubagentStop"]);
    assert_eq!(findings.changed, ["PostToolUse", "Stop", "Unheard"]);
    let right = install(Some(&drifted), &wanted(product)).unwrap().new_text.unwrap();
    let findings = inspect(Some(&right), &wanted(product)).unwrap();
    assert_eq!(findings.good.len(), wanted(product).entries.len());
    check_foreign_survives(FOREIGN, &right, product);
}

#[test]
fn telemetry_that_goes_elsewhere_is_left_alone() {
    for text in [
        r#"{"env":{"OTEL_EXPORTER_OTLP_ENDPOINT":"http://collector:4318"}}"#,
        r#"{"env":{"OTEL_LOGS_EXPORTER":"console"}}"#,
    ] {
        let only = Wanted { entries: Vec::new(), ..wanted(Product::ClaudeCode) };
        assert_eq!(install(Some(text), &only).unwrap().new_text.as_deref(), Some(text));
        check_round_trip(text, Product::ClaudeCode);
    }
}

#[test]
fn telemetry_alone_can_be_taken_out() {
    let product = Product::ClaudeCode;
    let both = install(Some(FOREIGN), &wanted(product)).unwrap().new_text.unwrap();
    let plan = uninstall(&both, Some(FOREIGN), &wanted(product), Extent::TelemetryOnly).unwrap();
    let hooks = install(Some(FOREIGN), &hooks_only(product)).unwrap().new_text.unwrap();
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(&plan.new_text.unwrap()), value(&hooks));
}

#[test]
fn places_follow_from_what_is_taken_out() {
    let text = r#"{"hooks":{"Stop":[
        {"hooks":[{"type":"command","command":"/o/qd-hook send"}]},
        {"hooks":[]},
        {"hooks":[{"type":"command","command":"qd-hook"},{"type":"command","command":"mine"}]}]}}"#;
    let places = places(text, &wanted(Product::Codex)).unwrap();
    let seen: Vec<_> = places.iter().map(|p| (p.group, p.index, p.after)).collect();
    assert_eq!(seen, [(0, 0, None), (2, 0, None), (2, 1, Some((1, 0)))]);
}

#[test]
fn a_large_file_is_edited_in_reasonable_time() {
    let many = (0..20_000).map(|n| format!("    \"key {n}\": [\"{}\"]", "x".repeat(100)));
    let text = format!("{{\n  \"a\": {{\n{}\n  }}\n}}\n", many.collect::<Vec<_>>().join(",\n"));
    assert!(text.len() > 2 << 20);
    let installed = install(Some(&text), &wanted(Product::ClaudeCode)).unwrap().new_text.unwrap();
    let all = wanted(Product::ClaudeCode);
    let out = uninstall(&installed, Some(&text), &all, Extent::Everything).unwrap();
    assert!(out.new_text.as_deref() == Some(text.as_str()));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~äß\\n\"]{0,8}".prop_map(Value::from),
        Just(json!({"type": "command", "command": "mine"})),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-zA-Z ü]{0,6}", inner, 0..5)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// An object, often with hooks of its own in it.
fn any_settings() -> impl Strategy<Value = Value> {
    let key = prop_oneof!["[a-zA-Z ü]{0,6}", Just("model".to_owned())];
    let hook = prop_oneof![Just(json!({"type": "command", "command": "mine"})), any_json()];
    let group = prop_oneof![
        any_json(),
        prop::collection::vec(hook, 0..3)
            .prop_map(|hooks| json!({"matcher": "Bash", "hooks": hooks})),
    ];
    let event = prop_oneof![Just("Stop"), Just("PreToolUse"), Just("BeforeTool"), Just("Other")];
    let groups = prop::collection::vec(group, 0..3);
    let hooks = prop::collection::btree_map(event.prop_map(str::to_owned), groups, 0..4);
    let others = prop::collection::btree_map(key, any_json(), 0..5);
    (others, prop::option::of(hooks)).prop_map(|(others, hooks)| {
        let mut value: serde_json::Map<String, Value> =
            others.into_iter().filter(|(key, _)| key != "env" && key != "hooks").collect();
        if let Some(hooks) = hooks {
            value.insert("hooks".to_owned(), json!(hooks));
        }
        Value::Object(value)
    })
}

#[derive(Debug, Clone, Copy)]
struct Layout {
    pretty: bool,
    crlf: bool,
    tabs: bool,
    final_newline: bool,
    mark: bool,
}

fn any_layout() -> impl Strategy<Value = Layout> {
    any::<(bool, bool, bool, bool, bool)>().prop_map(|(pretty, crlf, tabs, final_newline, mark)| {
        Layout { pretty, crlf, tabs, final_newline, mark }
    })
}

fn laid_out(value: &Value, layout: Layout) -> String {
    let mut text = if layout.pretty {
        serde_json::to_string_pretty(value).unwrap()
    } else {
        value.to_string()
    };
    if layout.tabs {
        let tabbed = |line: &str| {
            let body = line.trim_start_matches(' ');
            format!("{}{body}", "\t".repeat((line.len() - body.len()) / 2))
        };
        text = text.lines().map(tabbed).collect::<Vec<_>>().join("\n");
    }
    if layout.final_newline {
        text.push('\n');
    }
    if layout.crlf {
        text = text.replace('\n', "\r\n");
    }
    if layout.mark { format!("\u{feff}{text}") } else { text }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn install_then_uninstall_is_the_identity(value in any_settings(), layout in any_layout()) {
        let text = laid_out(&value, layout);
        for product in Product::ALL {
            check_round_trip(&text, product);
        }
    }

    #[test]
    fn no_text_panics(text in "[{}\\[\\]\":, a-z/*\\n]{0,40}", dialect in any::<bool>()) {
        let dialect = if dialect { Dialect::Comments } else { Dialect::Strict };
        let wanted = Wanted { dialect, ..wanted(Product::GeminiCli) };
        if let Ok(plan) = install(Some(&text), &wanted) {
            let new_text = plan.new_text.unwrap();
            let out = uninstall(&new_text, Some(&text), &wanted, Extent::Everything).unwrap();
            prop_assert_eq!(out.new_text, Some(text));
        }
    }
}
