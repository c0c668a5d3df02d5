//! What an agent tells, with the turn that it belongs to.

use qd_broker::driving::Report;
use qd_harness::driver::{Command, Delta, Report as Driven};
use qd_harness::native::{Piece, StopReason};
use qd_host::process_table::ProcessTable;
use qd_host::processes;
use qd_session::decision::Decision;
use qd_session::id::{ProcessKey, TurnId};
use qd_session::logbook::Frozen;
use qd_session::machine::Process;
use tracing::debug;

use super::answering::Asked;
use super::{AgentHarness, What};
use crate::agents::limits::UNRECOGNISED_TOLD_MAX;
use crate::agents::{Exit, Told};

impl AgentHarness {
    pub(super) async fn hear(&mut self, told: Told) {
        match told {
            Told::Started { pid, start } => {
                let main = processes::Process { pid, start };
                self.main = Some(main);
                self.process_turn = self.turn.clone();
                let process = main.key();
                self.tell.tell(Report::Process { process }).await;
            }
            Told::Report(report) => self.report(report).await,
            Told::Exited(exit) => {
                if let Some(main) = self.main.take() {
                    self.tell.tell(Report::ProcessEnded { process: main.key() }).await;
                }
                // The end of a turn's process, if it has not told the turn's end; a probe's says
                // nothing, and that of the session is told when we end.
                let turn = self.process_turn.take();
                if self.process == Process::OneTurn && turn.is_some() && turn == self.turn {
                    let Exit { code, error } = exit.clone();
                    self.tell.tell(Report::Exited { code, why: error }).await;
                    self.turn_over();
                }
                self.exit = Some(exit);
            }
        }
    }

    /// Some clients start themselves once more: what that process does is theirs, too.
    async fn tell_kin(&mut self) {
        let Some(main) = self.main else { return };
        let kin = tokio::task::spawn_blocking(move || ProcessTable::read().descendants(main)).await;
        let processes: Vec<ProcessKey> =
            kin.unwrap_or_default().into_iter().map(processes::Process::key).collect();
        if !processes.is_empty() {
            self.tell.tell(Report::Kin { processes }).await;
        }
    }

    async fn report(&mut self, report: Driven) {
        match report {
            Driven::Ready => {
                self.is_ready = true;
                self.tell_kin().await;
                self.tell.tell(Report::Ready).await;
                self.turn_over();
            }
            Driven::VendorSession { id } => self.tell.tell(Report::VendorSession { id }).await,
            Driven::Spent(spending) => self.spent.take(&spending),
            Driven::Refused { what, why } => {
                self.tell.warn(format!("the agent refused to {what}: {why}")).await;
            }
            Driven::Version { version } => self.tell.tell(Report::Version { version }).await,
            Driven::Unrecognised { text } => {
                debug!(%text, "an agent's line is not known");
                self.unrecognised += 1;
                if self.unrecognised <= UNRECOGNISED_TOLD_MAX {
                    self.tell.tell(Report::Unrecognised { text }).await;
                }
            }
            Driven::ModeChanged { mode } => debug!(%mode, "an agent's mode"),
            // It has none of its own that could be told apart from ours.
            Driven::Woke => debug!("an agent began to work by itself"),
            Driven::Completed { .. } | Driven::Failed(_)
                if self.turn.is_some() && !self.is_taken =>
            {
                debug!("an agent ended something that nobody had asked it for");
            }
            Driven::Delta(_)
            | Driven::Alive
            | Driven::Completed { .. }
            | Driven::Failed(_)
            | Driven::ToolReported(_)
            | Driven::ToolEnded { .. }
            | Driven::ApprovalAsked(_)
            | Driven::QuestionAsked(_)
            | Driven::RequestWithdrawn { .. }
            | Driven::BatchHeld => match self.turn.clone() {
                Some(turn) => self.of_turn(turn, report).await,
                None => self.unasked(&report),
            },
        }
    }

    async fn of_turn(&mut self, turn: TurnId, report: Driven) {
        let report = match report {
            Driven::Delta(Delta::Text(text)) => {
                return self.tell.piece(&turn, Piece::Text { text }).await;
            }
            Driven::Delta(Delta::Thinking(text)) => {
                return self.tell.piece(&turn, Piece::Thinking { text }).await;
            }
            Driven::Alive => Report::Alive { turn },
            Driven::Completed { text, cut_off } => {
                let frozen = Some(Box::new(Frozen { used: self.spent.end(), ..Frozen::default() }));
                let stop = if cut_off { StopReason::Length } else { StopReason::Done };
                self.tell.tell(Report::Completed { turn, text, stop, frozen }).await;
                return self.turn_over();
            }
            Driven::Failed(trouble) => {
                let (failure, used) = (None, self.spent.end());
                self.tell.tell(Report::Failed { turn, trouble, failure, used }).await;
                return self.turn_over();
            }
            Driven::ToolReported(call) => Report::ToolReported { turn, call },
            Driven::ToolEnded { call, is_error, output } => {
                Report::ToolEnded { turn, call, is_error, output }
            }
            Driven::ApprovalAsked(call) => {
                self.note_asked(Asked::Approval(call.clone()));
                Report::ApprovalAsked { turn, call }
            }
            Driven::QuestionAsked(call) => {
                self.note_asked(Asked::Question(call.clone()));
                Report::QuestionAsked { turn, call }
            }
            Driven::RequestWithdrawn { call } => Report::Withdrawn { turn, call },
            Driven::BatchHeld => Report::BatchHeld { turn },
            Driven::Ready
            | Driven::VendorSession { .. }
            | Driven::Version { .. }
            | Driven::Woke
            | Driven::Spent(_)
            | Driven::ModeChanged { .. }
            | Driven::Refused { .. }
            | Driven::Unrecognised { .. } => return,
        };
        self.tell.tell(report).await;
    }

    /// An agent that works although nobody asked it to must not wait for an answer that nobody
    /// is asked for.
    fn unasked(&mut self, report: &Driven) {
        match report {
            Driven::ApprovalAsked(call) | Driven::QuestionAsked(call) => {
                let message = "Nobody is there to decide this now; say what you need and stop.";
                let decision =
                    Decision::Deny { message: Some(message.to_owned()), interrupt: false };
                let call = call.call_id.clone();
                let what = What::Other("refuse what nobody asked for");
                self.give(Command::Decide { call, decision }, what);
            }
            Driven::BatchHeld => self.give(Command::Release, What::Other("release")),
            Driven::Completed { .. } | Driven::Failed(_) => self.turn_over(),
            Driven::Delta(_)
            | Driven::Alive
            | Driven::ToolReported(_)
            | Driven::ToolEnded { .. }
            | Driven::RequestWithdrawn { .. }
            | Driven::Ready
            | Driven::VendorSession { .. }
            | Driven::Version { .. }
            | Driven::Woke
            | Driven::Spent(_)
            | Driven::ModeChanged { .. }
            | Driven::Refused { .. }
            | Driven::Unrecognised { .. } => {}
        }
    }
}
