//! Rules in the table's words, and requests as clients make them.

use qd_session::policy::{Asked, Effective, Layer, Policy, Tightening, ToolKind, Trouble, Verdict};
use serde_json::{Map, Value, json};

pub const HOME: &str = "/home/u";
pub const CWD: &str = "/w";

/// Everything that holds for one session.
#[derive(Debug, Default)]
pub struct World {
    pub policy: Policy,
    pub session: Layer,
    pub repository: Tightening,
    pub troubles: Vec<Trouble>,
}

impl World {
    /// Reads `preset careful + session deny command rm *`.
    pub fn of(rules: &str) -> Self {
        let mut parts = [json!({}), json!({}), json!({}), json!({})];
        let mut forbids_yolo = false;
        for rule in rules.split(" + ").map(str::trim).filter(|rule| !rule.is_empty()) {
            let (layer, rule) = match rule.split_once(' ') {
                Some(("project", rest)) => (1, rest),
                Some(("session", rest)) => (2, rest),
                Some(("repository", rest)) => (3, rest),
                _ => (0, rule),
            };
            match rule.split_once(' ') {
                Some(("preset", preset)) => parts[layer]["preset"] = json!(preset),
                Some(("no", "yolo")) => forbids_yolo = true,
                Some((effect, about)) => {
                    let table = parts[layer].as_object_mut().expect("a table");
                    let rules = table.entry("rule").or_insert_with(|| json!([]));
                    rules.as_array_mut().expect("a list").push(written(effect, about, rule));
                }
                None => panic!("no rule: {rule}"),
            }
        }
        let [mut global, project, session, repository] = parts;
        if project != json!({}) {
            global["project"] = json!({CWD: project});
        }
        Self::written(&global, &session, &repository, forbids_yolo)
    }

    pub fn written(global: &Value, session: &Value, repository: &Value, no_yolo: bool) -> Self {
        let (policy, mut troubles) = Policy::of_operator(global, HOME);
        let (session, more) = Layer::of_session(session, HOME);
        troubles.extend(more);
        let (repository, more) = Tightening::of_repository(repository, HOME);
        troubles.extend(more);
        let gemini = json!({"security": {"disableYoloMode": no_yolo}});
        let repository = repository.and(Tightening::of_gemini_settings(&gemini));
        Self { policy, session, repository, troubles }
    }

    pub fn effective(&self) -> Effective<'_> {
        self.policy.effective(Some(CWD), &self.session, &self.repository)
    }

    pub fn judge(&self, tool: &str, input: &Value) -> Verdict {
        let input = input.to_string();
        self.effective().judge(&Asked {
            tool,
            input: Some(&input),
            cwd: Some(CWD),
            ..Asked::default()
        })
    }
}

/// `command git status *`, `kind edit path src`, `input.url https://*`.
fn written(effect: &str, about: &str, name: &str) -> Value {
    const FIELDS: [&str; 6] = ["tool", "kind", "command", "path", "inside", "outside"];
    let mut rule =
        Map::from_iter([("effect".to_owned(), json!(effect)), ("name".to_owned(), json!(name))]);
    let mut field = String::new();
    for word in about.split(' ') {
        let is_field = FIELDS.contains(&word) || word.starts_with("input.") || word == "colour";
        if is_field && field != "command" {
            field = word.to_owned();
            continue;
        }
        let (table, key) = match field.split_once('.') {
            Some((outer, inner)) => {
                let table = rule.entry(outer).or_insert_with(|| json!({}));
                (table.as_object_mut().expect("a table"), inner)
            }
            None => (&mut rule, field.as_str()),
        };
        let text = table.get(key).and_then(Value::as_str).map(|text| format!("{text} {word}"));
        table.insert(key.to_owned(), json!(text.unwrap_or_else(|| word.to_owned())));
    }
    Value::Object(rule)
}

/// What a client sends with its request.
pub fn input(tool: &str, asks: &str) -> Value {
    match ToolKind::of(tool) {
        _ if tool == "apply_patch" => json!({"command": asks}),
        _ if tool == "Glob" => json!({"pattern": asks}),
        ToolKind::Run => json!({"command": asks, "description": "what it says"}),
        ToolKind::Read | ToolKind::Edit => json!({"file_path": asks, "content": "x"}),
        ToolKind::Search => json!({"path": asks, "pattern": "/x/"}),
        ToolKind::Fetch => json!({"url": asks}),
        ToolKind::Question => json!({"questions": [{"question": asks}]}),
        ToolKind::Other => json!({"text": asks}),
    }
}
