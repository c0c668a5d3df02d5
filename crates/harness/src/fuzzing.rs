//! What a fuzzer feeds: bytes in, every parser under them, and what must hold whatever they are.
//!
//! The fuzz targets, the replay of their corpus and the property tests all come through [`run`].
//! An input is a sequence, one signal a line: the first character of a line is its [`Cue`], the rest
//! its payload. So the seeds read like the captures they were cut from, and what is fuzzed is an
//! order of messages and not only one of them.

use std::collections::BTreeSet;

use qd_session::Session;
use qd_session::event::Entry;
use qd_session::finished_turn::{FinishedTurn, judge};
use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;
use qd_session::snapshot::{Snapshot, fold};

use crate::Harness;
use crate::native::{Conversation, Piece, Provider, StreamReader};
use crate::replay::{Replay, Scene};
use crate::signal::{Channel, Direction, Signal};

/// Something that reads what others wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parser {
    /// A handler, by one of its channels.
    Handler(Harness, Channel),
    /// The judge of last messages.
    FinishedTurn,
    /// Entries of the journal, one a line, and what they fold to.
    Journal,
    /// The body of a model's answer, as it comes.
    Answer(Provider),
}

/// Every parser, by the name of its corpus folder.
pub const TARGETS: [(&str, Parser); 22] = [
    ("claude_code_hook", Parser::Handler(Harness::ClaudeCode, Channel::Hook)),
    ("claude_code_transcript", Parser::Handler(Harness::ClaudeCode, Channel::Transcript)),
    ("claude_code_registry", Parser::Handler(Harness::ClaudeCode, Channel::Registry)),
    ("claude_code_stream", Parser::Handler(Harness::ClaudeCode, Channel::Stream)),
    ("claude_code_otel", Parser::Handler(Harness::ClaudeCode, Channel::Otel)),
    ("codex_appserver", Parser::Handler(Harness::Codex, Channel::AppServer)),
    ("codex_hook", Parser::Handler(Harness::Codex, Channel::Hook)),
    ("codex_notify", Parser::Handler(Harness::Codex, Channel::Notify)),
    ("codex_rollout", Parser::Handler(Harness::Codex, Channel::Transcript)),
    ("codex_exec", Parser::Handler(Harness::Codex, Channel::Exec)),
    ("codex_otel", Parser::Handler(Harness::Codex, Channel::Otel)),
    ("gemini_cli_hook", Parser::Handler(Harness::GeminiCli, Channel::Hook)),
    ("gemini_cli_otel", Parser::Handler(Harness::GeminiCli, Channel::Otel)),
    ("gemini_cli_transcript", Parser::Handler(Harness::GeminiCli, Channel::Transcript)),
    ("gemini_cli_stream", Parser::Handler(Harness::GeminiCli, Channel::Stream)),
    ("kilo_cline_stream", Parser::Handler(Harness::KiloCode, Channel::Stream)),
    ("opencode_events", Parser::Handler(Harness::Opencode, Channel::Events)),
    ("acp_messages", Parser::Handler(Harness::Acp, Channel::Acp)),
    ("finished_turn", Parser::FinishedTurn),
    ("journal_entry", Parser::Journal),
    ("native_anthropic", Parser::Answer(Provider::Anthropic)),
    ("native_openai", Parser::Answer(Provider::OpenAi)),
];

/// Feeds a parser. Panics where one does, and where what must always hold does not.
pub fn run(parser: Parser, input: &[u8]) {
    match parser {
        Parser::Handler(harness, channel) => run_handler(harness, channel, input),
        Parser::FinishedTurn => run_judge(input),
        Parser::Journal => run_journal(input),
        Parser::Answer(provider) => run_answer(provider, input),
    }
}

/// How a line of an input reaches its handler, in one printable character (`@` is the plain case).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cue {
    pub after_ms: u64,
    pub direction: Direction,
    pub file: Option<&'static str>,
    /// It is what a process watcher saw, and not what the channel said.
    pub process: bool,
}

impl Cue {
    pub fn read(byte: u8) -> Self {
        Self {
            after_ms: DELAYS_MS[usize::from(byte >> 3 & 3)],
            direction: if byte & 1 == 0 { Direction::FromAgent } else { Direction::ToAgent },
            file: FILES[usize::from(byte >> 1 & 3)],
            process: byte >> 5 & 1 == 1,
        }
    }
}

/// One session's watcher: a replay that also holds what it is told against what it was given.
#[allow(missing_debug_implementations)]
pub struct Witness {
    replay: Replay,
    met: BTreeSet<String>,
}

impl Witness {
    pub fn new(harness: Harness) -> Self {
        Self { replay: Replay::new(harness), met: BTreeSet::new() }
    }

