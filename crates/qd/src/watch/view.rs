//! The board as lines of text.
//!
//! Pure: a board, a time and a size in, lines and the time of the next tick out. Everything an
//! agent wrote passes through [`plain`] or [`plain_code`] on its way.

use std::time::Duration;

use qd_session::moment::Timestamp;
use qd_session::monitor::RequestKind;
use qd_session::operator::Group;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use super::board::{Board, Link, Row, Waiting};
use crate::session_line::{age, age_holds_ms, heading, plain, plain_code, unreadable_lines};

/// Columns of a session's line: label, age and agent are fixed; title and place share the rest.
const LABEL_COLUMNS: usize = 30;
const AGE_COLUMNS: usize = 6;
const HARNESS_COLUMNS: usize = 11;

/// Most of an agent's text that is looked at for one line. Wider than any terminal.
const TEXT_CHARS_MAX: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: u16,
    pub lines: u16,
}

/// Whether colours are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    Colours,
    /// Bold and inverse only.
    Plain,
}

/// What is on the screen.
#[derive(Debug)]
pub struct Screen {
    pub lines: Vec<Line<'static>>,
    /// When an age on it will say something else; none if no age is visible.
    pub next_tick: Option<Duration>,
}

/// A line and the times whose age it shows.
struct Entry {
    line: Line<'static>,
    since: Option<Timestamp>,
    selected: bool,
}

pub fn screen(board: &Board, now: Timestamp, size: Size, palette: Palette) -> Screen {
    let painter = Painter { now, columns: usize::from(size.columns), palette };
    let height = usize::from(size.lines).saturating_sub(2);
    let body = painter.body(board);
    let from = first_visible(&body, height);
    let visible: Vec<Entry> = body.into_iter().skip(from).take(height).collect();
    let next_tick = visible.iter().filter_map(|entry| entry.since).map(|since| {
        // A clock that was set back shows no age at all until it has caught up.
        let ahead = since.ms_since(now);
        if ahead > 0 { ahead } else { age_holds_ms(now.ms_since(since)) }
    });
    let next_tick = next_tick.min().map(Duration::from_millis);
    let mut lines = vec![painter.header(board)];
    lines.extend(visible.into_iter().map(|entry| entry.line));
    lines.resize(height + 1, Line::default());
    lines.push(painter.footer(board));
    lines.truncate(usize::from(size.lines));
    Screen { lines, next_tick }
}

/// The window that has the selected session in its middle, where there is more than fits.
fn first_visible(body: &[Entry], height: usize) -> usize {
    let selected = body.iter().position(|entry| entry.selected).unwrap_or_default();
    let deepest = body.len().saturating_sub(height);
    selected.saturating_sub(height / 2).min(deepest)
}

struct Painter {
    now: Timestamp,
    columns: usize,
    palette: Palette,
}

