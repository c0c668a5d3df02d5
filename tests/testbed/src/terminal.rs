//! A client in a pseudo-terminal, watched and typed to as a person would.

use std::io::Read;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::client::Launch;
use crate::error::{Doing, Error, Result};
use crate::input::Input;
use crate::limits::WAIT_MAX;
use crate::process_tree;
use crate::screen::Screen;
use crate::watched::Watched;

/// Dropping it kills the client and everything it started.
pub struct Terminal {
    launch: Launch,
    pid: Option<u32>,
    master: Box<dyn MasterPty + Send>,
    input: Input,
    shown: Arc<Watched<Shown>>,
}

#[derive(Debug)]
struct Shown {
    screen: Screen,
    /// How the client ended.
    ended: Option<String>,
    /// Nobody holds the terminal any more.
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Enter,
    Escape,
    Tab,
    BackTab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    /// With the control key: `Control('c')`.
    Control(char),
    Character(char),
}

impl Terminal {
    pub(crate) fn start(launch: Launch) -> Result<Self> {
        let pair = native_pty_system().openpty(size(ROWS, COLUMNS)).map_err(broken)?;
        let mut command = CommandBuilder::new(&launch.program);
        command.args(&launch.arguments);
        command.cwd(&launch.folder);
        command.env_clear();
        for (name, value) in &launch.environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).map_err(broken)?;
        // Ours would keep the terminal open after the client's end.
        drop(pair.slave);
        let shown = Arc::new(Watched::new(Shown {
            screen: Screen::new(ROWS, COLUMNS),
            ended: None,
            closed: false,
        }));
        let pid = child.process_id();
        let input = Input::to(pair.master.take_writer().map_err(broken)?)?;
        let reader = pair.master.try_clone_reader().map_err(broken)?;
        spawn("screen", {
            let (shown, input) = (Arc::clone(&shown), input.clone());
            move || watch(reader, &shown, &input)
        })?;
        spawn("client", {
            let shown = Arc::clone(&shown);
            move || await_end(child, &shown)
        })?;
        Ok(Self { launch, pid, master: pair.master, input, shown })
    }

    pub fn screen(&self) -> String {
        self.shown.read(|shown| shown.screen.text())
    }

    /// The window's title, as the client set it.
    pub fn title(&self) -> String {
        self.shown.read(|shown| shown.screen.title().to_owned())
    }

    /// The last bytes the client wrote, with their escape sequences.
    pub fn output(&self) -> Vec<u8> {
        self.shown.read(|shown| shown.screen.output())
    }

    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Waits until the text stands on the screen, on one row.
    pub fn wait_for_text(&self, text: &str) -> Result<String> {
        self.wait_until(&format!("{text:?} on the screen"), |screen| screen.contains(text))
    }

    /// Waits until the text no longer stands on the screen.
    pub fn wait_for_no_text(&self, text: &str) -> Result<String> {
        self.wait_until(&format!("{text:?} to leave the screen"), |screen| !screen.contains(text))
    }

    /// Waits until the screen is as wanted and returns it.
    pub fn wait_until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        self.wait(what, |shown| {
            let text = shown.screen.text();
            wanted(&text).then_some(text)
        })
    }

    pub fn wait_for_title(&self, part: &str) -> Result<String> {
        self.wait(&format!("{part:?} in the title"), |shown| {
            let title = shown.screen.title();
            title.contains(part).then(|| title.to_owned())
        })
    }

    /// Waits for the client's end and says how it ended.
    pub fn wait_for_exit(&self) -> Result<String> {
        let ended = self.shown.wait(WAIT_MAX, |shown| shown.ended.clone());
        ended.ok_or_else(|| self.timed_out("the client's end"))
    }

    pub fn press(&self, key: Key) -> Result<()> {
        self.input.send(key.bytes())
    }

    pub fn type_text(&self, text: &str) -> Result<()> {
        self.input.send(text.as_bytes().to_vec())
    }

    /// Types a prompt, sees it on the screen, and sends it off. In one go the client would take
    /// the end of the line for part of a paste.
    pub fn submit(&self, prompt: &str) -> Result<()> {
        self.type_text(prompt)?;
        let start: String = prompt.chars().take(SUBMIT_SEEN_CHARACTERS).collect();
        self.wait_for_text(&start)?;
        thread::sleep(PASTE_WINDOW);
        self.press(Key::Enter)
    }

    /// Answers a dialog: presses the key, and again while `text` still stands on the screen.
    /// Clients ignore keys in a dialog's first moment, lest they take for an answer what was
    /// typed before it.
    pub fn press_until_gone(&self, key: Key, text: &str) -> Result<()> {
        let presses = WAIT_MAX.as_millis() / PRESS_AGAIN_AFTER.as_millis();
        for _ in 0..presses {
            self.press(key)?;
            let is_gone = |shown: &Shown| (!shown.screen.text().contains(text)).then_some(());
            if self.shown.wait(PRESS_AGAIN_AFTER, is_gone).is_some() {
                return Ok(());
            }
        }
        Err(self.timed_out(&format!("{text:?} to leave the screen")))
    }

    /// Presses the key, and again until `text` stands on the screen: for a client that ignores
    /// keys while it still begins, and to which one too many means nothing.
    pub fn press_until_shown(&self, key: Key, text: &str) -> Result<()> {
        let presses = WAIT_MAX.as_millis() / PRESS_AGAIN_AFTER.as_millis();
        for _ in 0..presses {
            self.press(key)?;
            let is_shown = |shown: &Shown| shown.screen.text().contains(text).then_some(());
            if self.shown.wait(PRESS_AGAIN_AFTER, is_shown).is_some() {
                return Ok(());
            }
        }
        Err(self.timed_out(&format!("{text:?} on the screen")))
    }

    pub fn resize(&self, rows: NonZeroU16, columns: NonZeroU16) -> Result<()> {
        self.shown.change(|shown| shown.screen.resize(rows, columns));
        self.master.resize(size(rows, columns)).map_err(broken)
    }

    /// kill -9 of the client alone: what it started lives on, as it would.
    pub fn kill(&self) -> Result<String> {
        if let (Some(pid), true) = (self.pid, self.is_alive()) {
            process_tree::kill_one(pid).doing(format!("kill {pid}"))?;
        }
        self.wait_for_exit()
    }

    fn is_alive(&self) -> bool {
        self.shown.read(|shown| shown.ended.is_none())
    }

    fn wait<R>(&self, what: &str, look: impl Fn(&Shown) -> Option<R>) -> Result<R> {
        let over = |shown: &Shown| shown.closed && shown.ended.is_some();
        let found = self.shown.wait(WAIT_MAX, |shown| match look(shown) {
            Some(found) => Some(Ok(found)),
            None if over(shown) => Some(Err(self.ended_before(what, shown))),
            None => None,
        });
        found.unwrap_or_else(|| Err(self.timed_out(what)))
    }

    fn ended_before(&self, what: &str, shown: &Shown) -> Error {
        Error::Ended {
            client: self.launch.name.to_owned(),
            ending: shown.ended.clone().unwrap_or_default(),
            what: what.to_owned(),
            seen: shown.screen.text(),
        }
    }

    fn timed_out(&self, what: &str) -> Error {
        Error::TimedOut { what: what.to_owned(), waited: WAIT_MAX, seen: self.screen() }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let root = self.pid.filter(|_| self.is_alive());
        process_tree::kill(&self.launch.marker(), root);
    }
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Terminal")
            .field("client", &self.launch.name)
            .finish_non_exhaustive()
    }
}

