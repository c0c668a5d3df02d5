//! How fast the pure crate is, and what a million sessions need (P14).
//!
//! `cargo bench -p qd-session`. Ratios count, not absolutes: the machine is shared.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench needs a clock")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use qd_session::Session;
use qd_session::event::{Entry, Event as Journaled};
use qd_session::id::{CallId, SessionId, ToolName};
use qd_session::machine::{
    Event, Judged, Machine, Process, Setup, Stimulus, ToolCall, ToolOutcome, Tools, Verdict,
};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact, Monitor};
use qd_session::operator::resolve;
use qd_session::seed::Seed;

/// Counts what is allocated, so that bytes a session is a measurement and not a guess.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is handed to the system's allocator as it came; only a counter is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: it was allocated above with the same layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    transitions();
    observations();
    resolutions();
    a_million_sessions();
}

fn per_second(what: &str, count: u64, work: impl FnOnce()) {
    let begun = Instant::now();
    work();
    let seconds = begun.elapsed().as_secs_f64();
    println!("{what}: {:.2} M/s", count as f64 / seconds / 1e6);
}

/// Turns of one tool each, through the whole machine.
fn transitions() {
    let id = SessionId::from("sess_bench");
    let setup = Setup { tools: Tools::Ours, process: Process::WholeSession, hooks: Vec::new() };
    let mut machine = Machine::new(id.clone(), setup);
    let mut sent = 0_u64;
    let mut send = |machine: &mut Machine, event: Event| {
        sent += 1;
        let session = id.clone();
        let stimulus = Stimulus { session, at: Timestamp(sent), seed: Seed(sent), event };
        black_box(machine.handle(&stimulus));
    };
    send(&mut machine, Event::Spawned);
    send(&mut machine, Event::HarnessReady);
    send(&mut machine, Event::UserInput { text: "go".into() });
    let turns = 200_000_u64;
    per_second("driven: transitions", turns * 4, || {
        for _ in 0..turns {
            let turn = machine.state().turn().expect("a turn").id.clone();
            let end = Event::StreamCompleted { turn: turn.clone(), text: None, cut_off: false };
            send(&mut machine, end);
            let call = ToolCall {
                call_id: CallId::from("call_1"),
                name: ToolName::from("read_file"),
                arguments: serde_json::Value::Null,
                mutating: false,
            };
            let calls = vec![Judged { call, verdict: Verdict::Allow }];
            send(&mut machine, Event::ResponseParsed { turn, calls });
            let qd_session::machine::State::ExecutingTools { batch, .. } = machine.state() else {
                panic!("tools run")
            };
            let run = batch.runs()[0].id.clone().expect("it was ordered");
            send(&mut machine, Event::ToolStarted { run: run.clone() });
            let outcome = ToolOutcome::Succeeded { output: "ok".into(), is_error: false };
            send(&mut machine, Event::ToolFinished { run, outcome });
        }
    });
}

fn turn(at: u64, call: &CallId) -> [AgentEvent; 4] {
    let main = |ms, fact| AgentEvent::main(Timestamp(at + ms), Source::Hook, fact);
    [
        main(0, Fact::TurnStarted),
        main(
            1,
            Fact::ToolStarted { call: call.clone(), tool: ToolName::from("Bash"), about: None },
        ),
        main(2, Fact::ToolCompleted { call: call.clone(), ok: true, exit_code: None }),
        main(3, Fact::TurnCompleted { last_message: None, background: None, cut_off: false }),
    ]
}

fn observations() {
    let mut monitor = Monitor::default();
    let call = CallId::from("toolu_01");
    let turns = 500_000_u64;
    per_second("observed: events", turns * 4, || {
        for nth in 0..turns {
            for event in turn(nth * 10, &call) {
                monitor.apply(black_box(&event));
            }
        }
    });
}

fn resolutions() {
    let mut monitor = Monitor::default();
    for event in &turn(10, &CallId::from("toolu_01"))[..2] {
        monitor.apply(event);
    }
    let looks = 1_000_000_u64;
    per_second("operator: resolutions", looks, || {
        for nth in 0..looks {
            black_box(resolve(Timestamp(nth), black_box(&monitor)));
        }
    });
}

/// A million observed sessions, each in the middle of a turn with a tool running.
fn a_million_sessions() {
    let count = 1_000_000;
    let tool = ToolName::from("Bash");
    let before = LIVE.load(Ordering::Relaxed);
    let begun = Instant::now();
    let sessions: Vec<Session> = (0..count)
        .map(|nth| {
            let id = SessionId::from(format!("sess_{nth:032x}").as_str());
            let mut session = Session::new(id.clone());
            let call = CallId::from(format!("toolu_{nth:024x}").as_str());
            let facts = [
                Fact::UserPrompt { text: Some(format!("prompt number {nth}").into()) },
                Fact::TurnStarted,
                Fact::ToolStarted { call, tool: tool.clone(), about: None },
            ];
            for (ms, fact) in facts.into_iter().enumerate() {
                let event = AgentEvent::main(Timestamp(ms as u64 + 1), Source::Hook, fact);
                let at = event.at;
                session.apply(&Entry::new(id.clone(), at, Journaled::Observed { event }));
            }
            session
        })
        .collect();
    let bytes = LIVE.load(Ordering::Relaxed) - before;
    println!(
        "P14: {} bytes a session, {count} sessions in {:.2} GB, made in {:.1} s \
         (target 1 GB: {:.2} of it)",
        bytes / count,
        bytes as f64 / 1e9,
        begun.elapsed().as_secs_f64(),
        bytes as f64 / 1e9,
    );
    black_box(sessions);
}