impl Painter {
    fn header(&self, board: &Board) -> Line<'static> {
        let mut spans = vec![Span::styled("Quarterdeck  ", bold())];
        for group in GROUPS {
            let count = board.rows_of(group).count();
            let style = if count > 0 { self.of_group(group) } else { self.faint() };
            spans.push(Span::styled(format!(" {} {count} ", heading(name(group))), style));
        }
        if board.link == Link::Lost {
            spans.push(Span::styled(" the daemon is gone; waiting for it ", bold().reversed()));
        }
        Line::from(spans)
    }

    fn footer(&self, board: &Board) -> Line<'static> {
        match &board.notice {
            Some(notice) => Line::styled(fitted(&plain(notice), self.columns), bold()),
            None => Line::styled("j/k move  enter details  e dismiss  q quit", self.faint()),
        }
    }

    fn body(&self, board: &Board) -> Vec<Entry> {
        let mut body = Vec::new();
        if board.is_empty() && board.unreadable.is_empty() {
            body.push(text(Line::default()));
            body.push(text("No agent has been seen here yet. Start one, in any terminal.".into()));
            return body;
        }
        for group in GROUPS {
            let count = board.rows_of(group).count();
            let title = format!("{} ({count})", heading(name(group)));
            body.push(text(Line::styled(title, self.of_group(group).add_modifier(Modifier::BOLD))));
            for row in board.rows_of(group) {
                self.session(board, row, &mut body);
            }
            body.push(text(Line::default()));
        }
        if !board.unreadable.is_empty() {
            let title = format!("Running, not readable ({})", board.unreadable.len());
            body.push(text(Line::styled(title, self.faint().add_modifier(Modifier::BOLD))));
            for line in board.unreadable.iter().flat_map(unreadable_lines) {
                let line = fitted(&format!("  {line}"), self.columns);
                body.push(text(Line::styled(line, self.faint())));
            }
            body.push(text(Line::default()));
        }
        body.pop();
        body
    }

    fn session(&self, board: &Board, row: &Row, body: &mut Vec<Entry>) {
        let selected = board.is_selected(row);
        let state = &row.agent_state;
        let fixed = 2 + LABEL_COLUMNS + 1 + AGE_COLUMNS + 2 + HARNESS_COLUMNS + 2;
        let rest = self.columns.saturating_sub(fixed);
        // The title has what the place leaves, and at least half.
        let place = place(row);
        let place_columns = width(&place).min(rest / 2);
        let title_columns = rest.saturating_sub(place_columns + 2);
        let marker = if selected { "> " } else { "  " };
        let label = padded(&plain(&state.label), LABEL_COLUMNS);
        let age = age(self.now.ms_since(state.since));
        let harness = padded(&plain(&row.harness), HARNESS_COLUMNS);
        let title = padded(&plain(row.title.as_deref().unwrap_or_default()), title_columns);
        let mut spans = vec![
            Span::raw(marker),
            Span::styled(label, self.of_group(state.group)),
            Span::raw(format!(" {age:>AGE_COLUMNS$}  ")),
            Span::styled(format!("{harness}  "), self.faint()),
            Span::raw(format!("{title}  ")),
            Span::styled(fitted_left(&place, place_columns), self.faint()),
        ];
        if selected {
            spans.iter_mut().for_each(|span| span.style = span.style.add_modifier(Modifier::BOLD));
        }
        let line = Line::from(spans);
        body.push(Entry { line, since: Some(state.since), selected });
        if selected {
            row.requests.iter().for_each(|request| body.push(self.request(request)));
            if board.open {
                self.details(row, body);
            }
        }
    }

    fn request(&self, request: &Waiting) -> Entry {
        let kind = match request.kind {
            RequestKind::Plan => "plan",
            RequestKind::Question => "question",
            RequestKind::Permission => "permission",
        };
        let age = age(self.now.ms_since(request.since));
        let what = [request.tool.as_deref().map(plain_code), asked(request)];
        let what = what.into_iter().flatten().filter(|part| !part.is_empty());
        let what = what.collect::<Vec<_>>().join(": ");
        let line = format!("    waits {age:>AGE_COLUMNS$}  {kind} {what}");
        let line = Line::styled(fitted(&line, self.columns), self.of_group(Group::NeedsYou));
        Entry { line, since: Some(request.since), selected: false }
    }

    /// Why it is believed to be so.
    fn details(&self, row: &Row, body: &mut Vec<Entry>) {
        let state = &row.agent_state;
        let ago = |at: Timestamp| format!("{} ago", age(self.now.ms_since(at)));
        let mut tell = |name: &str, value: String, since: Option<Timestamp>| {
            if !value.is_empty() {
                let line = fitted(&format!("    {name:<10} {value}"), self.columns);
                body.push(Entry { line: Line::styled(line, self.faint()), since, selected: false });
            }
        };
        let known = |text: &Option<String>| plain(text.as_deref().unwrap_or_default());
        tell("session", format!("{} ({})", plain(&row.session_id), plain(&row.vendor_id)), None);
        let sure = state.confidence * 100.0;
        tell("state", format!("{}, {sure:.0} % sure", plain(state.state.as_str())), None);
        tell("folder", known(&row.cwd), None);
        tell("branch", known(&row.branch), None);
        tell("mode", known(&row.mode), None);
        tell("model", known(&row.usage.model), None);
        tell("transcript", known(&row.transcript), None);
        tell("fork of", known(&row.forked_from), None);
        for evidence in &state.evidence {
            let source = serde_json::to_value(evidence.source).unwrap_or_default();
            let source = source.as_str().unwrap_or_default();
            let event = plain(&evidence.event);
            let told = format!("{source}: {event}, {}", ago(evidence.at));
            tell("evidence", told, Some(evidence.at));
        }
        if row.unrecognised > 0 {
            tell("unknown", format!("{} signals were not understood", row.unrecognised), None);
        }
    }

    fn of_group(&self, group: Group) -> Style {
        match (self.palette, group) {
            (Palette::Plain, Group::NeedsYou) => bold(),
            (Palette::Plain, Group::Autonomous | Group::Delivered) => Style::default(),
            (Palette::Colours, Group::NeedsYou) => Style::default().fg(Color::Yellow),
            (Palette::Colours, Group::Autonomous) => Style::default().fg(Color::Cyan),
            (Palette::Colours, Group::Delivered) => Style::default().fg(Color::Green),
        }
    }

    fn faint(&self) -> Style {
        match self.palette {
            Palette::Colours => Style::default().fg(Color::DarkGray),
            Palette::Plain => Style::default(),
        }
    }
}

