//! A session in one line of text.

use qd_session::moment::Timestamp;
use qd_session::visible::{visible_code, visible_prose};
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
    let folder = plain_code(&text(&card["cwd"]));
    let label = plain(&text(&state["label"]));
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

/// An agent that runs and cannot be read: which it is and where, why not, and what would help.
pub fn unreadable_lines(agent: &Value) -> [String; 2] {
    let text = |name: &str| plain(agent[name].as_str().unwrap_or_default());
    let (pid, folder) = (&agent["pid"], plain_code(agent["cwd"].as_str().unwrap_or_default()));
    let first = format!("{:<20}  pid {pid}  {folder}", text("product"));
    [first.trim_end().to_owned(), format!("  {} {}", text("why"), text("help"))]
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

/// How long until [`age`] says something else.
pub fn age_holds_ms(ms: u64) -> u64 {
    let step = match ms / 1_000 {
        0..60 => 1_000,
        60..3_600 => 60_000,
        3_600..86_400 => 3_600_000,
        _ => 86_400_000,
    };
    step - ms % step
}

/// An agent's words on one line of ours: what would move the cursor, colour the terminal or turn the
/// direction of reading is shown as a mark.
pub fn plain(text: &str) -> String {
    one_line(&visible_prose(text))
}

/// The same of a command, a path or an input, where nothing may hide.
pub fn plain_code(text: &str) -> String {
    one_line(&visible_code(text))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Plain, and cut where it is too long.
fn shortened(text: &str) -> String {
    let line = plain(text);
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
            "01234567  codex        Needs permission: Bash             1 min  fix⟨U+001B⟩[31m the parser  /w/acme"
        );
        assert!(!line(&json!({}), Timestamp(0)).is_empty());
    }

    #[test]
    fn an_agents_text_cannot_touch_the_terminal() {
        let hostile = "a\u{1b}]0;x\u{7}b\r\n\tc\u{9b}31m\u{202e}d";
        assert_eq!(plain(hostile), "a⟨U+001B⟩]0;x⟨U+0007⟩b c⟨U+009B⟩31m⟨U+202E⟩d");
        assert_eq!(plain_code("r\u{200b}m\u{a0}-r"), "r⟨U+200B⟩m⟨U+00A0⟩-r");
        assert_eq!(plain("grün 你好 🚀"), "grün 你好 🚀");
    }

    #[test]
    fn ages_are_short() {
        let ages = [0, 59_999, 60_000, 3_600_000, 90_000_000].map(age);
        assert_eq!(ages, ["0 s", "59 s", "1 min", "1 h", "1 d"]);
        let holds = [0, 59_999, 60_000, 3_599_000, 86_400_001].map(age_holds_ms);
        assert_eq!(holds, [1_000, 1, 60_000, 1_000, 86_399_999]);
    }
}
