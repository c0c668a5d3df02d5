//! What a settings file should hold so that its agent talks to us. Values only.

use serde_json::Value;

/// The forwarder's file name. An entry whose command runs a program of this name is ours; nothing
/// else is a mark, so nothing has to be guessed.
pub const FORWARDER: &str = "qd-hook";

/// Where the daemon takes telemetry.
pub const OTLP_ENDPOINT: &str = "http://127.0.0.1:47892";

/// Everything we want in one file.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub dialect: Dialect,
    pub entries: Vec<Entry>,
    pub telemetry: Option<Telemetry>,
}

impl Wanted {
    /// Each once, in their order.
    pub fn events(&self) -> Vec<&'static str> {
        let mut events = Vec::new();
        for entry in &self.entries {
            if !events.contains(&entry.event) {
                events.push(entry.event);
            }
        }
        events
    }

    pub fn entries_on(&self, event: &str) -> Vec<&Entry> {
        self.entries.iter().filter(|entry| entry.event == event).collect()
    }
}

/// What the client does when tools have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterTools {
    /// It tells us, and goes on.
    GoesOn,
    /// It waits until the operator's post-tool hooks have run (`[hooks] observed`).
    Waits,
}

/// How long a client waits for post-tool hooks.
pub const HOOKS_TIMEOUT_S: u32 = 600;

/// What the client itself can read. A file it cannot read would hold hooks that never run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// With or without a byte order mark.
    Strict,
    StrictUnmarked,
    /// No byte order mark, and no trailing commas.
    Comments,
}

/// One hook of one event.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub event: &'static str,
    pub fields: Vec<(&'static str, Value)>,
}

impl Entry {
    pub fn new(event: &'static str, command: &str) -> Self {
        let fields = vec![("type", Value::from("command")), ("command", Value::from(command))];
        Self { event, fields }
    }

    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((key, value.into()));
        self
    }

    /// The forwarder's mode.
    pub fn mode(&self) -> Mode {
        let command = self.fields.iter().find(|(key, _)| *key == "command");
        command.and_then(|(_, command)| command.as_str()).map_or(Mode::Send, mode)
    }

    /// Its name for people: an event may have two hooks.
    pub fn label(&self) -> String {
        match self.mode() {
            Mode::Send => self.event.to_owned(),
            Mode::Wait => format!("{} (waits)", self.event),
        }
    }

    pub fn value(&self) -> Value {
        self.fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    }
}

/// Values in one object of the file. They are ours if the anchor has our value.
#[derive(Debug, Clone, PartialEq)]
pub struct Telemetry {
    pub section: &'static str,
    pub anchor: &'static str,
    pub values: Vec<(&'static str, Value)>,
}

impl Telemetry {
    pub fn anchor_value(&self) -> Option<&Value> {
        self.values.iter().find(|(key, _)| *key == self.anchor).map(|(_, value)| value)
    }
}

/// The forwarder's command line, for a shell.
pub fn command(forwarder: &str, harness: &str) -> String {
    format!("{} send --harness {harness}", quoted(forwarder))
}

/// The same for a hook that waits for an answer; `options` are more words for the forwarder. It is
/// to leave by itself before the client ends it, which some clients show as a failure.
pub fn waiting_command(forwarder: &str, harness: &str, timeout_s: u32, options: &str) -> String {
    let within = timeout_s - LEAVES_BEFORE_TIMEOUT_S;
    format!("{} wait --harness {harness} --within {within}{options}", quoted(forwarder))
}

/// Time for a busy machine to start the forwarder and to see it end.
const LEAVES_BEFORE_TIMEOUT_S: u32 = 10;

/// Whether the forwarder goes on at once or stays for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Send,
    Wait,
}

/// The mode in a command of ours.
pub fn mode(command: &str) -> Mode {
    let (_, options) = first_word(command);
    if options.split_whitespace().next() == Some("wait") { Mode::Wait } else { Mode::Send }
}

fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,@%:=".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// The program that a shell would run.
pub fn program(command: &str) -> String {
    first_word(command).0
}

/// The first word, with its quotes taken off, and what follows it.
fn first_word(command: &str) -> (String, &str) {
    let mut word = String::new();
    let mut quote = None;
    let mut chars = command.trim_start().chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None | Some('"'), '\\') => word.extend(chars.next()),
            (None, _) if c.is_whitespace() => break,
            _ => word.push(c),
        }
    }
    (word, chars.as_str())
}

pub fn is_ours(command: &str) -> bool {
    let program = program(command);
    program.rsplit(['/', '\\']).next() == Some(FORWARDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_ours_by_its_program_and_by_nothing_else() {
        for ours in [
            "/opt/qd/qd-hook send --harness codex",
            "'/my tools/qd-hook' send",
            "\"/my tools/qd-hook\"",
            r"/my\ tools/qd-hook send",
            "  qd-hook",
        ] {
            assert!(is_ours(ours), "{ours}");
        }
        for foreign in ["", "echo qd-hook", "/opt/qd-hook/run", "qd-hooks", "my-qd-hook", "'"] {
            assert!(!is_ours(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_quoted_path_comes_back_whole() {
        for path in
            ["/opt/qd-hook", "/a wait b/qd-hook", "/it's/qd-hook", "/a\"b$c/qd-hook", "/ü/qd-hook"]
        {
            assert_eq!(program(&command(path, "codex")), path);
            assert_eq!(mode(&command(path, "codex")), Mode::Send);
            assert_eq!(mode(&waiting_command(path, "codex", 40, "")), Mode::Wait);
        }
    }
}
