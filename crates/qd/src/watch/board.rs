//! The board in memory: what the stream said, and where the operator is on it.
//!
//! Pure: events and keys in, wishes out.

use qd_session::moment::Timestamp;
use qd_session::monitor::RequestKind;
use qd_session::operator::{AgentState, Group};
use serde::Deserialize;
use serde_json::Value;

use crate::daemon::BoardEvent;

#[derive(Debug, Default)]
pub struct Board {
    /// In the order they are shown.
    rows: Vec<Row>,
    /// The session the operator chose; the selection follows it when it moves. Until then it is
    /// the first one, whichever that is.
    chosen: Option<String>,
    /// Whether the selected session is shown with all that is known about it.
    pub open: bool,
    pub link: Link,
    /// Agents that run and cannot be read.
    pub unreadable: Vec<Value>,
    /// What to tell the operator, until the next key.
    pub notice: Option<String>,
}

/// Whether the daemon is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Link {
    #[default]
    Live,
    /// It went; what is shown is old.
    Lost,
}

/// A card, as far as it is shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub session_id: String,
    pub harness: String,
    #[serde(default)]
    pub vendor_id: String,
    pub title: Option<String>,
    pub cwd: Option<String>,
    pub branch: Option<String>,
    pub transcript: Option<String>,
    pub forked_from: Option<String>,
    pub mode: Option<String>,
    pub agent_state: AgentState,
    #[serde(default)]
    pub usage: Usage,
    #[serde(default)]
    pub requests: Vec<Waiting>,
    #[serde(default)]
    pub unrecognised: u32,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub kind: RequestKind,
    pub tool: Option<String>,
    pub text: Option<String>,
    pub input: Option<Value>,
    pub since: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    First,
    Last,
    Enter,
    Escape,
    Dismiss,
    Quit,
}

/// What the operator wants that the board cannot do by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    /// Look the session up again: evidence is not sent with every change.
    Details(String),
    Dismiss(String),
    Quit,
}

impl Board {
    /// How one event changes the board.
    pub fn apply(&mut self, event: BoardEvent) {
        let place = self.place();
        match event.name.as_str() {
            "snapshot" => {
                self.rows.clear();
                self.link = Link::Live;
                let Value::Object(mut list) = event.data else { return };
                self.learn(list.remove("summary").unwrap_or_default());
                let Some(Value::Array(cards)) = list.remove("sessions") else { return };
                cards.into_iter().for_each(|card| self.show(card));
            }
            "session_changed" => self.show(event.data),
            "session_removed" => {
                self.rows.retain(|row| event.data["sessionId"] != *row.session_id);
            }
            "summary" => return self.learn(event.data),
            _ => return,
        }
        self.sort();
        self.keep_place(place);
    }

    fn learn(&mut self, mut summary: Value) {
        let unreadable = serde_json::from_value(summary["unreadable"].take());
        self.unreadable = unreadable.unwrap_or_default();
    }

    /// A card that was looked up. It may have left the board meanwhile.
    pub fn refresh(&mut self, card: Value) {
        if self.rows.iter().any(|row| card["sessionId"] == *row.session_id) {
            self.show(card);
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.rows.sort_by_cached_key(|row| (row.agent_state.place(), row.session_id.clone()));
    }

    /// A card that is new, or looks different.
    fn show(&mut self, card: Value) {
        let Ok(row) = serde_json::from_value::<Row>(card) else {
            self.notice =
                Some("a session cannot be shown; is the daemon of another version?".into());
            return;
        };
        match self.rows.iter_mut().find(|known| known.session_id == row.session_id) {
            Some(known) => *known = row,
            None => self.rows.push(row),
        }
    }

    pub fn press(&mut self, key: Key) -> Wish {
        self.notice = None;
        let last = self.rows.len().saturating_sub(1);
        let place = self.place().unwrap_or_default();
        match key {
            Key::Up => self.select(place.saturating_sub(1)),
            Key::Down => self.select((place + 1).min(last)),
            Key::First => self.chosen = None,
            Key::Last => self.select(last),
            Key::Escape => self.open = false,
            Key::Enter => {
                self.open = !self.open && !self.rows.is_empty();
                if self.open {
                    self.select(place);
                    return self.chosen.clone().map_or(Wish::Nothing, Wish::Details);
                }
            }
            Key::Dismiss => {
                if let Some(row) = self.selected() {
                    return Wish::Dismiss(row.session_id.clone());
                }
            }
            Key::Quit => return Wish::Quit,
        }
        Wish::Nothing
    }

    pub fn lose_link(&mut self) {
        self.link = Link::Lost;
    }

    pub fn rows_of(&self, group: Group) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.agent_state.group == group)
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn is_selected(&self, row: &Row) -> bool {
        match &self.chosen {
            Some(chosen) => *chosen == row.session_id,
            None => self.rows.first().is_some_and(|first| first.session_id == row.session_id),
        }
    }

