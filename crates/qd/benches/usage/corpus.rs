//! A history of Claude Code that nobody lived: the same bytes for the same profile, with the sums
//! that must come out.
//!
//! True to the format where it decides cost and correctness: a line for each block of a response,
//! with shared ids and early lines that hold too few tokens; tool outputs twice on a line;
//! subagents in files of their own; forks that repeat another session's lines under a new id; most
//! files small, and a few that hold most of the bytes.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy)]
pub struct Profile {
    pub name: &'static str,
    bytes: usize,
    files: usize,
    /// The sizes of some files.
    large: &'static [usize],
}

const MB: usize = 1_000_000;

pub const GIGABYTE: Profile = Profile {
    name: "1gb",
    bytes: 1_000 * MB,
    files: 1_500,
    large: &[90 * MB, 70 * MB, 60 * MB, 52 * MB],
};

pub const MANY_FILES: Profile = Profile { name: "10k", bytes: 400 * MB, files: 10_000, large: &[] };

/// What must come out: input, output, cache writes, cache reads.
pub type Sums = [u64; 4];

/// Makes it below `folder`, which is a `CLAUDE_CONFIG_DIR` then.
pub fn make(profile: Profile, folder: &Path) -> Sums {
    let mut dice = Dice(0x5eed);
    let text = Text::new(&mut dice);
    let mut counted: HashMap<String, Sums> = HashMap::new();
    let mut donor: Option<Session> = None;
    let sizes = sizes(profile, &mut dice);
    for (nth, size) in sizes.into_iter().enumerate() {
        let mut session = Session::new(nth, &mut dice);
        if let Some(donor) = donor.as_ref().filter(|_| size > 6_000 && dice.one_in(33)) {
            session.repeat(donor);
        }
        while session.lines.len() < size {
            session.turn(&mut dice, &text, size);
        }
        for (key, sums) in &session.counted {
            let known = counted.entry(key.clone()).or_default();
            if sums.iter().sum::<u64>() > known.iter().sum() {
                *known = *sums;
            }
        }
        let path = session.path(folder);
        fs::create_dir_all(path.parent().expect("a folder")).expect("room for the corpus");
        fs::write(path, &session.lines).expect("room for the corpus");
        if (20_000..400_000).contains(&session.lines.len()) {
            donor = Some(session);
        }
    }
    let add = |sums: Sums, more: &Sums| std::array::from_fn(|kind| sums[kind] + more[kind]);
    counted.values().fold([0; 4], add)
}

fn sizes(profile: Profile, dice: &mut Dice) -> Vec<usize> {
    let count = profile.files - profile.large.len();
    // Skewed: the largest weigh some thousand times as much as the smallest.
    let weights: Vec<f64> = (0..count).map(|_| (dice.part() * 8.0 - 2.0).exp()).collect();
    let rest = (profile.bytes - profile.large.iter().sum::<usize>()) as f64;
    let scale = rest / weights.iter().sum::<f64>();
    let small = weights.iter().map(|weight| ((weight * scale) as usize).max(900));
    profile.large.iter().copied().chain(small).collect()
}

#[derive(Debug)]
struct Session {
    id: String,
    project: usize,
    /// A subagent's file lies in the folder of its session.
    is_subagent: bool,
    lines: String,
    at_ms: u64,
    context: u64,
    counted: Vec<(String, Sums)>,
}

impl Session {
    fn new(nth: usize, dice: &mut Dice) -> Self {
        Self {
            id: dice.id("", 32),
            project: nth % 97,
            is_subagent: nth % 11 == 10,
            lines: String::new(),
            // 2026-01-05 and the five months after it.
            at_ms: 1_767_600_000_000 + dice.below(150 * 86_400_000),
            context: 14_000 + dice.below(8_000),
            counted: Vec::new(),
        }
    }

    fn path(&self, folder: &Path) -> PathBuf {
        let project = folder.join(format!("projects/-home-dev-code-project-{}", self.project));
        if self.is_subagent {
            project.join(format!("{}/subagents/agent-{}.jsonl", self.id, &self.id[..8]))
        } else {
            project.join(format!("{}.jsonl", self.id))
        }
    }

    /// Begins as a fork: the first half of another session's lines under this one's id.
    fn repeat(&mut self, other: &Self) {
        let half = other.lines.lines().count() / 2;
        for line in other.lines.lines().take(half) {
            self.lines.push_str(&line.replace(&other.id, &self.id));
            self.lines.push('\n');
        }
    }