impl Key {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Enter => b"\r".to_vec(),
            Self::Escape => b"\x1b".to_vec(),
            Self::Tab => b"\t".to_vec(),
            Self::BackTab => b"\x1b[Z".to_vec(),
            Self::Backspace => b"\x7f".to_vec(),
            Self::Up => b"\x1b[A".to_vec(),
            Self::Down => b"\x1b[B".to_vec(),
            Self::Right => b"\x1b[C".to_vec(),
            Self::Left => b"\x1b[D".to_vec(),
            Self::Control(letter) => vec![(letter.to_ascii_uppercase() as u8) & 0x1f],
            Self::Character(character) => character.to_string().into_bytes(),
        }
    }
}

fn watch(mut reader: Box<dyn Read + Send>, shown: &Watched<Shown>, input: &Input) {
    let mut bytes = [0; 16 << 10];
    // Linux says EIO, others an end of file, when the last holder of the terminal is gone.
    while let Ok(length @ 1..) = reader.read(&mut bytes) {
        let answers = shown.change(|shown| shown.screen.write(&bytes[..length]));
        if !answers.is_empty() {
            // A program that asks and does not read gets no answer; it is shown all the same.
            let _ = input.send(answers);
        }
    }
    shown.change(|shown| shown.closed = true);
}

fn await_end(mut child: Box<dyn Child + Send + Sync>, shown: &Watched<Shown>) {
    let ending = match child.wait() {
        Ok(status) => status.to_string(),
        Err(error) => format!("unknown: {error}"),
    };
    shown.change(|shown| shown.ended = Some(ending));
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map(drop).doing("start a thread for the terminal")
}

fn size(rows: NonZeroU16, columns: NonZeroU16) -> PtySize {
    PtySize { rows: rows.get(), cols: columns.get(), pixel_width: 0, pixel_height: 0 }
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::Terminal(error.to_string())
}

/// Large enough that no dialog scrolls away.
const ROWS: NonZeroU16 = NonZeroU16::new(50).expect("not zero");
const COLUMNS: NonZeroU16 = NonZeroU16::new(140).expect("not zero");

/// A key that was taken shows on the screen long before this.
const PRESS_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A client takes an Enter so soon after a letter for part of a paste; Gemini CLI's window is some
/// forty milliseconds.
const PASTE_WINDOW: Duration = Duration::from_millis(150);

/// How much of a prompt is looked for on the screen; the rest may be wrapped.
const SUBMIT_SEEN_CHARACTERS: usize = 40;
