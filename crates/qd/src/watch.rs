//! `qd watch`: the board in a terminal, as it changes.
//!
//! One loop waits for keys, for the daemon and for the next tick, hands what came to the
//! [`Board`] and draws. What a key asks for runs beside it and comes back as news.

mod board;
mod view;

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use qd_session::moment::Timestamp;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::sleep;

use self::board::{Board, Key, Wish};
use self::view::{Palette, Size, screen};
use crate::daemon::{BoardEvent, Daemon, Events, escaped};
use crate::paths::Paths;

/// Events and keys on their way to the loop; who sends more waits.
const NEWS_MAX: usize = 64;

/// News taken in before the screen is drawn again.
const NEWS_PER_DRAW: usize = 256;

/// Between two looks whether the daemon is back.
const RECONNECT_EVERY: Duration = Duration::from_millis(500);

/// The longest pause between two draws while an age is visible, so that a clock that was set or a
/// machine that slept shows soon.
const TICK_MAX: Duration = Duration::from_secs(60);

/// What the loop is told.
enum News {
    Board(BoardEvent),
    Lost,
    Back,
    Pressed(Key),
    Resized,
    /// A session, looked up.
    Details(Value),
    Notice(String),
    /// The terminal is gone.
    Ended,
}

/// Whether there is a terminal to show the board in, and to read keys from.
pub fn is_possible() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

pub async fn watch(paths: &Paths) -> Result<()> {
    if !is_possible() {
        bail!("watching needs a terminal; `qd status` prints the board once");
    }
    let daemon = Daemon::at(paths);
    let events = daemon.stream().await?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let (tell, mut news) = mpsc::channel(NEWS_MAX);
    let mut terminal = Restored::open()?;
    tokio::spawn(follow(daemon.clone(), events, tell.clone()));
    read_keys(tell.clone());
    let mut board = Board::default();
    loop {
        let tick = terminal.draw(&board)?.map(|tick| tick.min(TICK_MAX));
        let first = tokio::select! {
            first = news.recv() => first,
            () = sleep(tick.unwrap_or_default()), if tick.is_some() => continue,
            _ = terminated.recv() => return Ok(()),
            _ = hung_up.recv() => return Ok(()),
            _ = interrupted.recv() => return Ok(()),
        };
        let mut next = first;
        for _ in 0..NEWS_PER_DRAW {
            let Some(one) = next else { break };
            match take_in(&mut board, one) {
                Wish::Nothing => {}
                Wish::Quit => return Ok(()),
                wish @ (Wish::Details(_) | Wish::Dismiss(_)) => {
                    tokio::spawn(fulfil(daemon.clone(), wish, tell.clone()));
                }
            }
            next = news.try_recv().ok();
        }
    }
}

fn take_in(board: &mut Board, news: News) -> Wish {
    match news {
        News::Board(event) => board.apply(event),
        News::Lost => board.lose_link(),
        News::Back => board.notice = Some("the daemon is back".to_owned()),
        News::Details(card) => board.refresh(card),
        News::Notice(text) => board.notice = Some(text),
        News::Resized => {}
        News::Pressed(key) => return board.press(key),
        News::Ended => return Wish::Quit,
    }
    Wish::Nothing
}

/// The terminal, given back as it was however we leave: by a key, a signal or a panic.
struct Restored {
    terminal: DefaultTerminal,
    palette: Palette,
}

impl Restored {
    fn open() -> Result<Self> {
        // A panic restores it too, before its message is printed.
        let terminal = ratatui::try_init().context("the terminal cannot be used")?;
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Ok(Self { terminal, palette: if no_color { Palette::Plain } else { Palette::Colours } })
    }

    /// Draws, and says when an age on the screen changes.
    fn draw(&mut self, board: &Board) -> Result<Option<Duration>> {
        let (now, palette) = (qd_host::now(), self.palette);
        let mut next_tick = None;
        let drawn = self.terminal.draw(|frame| next_tick = draw(frame, board, now, palette));
        drawn.context("cannot draw")?;
        Ok(next_tick)
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn draw(
    frame: &mut Frame<'_>,
    board: &Board,
    now: Timestamp,
    palette: Palette,
) -> Option<Duration> {
    let area = frame.area();
    let size = Size { columns: area.width, lines: area.height };
    let screen = screen(board, now, size, palette);
    frame.render_widget(Paragraph::new(screen.lines), area);
    screen.next_tick
}

/// Tells what the daemon says, and comes back to one that was restarted.
async fn follow(daemon: Daemon, mut events: Events, tell: mpsc::Sender<News>) {
    loop {
        while let Ok(Some(event)) = events.next().await {
            if tell.send(News::Board(event)).await.is_err() {
                return;
            }
        }
        if tell.send(News::Lost).await.is_err() {
            return;
        }
        events = loop {
            sleep(RECONNECT_EVERY).await;
            if let Ok(events) = daemon.stream().await {
                break events;
            }
        };
        if tell.send(News::Back).await.is_err() {
            return;
        }
    }
}

/// Asks the daemon for what the operator wants.
async fn fulfil(daemon: Daemon, wish: Wish, tell: mpsc::Sender<News>) {
    let done = match &wish {
        Wish::Details(id) => {
            let detail = daemon.get(&format!("/api/live/sessions/{}", escaped(id))).await;
            detail.map(|mut detail| News::Details(detail["card"].take()))
        }
        Wish::Dismiss(id) => {
            let done = daemon.post(&format!("/api/sessions/{}/dismiss", escaped(id))).await;
            done.map(|_| News::Notice("dismissed until it does something".to_owned()))
        }
        Wish::Nothing | Wish::Quit => return,
    };
    let news = done.unwrap_or_else(|error| News::Notice(format!("{error:#}")));
    // A board that has closed needs no answer.
    let _ = tell.send(news).await;
}

/// Waiting for keys blocks, so it has a thread of its own; it ends with the program.
fn read_keys(tell: mpsc::Sender<News>) {
    std::thread::spawn(move || {
        loop {
            let news = match event::read() {
                Ok(Event::Key(key)) => meant(key).map(News::Pressed),
                Ok(Event::Resize(..)) => Some(News::Resized),
                Ok(Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_)) => {
                    None
                }
                Err(_) => Some(News::Ended),
            };
            let ended = matches!(news, Some(News::Ended));
            if news.is_some_and(|news| tell.blocking_send(news).is_err()) || ended {
                return;
            }
        }
    });
}

#[allow(clippy::wildcard_enum_match_arm, reason = "a keyboard has many keys that mean nothing")]
fn meant(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
        (KeyCode::Char('c'), true) => Some(Key::Quit),
        (_, true) => None,
        (KeyCode::Char('j') | KeyCode::Down, false) => Some(Key::Down),
        (KeyCode::Char('k') | KeyCode::Up, false) => Some(Key::Up),
        (KeyCode::Char('g') | KeyCode::Home, false) => Some(Key::First),
        (KeyCode::Char('G') | KeyCode::End, false) => Some(Key::Last),
        (KeyCode::Enter, false) => Some(Key::Enter),
        (KeyCode::Esc, false) => Some(Key::Escape),
        (KeyCode::Char('e'), false) => Some(Key::Dismiss),
        (KeyCode::Char('q'), false) => Some(Key::Quit),
        (_, false) => None,
    }
}
