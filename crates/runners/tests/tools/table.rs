//! `spec/tools.md`, read both ways: every tool has its row, and every row its tool.

use qd_runners::tools::limits::TIMEOUT_MS_MAX;
use qd_runners::tools::{Manner, Tool};
use qd_session::limits::TOOL_TIMEOUT_MS;
use qd_session::machine::ToolOutcome;
use qd_session::policy::ToolKind;
use serde_json::{Value, json};

use super::world::{World, run};

const SPEC: &str = include_str!("../../../../spec/tools.md");

#[test]
fn the_page_shows_the_tools_that_there_are() {
    let held: Vec<String> = Tool::ALL.into_iter().map(row).collect();
    let written: Vec<&str> = SPEC.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(written, held, "\n{}\n", held.join("\n"));
    assert!(SPEC.contains(&format!("{TOOL_TIMEOUT_MS} ms")));
    assert!(SPEC.contains(&format!("{TIMEOUT_MS_MAX} ms")));
}

fn row(tool: Tool) -> String {
    let schema = tool.definition().input_schema;
    let required = schema["required"].as_array().expect("a list").clone();
    let is_needed = |name: &String| required.contains(&json!(name));
    let mut names: Vec<&String> =
        schema["properties"].as_object().expect("an object").keys().collect();
    names.sort_by_key(|name| (!is_needed(name), *name));
    let spelled = |name: &&String| match is_needed(name) {
        true => format!("**{name}**"),
        false => (*name).clone(),
    };
    let names: Vec<String> = names.iter().map(spelled).collect();
    let mutating = if tool.is_mutating() { "yes" } else { "no" };
    let manner = match tool.manner() {
        Manner::Itself => "itself",
        Manner::Argv => "argv",
        Manner::Shell => "shell",
        Manner::Asked => "the operator",
    };
    let limit = match (tool.manner(), schema["properties"].get("timeout_ms").is_some()) {
        (Manner::Asked, _) => "none",
        (_, true) => "its own",
        (_, false) => "default",
    };
    let kind = ToolKind::of(tool.name()).name();
    let arguments = names.join(" ");
    format!("| `{}` | {mutating} | {manner} | {limit} | {kind} | {arguments} |", tool.name())
        .replace("|  |", "| |")
}

/// A model is told what is wrong with what it gave, whatever that is.
#[tokio::test]
async fn no_arguments_end_a_session() {
    let world = World::new();
    let toolbox = world.toolbox();
    let odd = [json!(null), json!(3), json!("x"), json!([]), json!({}), json!({"no_such": 1})];
    for tool in Tool::ALL.into_iter().filter(|tool| tool.manner() != Manner::Asked) {
        for arguments in &odd {
            let outcome = run(&toolbox, tool.name(), arguments.clone()).await;
            assert!(
                matches!(outcome, ToolOutcome::Succeeded { .. }),
                "{} {arguments}: {outcome:?}",
                tool.name()
            );
        }
        let ToolOutcome::Succeeded { output, is_error } =
            run(&toolbox, tool.name(), json!({"no_such": 1})).await
        else {
            panic!("no result")
        };
        assert!(is_error && output.contains("no_such"), "{output}");
    }
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_a_mistake_that_names_the_others() {
    let world = World::new();
    let told = world.mistake("delete_everything", json!({})).await;
    assert!(
        told.contains("there is no tool delete_everything") && told.contains("read_file"),
        "{told}"
    );
    let why = world.failure("ask_user", json!({"question": "Which?"})).await;
    assert!(why.contains("operator"), "{why}");
}

#[test]
fn an_unknown_tool_counts_as_one_that_changes_something() {
    let toolbox = World::new().toolbox();
    assert!(toolbox.is_mutating(&"mcp__x__y".into()));
    assert!(toolbox.is_mutating(&"git_log".into()));
    assert!(!toolbox.is_mutating(&"grep".into()));
    let names: Vec<&str> = toolbox.definitions().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, Tool::ALL.map(Tool::name));
    let is_object = |schema: &Value| schema["type"] == "object";
    assert!(toolbox.definitions().iter().all(|tool| is_object(&tool.input_schema)));
}
