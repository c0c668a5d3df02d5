//! What goes through a warden: its lifeline, what the program reads, and its last words.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{ChildStderr, ChildStdin};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::captured::Captured;
use super::job::Input;
use super::limits::{LAST_WORDS_BYTES_MAX, OUTPUT_END_WAIT};
use super::post::Happened;

/// Tells when the lifeline is cut, also while a program that does not read keeps [`feed`] waiting.
pub(super) fn watch(lifeline: &File, tell: Sender<Happened>) -> io::Result<()> {
    let lifeline = lifeline.try_clone()?;
    thread::spawn(move || {
        // A pipe says by itself that its other end is closed, whatever is asked for.
        while poll(&mut [PollFd::new(&lifeline, PollFlags::empty())], None) == Err(Errno::INTR) {}
        // The program may have ended before.
        let _ = tell.send(Happened::LetGo);
    });
    Ok(())
}

/// Gives the program what it reads, and reads on where it does not: who writes must not wait for it.
pub(super) fn feed(input: Input, stdin: Option<ChildStdin>, mut lifeline: File) {
    let Some(mut stdin) = stdin else { return };
    thread::spawn(move || {
        // A program need not read what it is given.
        let _ = match input {
            Input::Nothing => Ok(()),
            Input::Text(text) => stdin.write_all(text.as_bytes()),
            Input::Following => io::copy(&mut lifeline, &mut stdin).map(drop),
            Input::Pieces => hand_on(&mut lifeline, &mut stdin),
        };
        drop(stdin);
        let _ = io::copy(&mut lifeline, &mut io::sink());
    });
}

/// Until an empty piece.
fn hand_on(lifeline: &mut File, stdin: &mut ChildStdin) -> io::Result<()> {
    loop {
        let mut len = [0; 4];
        lifeline.read_exact(&mut len)?;
        match u32::from_be_bytes(len) {
            0 => return Ok(()),
            len => io::copy(&mut lifeline.take(u64::from(len)), stdin)?,
        };
    }
}

/// The end of what a program writes to its standard error.
pub(super) struct LastWords {
    kept: Arc<Mutex<Captured>>,
    over: Receiver<()>,
}

impl LastWords {
    pub fn of(stderr: Option<ChildStderr>) -> Self {
        let kept = Arc::new(Mutex::new(Captured::new(0, LAST_WORDS_BYTES_MAX)));
        let (listening, over) = mpsc::channel::<()>();
        if let Some(mut stderr) = stderr {
            let kept = Arc::clone(&kept);
            thread::spawn(move || {
                let mut bytes = [0; 8192];
                while let Ok(len @ 1..) = stderr.read(&mut bytes) {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).take(&bytes[..len]);
                }
                drop(listening);
            });
        }
        Self { kept, over }
    }

    /// What it said, when nobody is left who could say more.
    pub fn text(self) -> String {
        // Somebody else may have been handed the pipe.
        let _ = self.over.recv_timeout(OUTPUT_END_WAIT);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).text().trim().to_owned()
    }
}