    pub fn play(&mut self, signal: &Signal<'_>) {
        let scenes = self.replay.play(signal);
        self.check(scenes);
    }

    pub fn finish(&mut self) {
        let scenes = self.replay.finish();
        self.check(scenes);
    }

    pub fn now(&self) -> Timestamp {
        self.replay.now()
    }

    /// The sessions that something was told of.
    pub fn sessions(&self) -> &BTreeSet<String> {
        &self.met
    }

    fn check(&mut self, scenes: Vec<Scene>) {
        for scene in scenes {
            let Scene::Event { session, event, .. } = scene else { continue };
            assert!(!session.is_empty(), "a session has a name");
            if self.met.insert(session.to_string()) {
                let unrecognised = matches!(event.fact, Fact::Unrecognised { .. });
                assert!(!unrecognised, "what nobody understood made the session {session:?}");
            }
        }
    }
}

fn run_handler(harness: Harness, channel: Channel, input: &[u8]) {
    let mut witness = Witness::new(harness);
    let mut at = Timestamp(BEGIN_MS);
    for line in input.split(|byte| *byte == b'\n').take(SIGNALS_MAX) {
        let Some((cue, payload)) = line.split_first() else { continue };
        let Cue { after_ms, direction, file, process } = Cue::read(*cue);
        at = at.plus_ms(after_ms);
        let channel = if process { Channel::Process } else { channel };
        witness.play(&Signal { at, seq: 0, channel, direction, file, payload });
    }
    witness.finish();
}

fn run_judge(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for cut_off in [false, true] {
        let turn = FinishedTurn { last_message: Some(&text), cut_off };
        let judgement = judge(&turn);
        assert_eq!(judgement.ending, judgement.sign.ending());
        assert!((0.0..=1.0).contains(&judgement.confidence));
    }
}

fn run_journal(input: &[u8]) {
    let lines = input.split(|byte| *byte == b'\n').take(SIGNALS_MAX);
    let entries: Vec<Entry> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    for entry in &entries {
        let text = serde_json::to_vec(entry).expect("an entry is written");
        let again: Entry = serde_json::from_slice(&text).expect("what is written is read");
        assert_eq!(again, *entry, "what is read is what was written");
    }
    let Some(first) = entries.first() else { return };
    let whole = fold(Session::new(first.session.clone()), &entries);
    let (head, tail) = entries.split_at(entries.len() / 2);
    let half = Snapshot::of(&fold(Session::new(first.session.clone()), head));
    let half = serde_json::to_vec(&half).expect("a snapshot is written");
    let half: Snapshot = serde_json::from_slice(&half).expect("a snapshot is read");
    assert_eq!(fold(half.session, tail), whole, "a snapshot and its tail are the journal");
    if let Some(last) = entries.last() {
        whole.resolve(last.at);
        whole.next_look(last.at);
    }
}

fn run_answer(provider: Provider, input: &[u8]) {
    let read = |parts: &[&[u8]]| -> Vec<Piece> {
        let mut reader = StreamReader::new(provider, "turn_1".into(), None);
        let mut pieces: Vec<Piece> = parts.iter().flat_map(|part| reader.take(part)).collect();
        pieces.extend(reader.end());
        pieces
    };
    let whole = read(&[input]);
    let (last, before) = whole.split_last().expect("an answer has an end");
    assert!(last.is_last() && !before.iter().any(Piece::is_last), "an answer has one end");
    let (head, tail) = input.split_at(input.len() / 2);
    assert_eq!(read(&[head, tail]), whole, "a cut changes nothing");
    let mut conversation = Conversation::default();
    conversation.ask(&[], Some("go".into()));
    if let Piece::End { message, .. } = last {
        conversation.answer(message.clone()).expect("it was asked");
        conversation.ask(&[], None);
        let text = serde_json::to_vec(&conversation).expect("a conversation is written");
        let again: Conversation = serde_json::from_slice(&text).expect("and read");
        assert_eq!(again.messages().len(), conversation.messages().len());
    }
}

/// Where inputs begin: 2026-11-15T18:40:00Z, so that stamps of the captures are near.
const BEGIN_MS: u64 = 1_794_768_000_000;

/// At once, within a debounce, after the longest one, after every timer of a handler.
const DELAYS_MS: [u64; 4] = [0, 150, 3_000, 90_000];

/// Nowhere, a main session's file, a subagent's, one in a folder named after its parent.
const FILES: [Option<&str>; 4] =
    [None, Some("a.jsonl"), Some("s1/subagents/agent-a1.jsonl"), Some("chats/s1/b.jsonl")];

/// Most signals of one input. Longer sequences find nothing new and cost the fuzzer its pace.
const SIGNALS_MAX: usize = 64;