    fn turn(&mut self, dice: &mut Dice, text: &Text, size: usize) {
        let prompt = text.some(dice, 300);
        self.line(dice, "user", &format!(r#""message":{{"role":"user","content":"{prompt}"}}"#));
        for _ in 0..=dice.below(8) {
            if self.lines.len() >= size {
                break;
            }
            let (call, long) = (dice.id("toolu_01", 22), 200 << dice.below(8));
            let said = text.some(dice, 200);
            let command = text.some(dice, 120);
            self.response(dice, &[
                format!(r#"{{"type":"text","text":"{said}"}}"#),
                format!(r#"{{"type":"tool_use","id":"{call}","name":"Bash","input":{{"command":"{command}"}}}}"#),
            ], "tool_use");
            let output = text.some(dice, long as usize);
            self.line(dice, "user", &format!(
                r#""message":{{"role":"user","content":[{{"tool_use_id":"{call}","type":"tool_result","content":"{output}"}}]}},"toolUseResult":{{"stdout":"{output}","stderr":"","interrupted":false}}"#
            ));
        }
        let said = text.some(dice, 600);
        self.response(dice, &[format!(r#"{{"type":"text","text":"{said}"}}"#)], "end_turn");
        self.line(dice, "system", r#""subtype":"turn_duration","durationMs":4711,"isMeta":false"#);
    }

    fn response(&mut self, dice: &mut Dice, blocks: &[String], stop: &str) {
        let (message, request) = (dice.id("msg_01", 22), dice.id("req_01", 22));
        let model = MODELS[dice.below(MODELS.len() as u64) as usize];
        let output = blocks.iter().map(String::len).sum::<usize>() as u64 / 4 + 8;
        let (fresh, written, read) = (1 + dice.below(11), 150 + dice.below(5_850), self.context);
        let short = if dice.one_in(3) { written } else { 0 };
        for (nth, block) in blocks.iter().enumerate() {
            let is_last = nth + 1 == blocks.len();
            let (told, reason) =
                if is_last { (output, format!("\"{stop}\"")) } else { (1, "null".to_owned()) };
            self.line(dice, "assistant", &format!(
                r#""message":{{"model":"{model}","id":"{message}","type":"message","role":"assistant","content":[{block}],"stop_reason":{reason},"stop_sequence":null,"usage":{{"input_tokens":{fresh},"cache_creation_input_tokens":{written},"cache_read_input_tokens":{read},"output_tokens":{told},"server_tool_use":{{"web_search_requests":0,"web_fetch_requests":0}},"service_tier":"standard","cache_creation":{{"ephemeral_1h_input_tokens":{},"ephemeral_5m_input_tokens":{short}}},"inference_geo":"","iterations":[],"speed":"standard"}}}},"requestId":"{request}""#,
                written - short
            ));
        }
        self.counted.push((message + &request, [fresh, output, written, read]));
        self.context = (self.context + written + output).min(190_000);
    }

    fn line(&mut self, dice: &mut Dice, kind: &str, body: &str) {
        self.at_ms += 20 + dice.below(4_000);
        let (uuid, side) = (dice.id("", 32), self.is_subagent);
        writeln!(
            self.lines,
            r#"{{"parentUuid":"{uuid}","isSidechain":{side},{body},"type":"{kind}","uuid":"{uuid}","timestamp":"{}","userType":"external","entrypoint":"cli","cwd":"/home/dev/code/project-{}","sessionId":"{}","version":"2.1.325","gitBranch":"main"}}"#,
            stamp(self.at_ms),
            self.project,
            self.id
        )
        .expect("a string takes everything");
    }
}

/// `2026-01-05T08:00:00.000Z`, until the middle of the year.
fn stamp(at_ms: u64) -> String {
    let (day, ms) = ((at_ms - JANUARY_MS) / 86_400_000, (at_ms - JANUARY_MS) % 86_400_000);
    let (mut month, mut day) = (1, day + 1);
    for length in [31, 28, 31, 30, 31, 30, 31] {
        if day <= length {
            break;
        }
        (month, day) = (month + 1, day - length);
    }
    let (s, ms) = (ms / 1_000, ms % 1_000);
    let (hour, minute, second) = (s / 3_600, s / 60 % 60, s % 60);
    format!("2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// 2026-01-01.
const JANUARY_MS: u64 = 1_767_225_600_000;

const MODELS: [&str; 4] = [
    "claude-opus-4-6",
    "claude-sonnet-4-6",
    "claude-haiku-4-5-20251001",
    "claude-opus-4-5-20251101",
];

/// Code and prose as a transcript holds it: with escapes, and not only in ASCII.
#[derive(Debug)]
struct Text(Vec<String>);

impl Text {
    fn new(dice: &mut Dice) -> Self {
        let line = |dice: &mut Dice| {
            let words: Vec<&str> = (0..4 + dice.below(9))
                .map(|_| WORDS[dice.below(WORDS.len() as u64) as usize])
                .collect();
            let words = words.join(" ");
            match dice.below(6) {
                0 => format!(r#"    let {words} = \"{words}\";\n"#),
                1 => format!(r"\t\tif {words} {{\n"),
                2 => format!(r"{words} — «é» 日本語\n"),
                _ => format!(r"{words}.\n"),
            }
        };
        Self((0..4_000).map(|_| line(dice)).collect())
    }

    fn some(&self, dice: &mut Dice, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 128);
        let mut nth = dice.below(self.0.len() as u64) as usize;
        while text.len() < bytes {
            text.push_str(&self.0[nth % self.0.len()]);
            nth += 1;
        }
        text
    }
}

const WORDS: [&str; 16] = [
    "session", "state", "event", "tool", "result", "parse", "token", "usage", "cost", "group",
    "card", "agent", "plan", "hook", "stream", "retry",
];

/// Seeded: the same throws each time.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn id(&mut self, prefix: &str, len: usize) -> String {
        let signs = b"0123456789abcdefghijklmnopqrstuv";
        let rest = (0..len).map(|_| char::from(signs[self.below(32) as usize]));
        prefix.chars().chain(rest).collect()
    }
}
