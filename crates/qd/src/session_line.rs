//! A session in one line of text.

use qd_session::moment::Timestamp;
use serde_json::Value;

/// Most of a title that is shown.
const TITLE_CHARS_MAX: usize = 48;

/// A group's name for people.
pub fn heading(group: &str) -> &str {
    match group {
        "needs_you" => "Needs You",
        "autonomous" => "Autonomous",
        "delivered" => "Delivered",
        other => other,
    }
}

/// Id, agent, label, time in state, title and folder.
pub fn line(card: &Value, now: Timestamp) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let state = &card["agentState"];
    let since = Timestamp(state["since"].as_u64().unwrap_or_default());
    let id = text(&card["sessionId"]);
    let id = id.strip_prefix("sess_").unwrap_or(&id);
    let title = shortened(&text(&card["title"]));
    let folder = text(&card["cwd"]);
    let label = text(&state["label"]);
    let harness = text(&card["harness"]);
    let line = format!(
        "{:<8}  {:<11}  {:<32}  {:>6}  {title}  {folder}",
        &id[..id.len().min(8)],
        harness,
        label,
        age(now.ms_since(since)),
    );
    line.trim_end().to_owned()
}

/// How long ago, as short as can be.
pub fn age(ms: u64) -> String {
    match ms / 1_000 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3_600 => format!("{} min", s / 60),
        s @ 3_600..86_400 => format!("{} h", s / 3_600),
        s => format!("{} d", s / 86_400),
    }
}

/// On one line, cut where it is too long. Control characters are an agent's text, not ours.
fn shortened(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_says_what_one_needs_to_choose() {
        let card = json!({
            "sessionId": "sess_0123456789", "harness": "codex", "cwd": "/w/acme",
            "title": "fix\u{1b}[31m the\n parser", "agentState": {
                "label": "Needs permission: Bash", "since": 1_000, "group": "needs_you",
            },
        });
        assert_eq!(
            line(&card, Timestamp(62_000)),
            "01234567  codex        Needs permission: Bash             1 min  fix [31m the parser  /w/acme"
        );
        assert!(!line(&json!({}), Timestamp(0)).trim_end().is_empty());
    }

    #[test]
    fn ages_are_short() {
        let ages = [0, 59_999, 60_000, 3_600_000, 90_000_000].map(age);
        assert_eq!(ages, ["0 s", "59 s", "1 min", "1 h", "1 d"]);
    }
}
