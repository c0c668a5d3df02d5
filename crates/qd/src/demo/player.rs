//! One recording, played over and over: it waits where the operator was asked.
//!
//! An answer lets it go on at once, as it went on then, whatever the answer is; nobody is told of
//! it. Without one it goes on by itself.

use std::sync::Arc;
use std::time::Duration;

use qd_daemon::runtime::{Handle, RawSignal};
use qd_harness::capture::Recorded;
use qd_host::now;
use qd_session::moment::Timestamp;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::{sleep, timeout};

use super::captures::{Cue, Embedded};
use super::round::renamed;
use super::shift::Shift;

/// How long an answer is waited for. Longer than it takes to read a request, and short enough for a
/// board that nobody touches to stay alive.
const HOLD: Duration = Duration::from_secs(30);

/// How long a session rests before it is played again.
const REST: Duration = Duration::from_secs(12);

#[derive(Debug)]
pub struct Player {
    capture: &'static Embedded,
    handle: Handle,
    speed: f64,
    sessions: Vec<String>,
    /// The sessions that are answered, of all recordings.
    answers: Receiver<Arc<str>>,
    /// What is asked now has its answer.
    is_answered: bool,
}

impl Player {
    pub fn of(
        capture: &'static Embedded,
        handle: Handle,
        speed: f64,
        answers: Receiver<Arc<str>>,
    ) -> Self {
        let sessions = capture.sessions();
        Self { capture, handle, speed, sessions, answers, is_answered: false }
    }

    /// Until the daemon has gone.
    pub async fn run(mut self) {
        let signals = self.capture.signals();
        let cues = self.capture.cues();
        for round in 0.. {
            if self.play(&signals, &cues, round).await.is_none() {
                return;
            }
            sleep(REST.div_f64(self.speed)).await;
        }
    }

    /// None once nobody listens.
    async fn play(&mut self, signals: &[Recorded], cues: &[Cue], round: u32) -> Option<()> {
        let mut before_ms = signals.first()?.at_ms;
        let mut shift = Shift::new(before_ms, now().0, self.speed);
        for (recorded, cue) in signals.iter().zip(cues) {
            let Some(signal) = recorded.signal() else { continue };
            if self.leaves_its_time(*cue, shift.moment(recorded.at_ms)).await {
                shift.turn(before_ms, recorded.at_ms, now().0);
            }
            before_ms = recorded.at_ms;
            let at = Timestamp(shift.moment(recorded.at_ms));
            sleep(Duration::from_millis(at.ms_since(now()))).await;
            let payload = shift.text(&String::from_utf8_lossy(signal.payload));
            let played = RawSignal {
                harness: self.capture.harness(),
                at,
                seq: signal.seq,
                channel: signal.channel,
                direction: signal.direction,
                // Two recordings may have files of one name.
                file: signal.file.map(|file| format!("{}/{file}", self.capture.name)),
                payload: renamed(&payload, round, &self.sessions).into_bytes(),
            };
            self.handle.play(played).await.ok()?;
        }
        Some(())
    }

    /// Waits while the operator is asked. True if the next signal comes now and not when it did.
    async fn leaves_its_time(&mut self, cue: Cue, at_ms: u64) -> bool {
        let until = Duration::from_millis(Timestamp(at_ms).ms_since(now()));
        match cue {
            Cue::Unasked => {
                // An answer that came too late is not one to what is asked next.
                self.answers = self.answers.resubscribe();
                self.is_answered = false;
                false
            }
            Cue::Asked => {
                self.is_answered =
                    self.is_answered || timeout(until, self.answered()).await.is_ok();
                self.is_answered
            }
            Cue::Answers => {
                if !self.is_answered {
                    // Whether in time or not: it goes on.
                    let _ = timeout(until + HOLD, self.answered()).await;
                }
                self.is_answered = false;
                true
            }
        }
    }

    /// A session of this recording is answered, or nobody can answer any more.
    async fn answered(&mut self) {
        loop {
            match self.answers.recv().await {
                Ok(session) if self.sessions.iter().any(|own| **own == *session) => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }
}