const GROUPS: [Group; 3] = [Group::NeedsYou, Group::Autonomous, Group::Delivered];

fn name(group: Group) -> &'static str {
    match group {
        Group::NeedsYou => "needs_you",
        Group::Autonomous => "autonomous",
        Group::Delivered => "delivered",
    }
}

fn bold() -> Style {
    Style::default().add_modifier(Modifier::BOLD)
}

fn text(line: Line<'static>) -> Entry {
    Entry { line, since: None, selected: false }
}

/// The folder, and the branch where it is known.
fn place(row: &Row) -> String {
    let folder = plain_code(row.cwd.as_deref().unwrap_or_default());
    match row.branch.as_deref().map(plain).filter(|branch| !branch.is_empty()) {
        Some(branch) => format!("{folder} ({branch})"),
        None => folder,
    }
}

/// The part of a request that one decides by.
fn asked(request: &Waiting) -> Option<String> {
    let told = ["command", "file_path", "path", "url", "plan", "question", "query"];
    let input = request.input.as_ref();
    let part = input.and_then(|input| told.iter().find_map(|key| input.get(key)));
    let written = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = part.map(written).or_else(|| request.text.clone()).or_else(|| input.map(written))?;
    Some(plain_code(&text.chars().take(TEXT_CHARS_MAX).collect::<String>()))
}

fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or_default()).sum()
}

