//! What holds for any sequence of events.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use qd_session::id::{AgentId, CallId, RequestId, ToolName};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact, Monitor, Stage};
use qd_session::operator::{next_look, resolve};
use qd_session::view::monitor::view;

use super::grammar::{NAMES, event};

const SOURCES: [Source; 5] =
    [Source::Process, Source::Otel, Source::Transcript, Source::Hook, Source::Registry];

/// What a call is about, and what it returns: layers keep a digest of both.
const DEEDS: [(&str, &str, Option<i32>); 5] = [
    ("Bash", "cargo test", Some(1)),
    ("Bash", "git commit -m x && gh pr create", Some(0)),
    ("Write", "/w/a.md", None),
    ("Edit", "/w/a.rs", None),
    ("Bash", "make", Some(2)),
];

fn do_deed(event: &mut AgentEvent, (name, text, returned): (&str, &str, Option<i32>)) {
    match &mut event.fact {
        Fact::ToolStarted { tool, about, .. } => {
            (*tool, *about) = (ToolName::from(name), Some(text.into()));
        }
        Fact::ToolCompleted { exit_code, .. } => *exit_code = returned,
        _ => {}
    }
}

/// An event of any kind, of one of two agents, at one of a few moments: ties are wanted.
fn any_event() -> impl Strategy<Value = AgentEvent> {
    let names: Vec<&str> = NAMES.into_iter().filter(|name| *name != "unrecognised").collect();
    let deed = select(&DEEDS[..]);
    (select(names), 0..40_u64, 0..2_u32, select(&SOURCES[..]), any::<bool>(), deed).prop_map(
        |(name, at, seq, source, of_sub, deed)| {
            let mut event = event(name, Timestamp(1_000_000 + at * 500));
            event.seq = seq;
            event.source = source;
            do_deed(&mut event, deed);
            if of_sub {
                event.agent = AgentId::sub("sub");
                rename_requests(&mut event);
            }
            event
        },
    )
}

fn told(events: &[AgentEvent]) -> Monitor {
    let mut monitor = Monitor::default();
    events.iter().for_each(|event| monitor.apply(event));
    monitor
}

fn bytes(monitor: &Monitor) -> String {
    serde_json::to_string(monitor).expect("a monitor is JSON")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// Late, doubled and shuffled events end in the same state as the ordered ones.
    #[test]
    fn the_order_of_arrival_does_not_matter(
        events in prop::collection::vec(any_event(), 0..24),
        order in prop::collection::vec(any::<Index>(), 48),
    ) {
        let mut ordered = events.clone();
        ordered.sort_by_key(AgentEvent::stamp);
        let mut shuffled = events;
        for at in &order {
            if !shuffled.is_empty() {
                let doubled = at.get(&shuffled).clone();
                let to = at.index(shuffled.len());
                shuffled.insert(to / 2, doubled);
                let last = shuffled.len() - 1;
                shuffled.swap(to, last);
            }
        }
        prop_assert_eq!(bytes(&told(&ordered)), bytes(&told(&shuffled)));
    }

    /// No event of another agent closes a request.
    #[test]
    fn another_agent_cannot_close_a_request(
        events in prop::collection::vec(any_event(), 0..24),
    ) {
        let of_sub = events.into_iter().map(|mut event| {
            event.agent = AgentId::sub("sub");
            rename_requests(&mut event);
            event
        });
        let mut monitor = told(&[
            event("turn_started", Timestamp(1)),
            event("approval_requested", Timestamp(2)),
        ]);
        let session_facts = |event: &AgentEvent| {
            matches!(
                event.fact,
                Fact::SessionEnded { .. } | Fact::ProcessGone { .. } | Fact::ProcessSeen { .. }
            )
        };
        for event in of_sub.filter(|event| !session_facts(event)) {
            monitor.apply(&event);
            let open = monitor.open_requests().any(|open| {
                open.agent.is_main() && open.stage == Stage::Waiting
            });
            prop_assert!(open, "closed by {:?}", event);
        }
    }

    /// A snapshot in the middle changes nothing, and reading never panics or depends on reading.
    #[test]
    fn a_snapshot_goes_on_as_if_nothing_had_happened(
        before in prop::collection::vec(any_event(), 0..12),
        after in prop::collection::vec(any_event(), 0..12),
        later in 0..2_000_000_u64,
    ) {
        let live = told(&[before.clone(), after.clone()].concat());
        let snapshot = bytes(&told(&before));
        let mut restored: Monitor = serde_json::from_str(&snapshot).expect("it was just written");
        after.iter().for_each(|event| restored.apply(event));
        prop_assert_eq!(bytes(&restored), bytes(&live));
        let now = Timestamp(1_000_000 + later);
        prop_assert_eq!(resolve(now, &restored), resolve(now, &live));
        let _ = view(&live);
    }

    /// Between two looks nothing changes: whoever waits for `next_look` misses nothing.
    #[test]
    fn nothing_changes_before_the_next_look(
        events in prop::collection::vec(any_event(), 1..16),
        waits in prop::collection::vec(1..700_000_u64, 1..6),
    ) {
        let monitor = told(&events);
        let mut now = monitor.last_signal();
        for wait in waits {
            let shown = resolve(now, &monitor);
            prop_assert!(!shown.rule.is_empty(), "a state without a rule: {:?}", shown);
            let look = next_look(now, &monitor);
            let then = now.plus_ms(wait);
            let quiet = look.is_none_or(|look| then < look);
            if quiet {
                prop_assert!(resolve(then, &monitor).looks_like(&shown), "{:?}", look);
            }
            now = then;
        }
    }

    #[test]
    fn an_event_comes_back_from_the_wire_as_it_was(event in any_event()) {
        let wire = serde_json::to_string(&event).expect("an event is JSON");
        let back: AgentEvent = serde_json::from_str(&wire).expect("it was just written");
        prop_assert_eq!(back, event);
    }
}

/// The subagent's requests and calls are its own: a request's id names one thing in a session.
fn rename_requests(event: &mut AgentEvent) {
    let own = RequestId::from("request-sub");
    let own_call = CallId::from("call-sub");
    match &mut event.fact {
        Fact::ApprovalRequested { request, ask, .. }
        | Fact::QuestionAsked { request, ask }
        | Fact::PlanProposed { request, ask } => {
            *request = own;
            ask.call = Some(own_call);
        }
        Fact::ApprovalResolved { request }
        | Fact::QuestionAnswered { request }
        | Fact::PlanResolved { request } => *request = own,
        Fact::ToolStarted { call, .. } | Fact::ToolCompleted { call, .. } => *call = own_call,
        _ => {}
    }
}
