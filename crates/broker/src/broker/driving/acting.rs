//! What the operator does to a session that we drive: on record, then told to its machine, in one
//! batch of the journal.

use qd_session::decision::{Command, Standing};
use qd_session::event::Entry;
use qd_session::id::SessionId;
use qd_session::machine::{Event, PauseCause, State, transition};
use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;
use qd_session::seed::Seed;

use super::{Heard, unknown_ground};
use crate::broker::{Broker, Output};
use crate::desk::{Carried, Commanding, Declined, Errand, Taken, Task};
use crate::driven_answer::command_event;
use crate::rules::Judge;

/// Why a command means nothing now, and the event that says so to everybody.
struct Unable {
    why: Declined,
    event: Option<Event>,
}

impl Broker {
    pub(in crate::broker) fn command_driven(
        &mut self,
        now: Timestamp,
        commanding: Commanding,
    ) -> (Result<Taken, Declined>, Vec<Output>) {
        let session = commanding.session.clone();
        let mut outputs = Vec::new();
        let event = match self.event_of(now, &session, &commanding.command) {
            Ok(event) => event,
            Err(unable) => {
                let Unable { why, event } = *unable;
                if let Some(before) = self.desk.repeated(&commanding) {
                    return (Ok(before), outputs);
                }
                // Whoever follows the session hears of it, too.
                if let Some(event) = event {
                    self.drive(now, &session, event, &mut outputs);
                }
                return (Err(why), outputs);
            }
        };
        self.note_watcher(&session);
        let mut desk_outputs = Vec::new();
        let task = Task::Drive { session: session.clone(), events: vec![event] };
        let taken = self.desk.command(now, commanding, task, &mut desk_outputs);
        self.pass_on(desk_outputs, &mut outputs);
        self.carry_to_machines(now, &mut outputs);
        (taken, outputs)
    }

    /// What a command means where the session is; why it is not possible, and the event that says
    /// so to everybody.
    fn event_of(
        &self,
        now: Timestamp,
        session: &SessionId,
        command: &Command,
    ) -> Result<Event, Box<Unable>> {
        let impossible = |why: &str| {
            let why = Declined::Impossible { why: why.to_owned() };
            Box::new(Unable { why, event: None })
        };
        let event = command_event(command).map_err(impossible)?;
        let (machine, logbook) =
            self.driven(session).ok_or_else(|| impossible("it is not driven from here"))?;
        if let Command::Yolo { on: true } = command {
            let known = self.drives.sessions.get(session).and_then(|it| it.tightening.clone());
            let tightening = &known.unwrap_or_else(unknown_ground);
            let judge = Judge { policy: &self.ruling.policy, logbook, tightening };
            if judge.is_yolo_forbidden() {
                let why = Declined::Forbidden { why: YOLO_FORBIDDEN.to_owned() };
                return Err(Box::new(Unable { why, event: None }));
            }
        }
        match transition(machine.setup(), machine.state(), now, Seed(0), &event) {
            Ok(_) => Ok(event),
            Err(_) => {
                let kind = machine.state().kind();
                let why = format!("{} is not possible in {kind:?}", event.name());
                let why = Declined::Impossible { why };
                Err(Box::new(Unable { why, event: Some(event) }))
            }
        }
    }

    /// Decisions that are for machines take effect in the batch that puts them on record.
    pub(in crate::broker) fn carry_to_machines(
        &mut self,
        now: Timestamp,
        outputs: &mut Vec<Output>,
    ) {
        while let Some(Errand { decision, task }) = self.drives.errands.pop() {
            let way = task.way();
            let Task::Drive { session, events } = task else { continue };
            let carried = self.carry_events(now, &session, events, outputs);
            let mut desk_outputs = Vec::new();
            self.desk.carried(now, &decision, &way, &carried, &mut desk_outputs);
            // The machine waits no more: that closes the request.
            self.pass_on(desk_outputs, outputs);
            self.look_at_requests(now, &session, outputs);
            let standing = self.desk.standing(&decision).cloned();
            let standing = standing.unwrap_or(Standing::Unclear);
            outputs.push(Output::Settled(Taken { decision, standing }));
            self.show(now, &session, outputs);
        }
    }

    fn carry_events(
        &mut self,
        now: Timestamp,
        session: &SessionId,
        events: Vec<Event>,
        outputs: &mut Vec<Output>,
    ) -> Carried {
        for (nth, event) in events.into_iter().enumerate() {
            self.note_word(now, session, &event, outputs);
            match self.drive(now, session, event, outputs) {
                Heard::Taken => {}
                // What follows an answer may be needless by then.
                Heard::Late | Heard::Refused if nth > 0 => {}
                Heard::Late | Heard::Refused => {
                    return Carried::Failed { why: "the session waits for it no more".to_owned() };
                }
            }
        }
        Carried::Delivered
    }

    /// What the operator's words change besides the machine's state.
    fn note_word(
        &mut self,
        now: Timestamp,
        session: &SessionId,
        event: &Event,
        outputs: &mut Vec<Output>,
    ) {
        if let Event::UserInput { text } = event {
            self.note(now, session, Fact::UserPrompt { text: Some(text.clone()) }, outputs);
        }
        let paused = self.driven(session).map(|(machine, _)| machine.state());
        let is_spent = matches!(paused, Some(State::Paused { cause: PauseCause::Budget, .. }));
        if matches!(event, Event::ResumeRequested) && is_spent && self.is_budget_spent(now, session)
        {
            // They know, and want it to go on: until as much again is spent.
            let seen = self.budget_seen(now, session);
            self.journal(session, Entry::new(session.clone(), now, seen), outputs);
        }
    }

    /// Whoever writes or presses something is watching.
    pub(in crate::broker) fn note_watcher(&mut self, session: &SessionId) {
        if let Some(drive) = self.drives.sessions.get_mut(session) {
            drive.unwatched = 0;
        }
    }
}

const YOLO_FORBIDDEN: &str = "the project forbids to allow everything";