/// Cut at its end where it is too wide.
fn fitted(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |c: &char| {
        let wide = c.width().unwrap_or_default();
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    let cut: String = text.chars().take_while(fits).collect();
    if columns == 0 { cut } else { cut + "…" }
}

/// Cut at its beginning: the end of a path tells more.
fn fitted_left(text: &str, columns: usize) -> String {
    let turned: String = text.chars().rev().collect();
    fitted(&turned, columns).chars().rev().collect()
}

fn padded(text: &str, columns: usize) -> String {
    let text = fitted(text, columns);
    let room = columns.saturating_sub(width(&text));
    text + &" ".repeat(room)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::widgets::Paragraph;
    use serde_json::json;

    use super::super::board::Key;
    use super::super::board::tests::{board, card, event};
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000_000);

    /// As a terminal shows it.
    fn shown(board: &Board, columns: u16, lines: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("a terminal");
        let screen = screen(board, NOW, Size { columns, lines }, Palette::Colours);
        terminal
            .draw(|frame| frame.render_widget(Paragraph::new(screen.lines), frame.area()))
            .expect("drawn");
        terminal.backend().to_string()
    }

    fn ago(ms: u64) -> u64 {
        NOW.0 - ms
    }

    fn busy() -> Board {
        let mut asks =
            card("a1", "needs_you", "needs_permission", "Needs permission: Bash", ago(130_000));
        asks["title"] = json!("fix\u{1b}[31m the parser");
        asks["cwd"] = json!("/home/ann/acme");
        asks["branch"] = json!("main");
        asks["requests"] = json!([{"requestId": "r", "kind": "permission", "tool": "Bash",
            "input": {"command": "rm -rf build\n\u{1b}[2J && make"}, "since": ago(130_000)}]);
        asks["agentState"]["evidence"] =
            json!([{"source": "hook", "at": ago(130_000), "event": "approval_requested"}]);
        let mut works = card("b2", "autonomous", "acting", "Running Edit", ago(4_000));
        works["harness"] = json!("codex");
        works["title"] = json!("port the importer to the new API, with tests");
        works["cwd"] = json!("/home/ann/projects/a-very-long-name/importer");
        let mut done = card("c3", "delivered", "task_complete", "Finished", ago(7_200_000));
        done["harness"] = json!("gemini_cli");
        done["title"] = json!("你好 README übersetzen");
        board(vec![asks, works, done])
    }

    #[test]
    fn three_groups_and_the_request_of_the_selected_session() {
        insta::assert_snapshot!(shown(&busy(), 100, 12));
    }

    #[test]
    fn details_say_why() {
        let mut board = busy();
        board.press(Key::Enter);
        insta::assert_snapshot!(shown(&board, 80, 16));
    }

    #[test]
    fn an_empty_board_says_so() {
        insta::assert_snapshot!(shown(&board(vec![]), 64, 5));
    }

    #[test]
    fn a_lost_daemon_is_said_and_the_board_stays() {
        let mut board = busy();
        board.lose_link();
        board.notice = Some("dismissed".into());
        insta::assert_snapshot!(shown(&board, 100, 6));
    }

    #[test]
    fn a_long_board_follows_the_selection() {
        let cards = (0..40).map(|n| {
            card(
                &format!("{n:02}"),
                "autonomous",
                "acting",
                &format!("Running {n}"),
                ago(n * 1_000),
            )
        });
        let mut board = board(cards.collect());
        for _ in 0..30 {
            board.press(Key::Down);
        }
        insta::assert_snapshot!(shown(&board, 60, 9));
    }

    #[test]
    fn no_size_is_too_small() {
        let mut board = busy();
        board.press(Key::Enter);
        for columns in 0..70 {
            for lines in 0..20 {
                let size = Size { columns, lines };
                let screen = screen(&board, NOW, size, Palette::Plain);
                assert!(screen.lines.len() <= usize::from(lines));
            }
        }
    }

    #[test]
    fn no_control_character_reaches_the_terminal() {
        let nasty = "x\u{1b}]0;t\u{7}\u{9b}2J\r\n\u{202e}y";
        let mut card = card(nasty, "needs_you", nasty, nasty, 1);
        for field in ["title", "cwd", "branch", "mode", "transcript", "forkedFrom", "harness"] {
            card[field] = json!(nasty);
        }
        card["usage"] = json!({"model": nasty});
        card["requests"] = json!([{"kind": "question", "tool": nasty, "text": nasty, "since": 1}]);
        card["agentState"]["evidence"] = json!([{"source": "hook", "at": 1, "event": nasty}]);
        let mut board = board(vec![]);
        board.apply(event("session_changed", card));
        board.press(Key::Enter);
        let screen = screen(&board, NOW, Size { columns: 200, lines: 30 }, Palette::Colours);
        for line in screen.lines {
            let text = line.to_string();
            assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
        }
    }

    #[test]
    fn ages_tick_only_while_one_is_visible_that_changes() {
        let tick = |board: &Board, lines| {
            screen(board, NOW, Size { columns: 80, lines }, Palette::Plain).next_tick
        };
        assert_eq!(tick(&board(vec![]), 20), None);
        assert_eq!(tick(&busy(), 20), Some(Duration::from_secs(1)));
        // Only the first session fits, and its age counts minutes.
        assert_eq!(tick(&busy(), 4), Some(Duration::from_secs(50)));
    }

    #[test]
    fn wide_letters_are_cut_whole() {
        assert_eq!(fitted("你好吗", 6), "你好吗");
        assert_eq!(fitted("你好吗", 5), "你好…");
        assert_eq!(fitted("你好吗", 4), "你…");
        assert_eq!(fitted_left("/home/ann/acme", 6), "…/acme");
        assert_eq!((fitted("abc", 1), fitted("abc", 0)), ("…".into(), String::new()));
    }
}
