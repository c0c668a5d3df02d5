//! The board in a terminal: a real one, of which we hold the other end.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::world::{GENEROUS, World};

struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<(Mutex<String>, Condvar)>,
}

impl Terminal {
    fn new(world: &World, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).expect("ours");
        unlockpt(&ours).expect("open");
        let name = ptsname(&ours, Vec::new()).expect("its name");
        let theirs = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
        let theirs = File::from(theirs.expect("their end"));
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size).expect("sized");
        let mut command = world.qd(arguments);
        command.env("TERM", "xterm").envs(variables.iter().copied());
        command.stdin(Stdio::from(theirs.try_clone().expect("cloned")));
        command.stdout(Stdio::from(theirs.try_clone().expect("cloned")));
        command.stderr(Stdio::from(theirs));
        let child = command.spawn().expect("it starts");
        drop(command);
        let keys = File::from(ours);
        let mut screen = keys.try_clone().expect("cloned");
        let shown = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let filled = shown.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of a terminal is an error.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                let mut text = filled.0.lock().expect("not poisoned");
                text.push_str(&String::from_utf8_lossy(&bytes[..count]));
                filled.1.notify_all();
            }
        });
        Self { child, keys, shown }
    }

    /// Waits until it has shown a word since the last time, and forgets what was before. A word:
    /// between two of them the cursor may move.
    #[track_caller]
    fn shows(&self, word: &str) {
        let (text, changed) = &*self.shown;
        let guard = text.lock().expect("not poisoned");
        let waited = changed.wait_timeout_while(guard, GENEROUS, |text| !text.contains(word));
        let (mut text, late) = waited.expect("not poisoned");
        assert!(!late.timed_out(), "no {word:?} in {text:?}");
        let end = text.find(word).expect("it was found") + word.len();
        text.drain(..end);
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("pressed");
    }

    fn ended(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

/// What gives the terminal back: the ordinary screen, and the cursor.
const RESTORED: &str = "\u{1b}[?1049l";

#[test]
fn the_board_follows_sessions_and_answers_keys() {
    let world = World::new();
    let _daemon = world.daemon();
    let mut terminal = Terminal::new(&world, &["watch"], &[]);
    terminal.shows("Quarterdeck");
    world.agent_starts("s-1");
    world.agent_asks("s-1");
    terminal.shows("permission:");
    terminal.shows("build");
    terminal.press("\r");
    terminal.shows("evidence");
    terminal.press("e");
    terminal.shows("dismissed");
    terminal.press("q");
    terminal.shows(RESTORED);
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn the_board_comes_back_to_a_daemon_that_was_restarted() {
    let world = World::new();
    let daemon = world.daemon();
    world.agent_starts("s-1");
    let terminal = Terminal::new(&world, &["watch"], &[]);
    terminal.shows("claude_code");
    assert_eq!(daemon.stop(Signal::KILL), None);
    terminal.shows("gone;");
    let _daemon = world.daemon();
    terminal.shows("back");
    kill_process(terminal.pid(), Signal::TERM).expect("it runs");
    terminal.shows(RESTORED);
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn colours_can_be_turned_off() {
    let world = World::new();
    let _daemon = world.daemon();
    world.agent_starts("s-1");
    let mut terminal = Terminal::new(&world, &["watch"], &[("NO_COLOR", "1")]);
    terminal.shows("claude_code");
    terminal.press("q");
    let text = terminal.shown.0.lock().expect("not poisoned").clone();
    assert!(!text.contains("\u{1b}[38;"), "{text:?}");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn the_demo_shows_its_board_and_cleans_up() {
    let world = World::new();
    let mut terminal = Terminal::new(&world, &["demo", "--speed", "20"], &[]);
    terminal.shows("claude_code");
    terminal.press("q");
    terminal.shows(RESTORED);
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(std::fs::read_dir(world.path("tmp")).expect("a folder").count(), 0);
}

#[test]
fn without_a_terminal_it_suggests_status() {
    let world = World::new();
    let _daemon = world.daemon();
    let outcome = world.run(&["watch"]).expect(1);
    assert!(outcome.err.contains("qd status"), "{outcome:?}");
}
