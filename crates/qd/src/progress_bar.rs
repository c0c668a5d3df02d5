//! How far a reading of session files is, where a person looks.

use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use qd_history::Progress;

/// Runs it, with a bar on standard error while it takes long. Without a terminal nothing is drawn.
pub fn while_drawn(run: impl FnOnce(&Progress)) {
    let progress = Progress::default();
    thread::scope(|scope| {
        let (done, wait) = mpsc::channel::<()>();
        if io::stderr().is_terminal() {
            scope.spawn(|| draw(&progress, wait));
        }
        run(&progress);
        drop(done);
    });
}

fn draw(progress: &Progress, done: mpsc::Receiver<()>) {
    let mut has_drawn = false;
    while done.recv_timeout(DRAW_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
        let found = progress.found.load(Ordering::Relaxed);
        if found == 0 {
            continue;
        }
        let files = progress.files.load(Ordering::Relaxed).min(found);
        let bar = "█".repeat(files * BAR_CHARS / found);
        let megabytes = progress.bytes.load(Ordering::Relaxed) / 1_000_000;
        eprint!("\r{bar:░<BAR_CHARS$} {files} of {found} files, {megabytes} MB ");
        has_drawn = true;
    }
    if has_drawn {
        eprint!("\r\x1b[K");
    }
}

/// Often enough to look alive; a reading that is over before is not drawn at all.
const DRAW_EVERY: Duration = Duration::from_millis(150);

const BAR_CHARS: usize = 30;
