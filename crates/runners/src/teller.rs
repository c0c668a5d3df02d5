//! How a harness reports: in order, and never faster than it is heard.

use std::sync::Arc;

use qd_harness::native::Piece;
use qd_session::id::{SessionId, TurnId};
use qd_session::machine::{AgentError, ErrorCode, ErrorSource};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use qd_broker::driving::Report;

/// Longest text that is joined of pieces which nobody had time for. Beyond it the stream waits.
const HELD_PIECE_BYTES_MAX: usize = 64 << 10;

/// One for each harness that is up.
#[derive(Debug)]
pub struct Teller {
    session: SessionId,
    reports: mpsc::Sender<(SessionId, Report)>,
    /// Pieces that nobody had time for yet, put together.
    held: Option<(TurnId, Piece)>,
    /// It was started for a turn that waits: nobody asks whether it is ready.
    swallows_ready: bool,
}

impl Teller {
    pub fn new(session: SessionId, reports: mpsc::Sender<(SessionId, Report)>) -> Self {
        Self { session, reports, held: None, swallows_ready: false }
    }

    pub fn without_ready(self) -> Self {
        Self { swallows_ready: true, ..self }
    }

    /// Waits until it is taken. Nothing that changes a state is ever dropped.
    pub async fn tell(&mut self, report: Report) {
        if self.swallows_ready && matches!(report, Report::Ready) {
            self.swallows_ready = false;
            return;
        }
        if let Some((turn, piece)) = self.held.take() {
            self.send(Report::Piece { turn, piece }).await;
        }
        self.send(report).await;
    }

    /// Something that the operator should read, although the session goes on.
    pub async fn warn(&mut self, what: impl Into<Arc<str>>) {
        let error = AgentError {
            code: ErrorCode::HarnessFailed,
            message: what.into(),
            retryable: false,
            source: ErrorSource::Harness,
            resets_at: None,
        };
        self.tell(Report::Trouble { error }).await;
    }

    /// A piece of an answer. Does not wait while little is held: texts that pile up are joined.
    pub async fn piece(&mut self, turn: &TurnId, piece: Piece) {
        let whole = match self.held.take() {
            None => piece,
            Some((of, held)) => match joined(&held, &piece).filter(|_| of == *turn) {
                Some(joined) => joined,
                None => {
                    self.send(Report::Piece { turn: of, piece: held }).await;
                    piece
                }
            },
        };
        if text_of(&whole).is_some_and(|text| text.len() > HELD_PIECE_BYTES_MAX) {
            return self.send(Report::Piece { turn: turn.clone(), piece: whole }).await;
        }
        let report = Report::Piece { turn: turn.clone(), piece: whole };
        match self.reports.try_send((self.session.clone(), report)) {
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full((_, report))) => {
                if let Report::Piece { turn, piece } = &report
                    && text_of(piece).is_some()
                {
                    self.held = Some((turn.clone(), piece.clone()));
                } else {
                    self.send(report).await;
                }
            }
        }
    }

    async fn send(&self, report: Report) {
        // Nobody listens once the loop has ended.
        let _ = self.reports.send((self.session.clone(), report)).await;
    }
}

fn text_of(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Text { text } | Piece::Thinking { text } => Some(text),
        Piece::CallArguments { part, .. } => Some(part),
        Piece::Metadata { .. } | Piece::Usage(_) | Piece::End { .. } | Piece::Failed(_) => None,
    }
}

/// Two pieces of the same kind as one.
fn joined(first: &Piece, second: &Piece) -> Option<Piece> {
    let both = |a: &str, b: &str| -> Arc<str> { format!("{a}{b}").into() };
    match (first, second) {
        (Piece::Text { text: a }, Piece::Text { text: b }) => {
            Some(Piece::Text { text: both(a, b) })
        }
        (Piece::Thinking { text: a }, Piece::Thinking { text: b }) => {
            Some(Piece::Thinking { text: both(a, b) })
        }
        (
            Piece::CallArguments { call, tool, part: a },
            Piece::CallArguments { call: same, part: b, .. },
        ) if call == same => {
            let (call, tool) = (call.clone(), tool.clone());
            Some(Piece::CallArguments { call, tool, part: both(a, b) })
        }
        (
            Piece::Text { .. }
            | Piece::Thinking { .. }
            | Piece::CallArguments { .. }
            | Piece::Metadata { .. }
            | Piece::Usage(_)
            | Piece::End { .. }
            | Piece::Failed(_),
            _,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(reports: &mut mpsc::Receiver<(SessionId, Report)>) -> Vec<String> {
        let told = std::iter::from_fn(|| reports.try_recv().ok());
        let text = |report: Report| {
            if let Report::Piece { piece, .. } = &report {
                text_of(piece).unwrap_or_default().to_owned()
            } else {
                format!("{report:?}")
            }
        };
        told.map(|(_, report)| text(report)).collect()
    }

    #[tokio::test]
    async fn texts_that_nobody_takes_are_joined_and_come_before_what_follows() {
        let (sender, mut reports) = mpsc::channel(1);
        let mut teller = Teller::new("sess_1".into(), sender);
        let turn = TurnId::new("turn_1");
        for text in ["a", "b", "c"] {
            teller.piece(&turn, Piece::Text { text: text.into() }).await;
        }
        assert_eq!(texts(&mut reports), ["a"]);
        let told = async { teller.tell(Report::Exited { code: Some(0), why: None }).await };
        let heard = async {
            let mut heard = Vec::new();
            while heard.len() < 2 {
                tokio::task::yield_now().await;
                heard.extend(texts(&mut reports));
            }
            heard
        };
        let ((), heard) = tokio::join!(told, heard);
        assert_eq!(heard, ["bc", "Exited { code: Some(0), why: None }"]);
    }

    #[tokio::test]
    async fn one_that_was_started_for_a_turn_is_not_announced() {
        let (sender, mut reports) = mpsc::channel(4);
        let mut teller = Teller::new("sess_1".into(), sender).without_ready();
        teller.tell(Report::Ready).await;
        teller.tell(Report::Ready).await;
        assert_eq!(texts(&mut reports), ["Ready"]);
    }
}