    fn selected(&self) -> Option<&Row> {
        self.rows.iter().find(|row| self.is_selected(row))
    }

    fn place(&self) -> Option<usize> {
        self.rows.iter().position(|row| self.is_selected(row))
    }

    fn select(&mut self, place: usize) {
        self.chosen = self.rows.get(place).map(|row| row.session_id.clone());
    }

    /// When the chosen session left the board, the one in its place is selected.
    fn keep_place(&mut self, before: Option<usize>) {
        if self.chosen.is_some() && self.place().is_none() {
            let last = self.rows.len().saturating_sub(1);
            self.select(before.unwrap_or_default().min(last));
            self.open = false;
        }
    }
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    pub fn card(id: &str, group: &str, state: &str, label: &str, since: u64) -> Value {
        json!({
            "sessionId": format!("sess_{id}"), "harness": "claude_code", "vendorId": id,
            "agentState": {"group": group, "state": state, "label": label, "confidence": 0.99,
                "source": "hook", "since": since, "evidence": []},
        })
    }

    pub fn event(name: &str, data: Value) -> BoardEvent {
        BoardEvent { name: name.to_owned(), data }
    }

    pub fn board(cards: Vec<Value>) -> Board {
        let mut board = Board::default();
        board.apply(event("snapshot", json!({ "sessions": cards })));
        board
    }

    fn three() -> Board {
        board(vec![
            card("b", "autonomous", "acting", "Running Bash", 2),
            card("a", "needs_you", "idle", "Waiting", 1),
            card("c", "delivered", "task_complete", "Finished", 3),
        ])
    }

    fn selected(board: &Board) -> Option<&str> {
        board.selected().map(|row| row.vendor_id.as_str())
    }

    #[test]
    fn the_selection_stays_with_its_session() {
        let mut board = three();
        assert_eq!(selected(&board), Some("a"));
        assert_eq!(board.press(Key::Down), Wish::Nothing);
        assert_eq!(selected(&board), Some("b"));
        let asks = card("b", "needs_you", "needs_permission", "Needs permission: Bash", 9);
        board.apply(event("session_changed", asks));
        assert_eq!((selected(&board), board.place()), (Some("b"), Some(0)));
        board.press(Key::Last);
        assert_eq!(board.press(Key::Down), Wish::Nothing);
        assert_eq!(selected(&board), Some("c"));
        board.press(Key::First);
        board.press(Key::Up);
        assert_eq!(selected(&board), Some("b"));
    }

    #[test]
    fn until_somebody_chooses_the_first_is_selected() {
        let mut board = three();
        let asks = card("c", "needs_you", "needs_permission", "Needs permission: Bash", 9);
        board.apply(event("session_changed", asks));
        assert_eq!(selected(&board), Some("c"));
        board.press(Key::Enter);
        board.apply(event("session_changed", card("c", "delivered", "idle", "…", 9)));
        assert_eq!((selected(&board), board.open), (Some("c"), true));
        board.press(Key::First);
        assert_eq!(selected(&board), Some("a"));
    }

    #[test]
    fn a_session_that_leaves_gives_its_place_to_the_next() {
        let mut board = three();
        board.press(Key::Down);
        board.apply(event("session_removed", json!({"sessionId": "sess_b"})));
        assert_eq!(selected(&board), Some("c"));
        board.apply(event("session_removed", json!({"sessionId": "sess_c"})));
        board.apply(event("session_removed", json!({"sessionId": "sess_a"})));
        assert_eq!(selected(&board), None);
        for key in [Key::Up, Key::Down, Key::Enter, Key::Dismiss] {
            assert_eq!(board.press(key), Wish::Nothing);
        }
        board.apply(event("session_changed", card("d", "autonomous", "thinking", "…", 1)));
        assert_eq!(selected(&board), Some("d"));
    }

    #[test]
    fn keys_ask_for_what_the_board_cannot_do() {
        let mut board = three();
        assert_eq!(board.press(Key::Enter), Wish::Details("sess_a".into()));
        assert_eq!(board.press(Key::Enter), Wish::Nothing);
        assert_eq!(board.press(Key::Dismiss), Wish::Dismiss("sess_a".into()));
        assert_eq!(board.press(Key::Quit), Wish::Quit);
    }

    #[test]
    fn what_cannot_be_read_is_said_and_loses_nothing_else() {
        let mut board = three();
        board.apply(event("session_changed", json!({"sessionId": "sess_x"})));
        board.apply(event("something_new", json!(7)));
        assert!(board.notice.is_some());
        assert_eq!(board.rows.len(), 3);
        board.lose_link();
        assert_eq!(board.link, Link::Lost);
        board.apply(event("snapshot", json!({"sessions": []})));
        assert_eq!((board.link, board.is_empty()), (Link::Live, true));
    }
}
