//! Any interleaving of appending, snapshots, pruning and reopening folds to the live bytes.

use proptest::prelude::*;
use qd_session::event::{Entry, Event};
use qd_session::id::{AgentId, CallId, RequestId, ToolName};
use qd_session::logbook::Brief;
use qd_session::machine::{self, Judged, Process, Setup, ToolCall, Tools, Verdict};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Ask, Fact, Failure, FailureKind, Place, Stage, Usage};
use qd_session::policy::Preset;
use qd_session::seed::Seed;
use qd_store::{Settings, Written};

use super::sample::{Live, delivery, loaded, session};
use super::scratch::Scratch;

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<Entry>),
    Deliver(u64, Vec<Entry>),
    Snapshot(u64),
    Tidy,
    Reopen(Settings),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_folds_to_the_live_bytes(steps in prop::collection::vec(step(), 1..40)) {
        let scratch = Scratch::new();
        let mut journal = scratch.open();
        let mut live = Live::default();
        let mut delivered = std::collections::BTreeSet::new();
        for step in steps {
            match step {
                Step::Append(entries) => {
                    live.apply(&entries);
                    journal.append(entries).wait().expect("written");
                }
                Step::Deliver(n, entries) => {
                    let written = journal.append_once(delivery("spool", n), entries.clone()).wait();
                    let is_first = delivered.insert(n);
                    prop_assert_eq!(written.expect("taken") == Written::Repeated, !is_first);
                    if is_first {
                        live.apply(&entries);
                    }
                }
                Step::Snapshot(of) => {
                    if let Some(session) = live.0.get(&session(of)) {
                        journal.snapshot(session, journal.last_seq()).wait().expect("answered");
                    }
                }
                Step::Tidy => journal.tidy().wait().expect("tidy"),
                Step::Reopen(settings) => {
                    drop(journal);
                    journal = scratch.opened(settings).0;
                    prop_assert_eq!(loaded(&journal), live.bytes());
                }
            }
        }
        prop_assert_eq!(loaded(&journal), live.bytes());
        drop(journal);
        prop_assert_eq!(loaded(&scratch.open()), live.bytes());
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(entry(), 0..12).prop_map(Step::Append),
        2 => (0_u64..6, prop::collection::vec(entry(), 0..4))
            .prop_map(|(n, entries)| Step::Deliver(n, entries)),
        2 => (0..SESSIONS).prop_map(Step::Snapshot),
        1 => Just(Step::Tidy),
        2 => settings().prop_map(Step::Reopen),
    ]
}

const SESSIONS: u64 = 4;

/// Few, so that an event often names the turn that runs.
const SEEDS: u64 = 2;

fn settings() -> impl Strategy<Value = Settings> {
    (0_usize..20, 0_usize..40).prop_map(|(entries_per_session_max, entries_max)| Settings {
        entries_per_session_max,
        entries_max,
        ..Settings::default()
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let event = prop_oneof![
        8 => observed().prop_map(|event| Event::Observed { event }),
        6 => (0..SEEDS, driven())
            .prop_map(|(seed, event)| Event::Driven { seed: Seed(seed), event, frozen: None }),
        2 => tools().prop_map(|tools| Event::SetUp {
            setup: Setup { tools, process: Process::WholeSession, hooks: Vec::new() },
            brief: Some(Box::new(Brief {
                workspace: "/home/u/project".into(),
                model: None,
                provider: None,
                preset: Preset::Careful,
                prompt: None,
                is_chat: false,
            })),
        }),
        1 => Just(Event::Dismissed),
        1 => Just(Event::Archived),
        1 => Just(Event::Unarchived),
    ];
    (0..SESSIONS, 0_u64..5_000, event)
        .prop_map(|(of, at, event)| Entry::new(session(of), Timestamp(at), event))
}

fn tools() -> impl Strategy<Value = Tools> {
    prop::sample::select(vec![Tools::Ours, Tools::Theirs])
}

fn observed() -> impl Strategy<Value = AgentEvent> {
    let source = prop::sample::select(vec![Source::Hook, Source::Transcript, Source::Registry]);
    let agent = prop::sample::select(vec![AgentId::MAIN, AgentId::sub("sub")]);
    (0_u64..5_000, 0_u32..3, source, agent, fact()).prop_map(|(at, seq, source, agent, fact)| {
        AgentEvent { at: Timestamp(at), seq, source, agent, fact }
    })
}

fn fact() -> impl Strategy<Value = Fact> {
    let id = || prop::sample::select(vec!["a", "b", "ü\u{0}\"\\"]);
    let text = || prop::option::of("\\PC{0,12}").prop_map(|text| text.map(Into::into));
    let ask = move || {
        (text(), text()).prop_map(|(text, input)| Ask { call: None, tool: None, text, input })
    };
    prop_oneof![
        text().prop_map(|text| Fact::UserPrompt { text }),
        Just(Fact::TurnStarted),
        Just(Fact::LlmStarted),
        Just(Fact::SubagentStarted { kind: None }),
        Just(Fact::Interrupted),
        (id(), text()).prop_map(|(id, about)| Fact::ToolStarted {
            call: CallId::from(id),
            tool: ToolName::from("Bash"),
            about,
        }),
        (id(), any::<bool>()).prop_map(|(id, ok)| Fact::ToolCompleted {
            call: CallId::from(id),
            ok,
            exit_code: None
        }),
        (id(), ask()).prop_map(|(id, ask)| Fact::ApprovalRequested {
            request: RequestId::from(id),
            stage: Stage::Waiting,
            ask,
        }),
        id().prop_map(|id| Fact::ApprovalResolved { request: RequestId::from(id) }),
        (id(), ask())
            .prop_map(|(id, ask)| Fact::QuestionAsked { request: RequestId::from(id), ask }),
        text().prop_map(|message| Fact::TurnFailed {
            failure: Failure { kind: FailureKind::UsageLimit, message, resets_at: None },
        }),
        text().prop_map(|last_message| Fact::TurnCompleted {
            last_message,
            background: Some(1),
            cut_off: false,
        }),
        text().prop_map(|cwd| Fact::PlaceKnown { place: Place { cwd, ..Place::default() } }),
        any::<u64>().prop_map(|tokens| Fact::UsageReported {
            usage: Usage { context_tokens: Some(tokens), ..Usage::default() },
        }),
        "\\PC{0,30}".prop_map(|text| Fact::Unrecognised { text: text.into() }),
    ]
}

/// Events that get a driven session somewhere when they come in a fitting order, and are refused
/// when they do not: both fold.
fn driven() -> impl Strategy<Value = machine::Event> {
    use machine::Event;
    prop_oneof![
        Just(Event::Spawned),
        Just(Event::HarnessReady),
        Just(Event::StopRequested),
        Just(Event::Restarted),
        "\\PC{0,12}".prop_map(|text| Event::UserInput { text: text.into() }),
        (0..SEEDS).prop_map(|seed| Event::StreamCompleted {
            turn: Seed(seed).turn(),
            text: None,
            cut_off: false,
        }),
        (0..SEEDS, number()).prop_map(|(seed, number)| {
            let call = ToolCall {
                call_id: CallId::from("call_1"),
                name: ToolName::from("read_file"),
                arguments: serde_json::json!({ "n": number }),
                mutating: true,
            };
            let calls = vec![Judged { call, verdict: Verdict::Ask }];
            Event::ResponseParsed { turn: Seed(seed).turn(), calls }
        }),
    ]
}

/// Numbers as agents write them, long ones included: read again they are the same.
fn number() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("JSON has no others", |number| number.is_finite())
}
