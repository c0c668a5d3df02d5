//! A pattern of an operator for commands, held against what a line may run.

use regex::Regex;

use super::rule::Fit;
use super::shell::{Script, Simple, Word, program};
use super::side_effect::{RUNNERS, side_effect};
use crate::limits::{POLICY_OPTIONS_MAX, POLICY_WRAPPED_WORDS_MAX};
use crate::pattern::{bounded, compiled};

/// `cargo test *`: `*` is anything, `?` a letter, and a last ` *` may be nothing.
#[derive(Debug, Clone)]
pub struct CommandPattern {
    regex: Regex,
    /// The program, where the pattern names one.
    program: Option<String>,
    /// Its words that spell something out.
    spelled_out: Vec<Regex>,
}

impl CommandPattern {
    pub fn new(pattern: &str) -> Result<Self, String> {
        let words: Vec<&str> = bounded(pattern)?.split_whitespace().collect();
        let Some(first) = words.first() else { return Err("a command is empty".to_owned()) };
        let is_plain = !first.contains(['*', '?']);
        let program = is_plain.then(|| program(first).to_owned());
        let text = words.join(" ");
        let body = match text.strip_suffix(" *") {
            Some(head) => format!("{}(?: .*)?", wildcards(head)),
            None => wildcards(&text),
        };
        let says_something = |word: &&&str| word.chars().any(|letter| !"*?-=".contains(letter));
        let exactly = |word: &&str| compiled(&format!("(?s)^{}$", wildcards(word)));
        let spelled_out =
            words.iter().filter(says_something).map(exactly).collect::<Result<_, _>>()?;
        Ok(Self { regex: compiled(&format!("(?s)^{body}$"))?, program, spelled_out })
    }

    /// It is this command, word by word. The program must be spelled as the pattern spells it:
    /// `/tmp/git` is not `git`. Nor does a `*` stand for an option with which a reading command
    /// writes or runs something, unless it stands for the program, too.
    pub fn is(&self, command: &Simple) -> bool {
        let is_known = command.is_certain && command.words.iter().all(|word| !word.is_opaque);
        let is_named = |word: &str| self.spelled_out.iter().any(|part| part.is_match(word));
        is_known
            && self.regex.is_match(&spelled(&command.words[0].text, &command.words[1..]))
            && (self.program.is_none() || side_effect(&command.words, &is_named).is_none())
    }

    /// Whether the line may run such a command, by whatever name, option or wrapper.
    pub fn lurks_in(&self, script: &Script) -> Fit {
        let found = script.commands.iter().map(|command| {
            let fit = self.lurks_in_command(&command.words);
            if command.is_certain { fit } else { fit.min(Fit::Perhaps) }
        });
        let least = if script.is_unread { Fit::Perhaps } else { Fit::No };
        found.fold(least, Fit::max)
    }

    fn lurks_in_command(&self, words: &[Word]) -> Fit {
        let mut fit = Fit::No;
        let is_wrapper = is_wrapper(&words[0].text);
        let starts = if is_wrapper { words.len().min(POLICY_WRAPPED_WORDS_MAX) } else { 1 };
        if is_wrapper && words.len() > POLICY_WRAPPED_WORDS_MAX {
            fit = Fit::Perhaps;
        }
        for start in 0..starts {
            let adds_words = start > 0 && ["xargs", "parallel"].contains(&program(&words[0].text));
            fit = fit.max(self.begins(&words[start], &words[start + 1..], adds_words));
        }
        fit
    }

    fn begins(&self, first: &Word, rest: &[Word], adds_words: bool) -> Fit {
        let name = program(&first.text);
        if first.is_opaque {
            return Fit::Perhaps;
        }
        if self.program.as_ref().is_some_and(|wanted| wanted != name) {
            return Fit::No;
        }
        // `git -C / push`: an option may have a value, or none.
        let mut ends = [true; POLICY_OPTIONS_MAX + 3];
        ends[1..].fill(false);
        for skipped in 0..=POLICY_OPTIONS_MAX.min(rest.len()) {
            if !ends[skipped] {
                continue;
            }
            let rest = &rest[skipped..];
            let spells = |name: &str| self.regex.is_match(&spelled(name, rest));
            if spells(name) || spells(&first.text) {
                return Fit::Yes;
            }
            if rest.first().is_some_and(|word| word.text.starts_with('-')) {
                ends[skipped + 1] = true;
                ends[skipped + 2] = rest.len() > 1;
            }
        }
        let is_open = adds_words
            || rest.iter().any(|word| word.is_opaque)
            || ends[POLICY_OPTIONS_MAX + 1..].contains(&true);
        if is_open { Fit::Perhaps } else { Fit::No }
    }
}

/// Why a rule for the commands of a line may still not cover them.
pub fn excess(script: &Script) -> Option<&'static str> {
    script.commands.iter().find_map(|command| side_effect(&command.words, &|_| false))
}

/// What runs another command, or stands before one.
fn is_wrapper(word: &str) -> bool {
    const BEFORE_ONE: [&str; 16] = [
        "!", "coproc", "do", "elif", "else", "find", "for", "if", "npx", "ssh", "su", "then",
        "until", "while", "{", "}",
    ];
    let name = program(word);
    RUNNERS.contains(&name) || BEFORE_ONE.contains(&name)
}

/// Words with one space between them; a space inside a word is another sign, so that no pattern
/// takes `"git status/x"` for two words.
fn spelled(first: &str, rest: &[Word]) -> String {
    let mut text = String::new();
    for word in std::iter::once(first).chain(rest.iter().map(|word| word.text.as_str())) {
        if !text.is_empty() {
            text.push(' ');
        }
        match word.is_empty() {
            true => text.push_str("''"),
            false => {
                text.extend(word.chars().map(|c| if c.is_whitespace() { '\u{1f}' } else { c }))
            }
        }
    }
    text
}

/// A glob over a text: no sign ends a `*`.
pub fn wildcards(pattern: &str) -> String {
    let part = |letter: char| match letter {
        '*' => ".*".to_owned(),
        '?' => ".".to_owned(),
        other => regex::escape(other.encode_utf8(&mut [0; 4])),
    };
    pattern.chars().map(part).collect()
}
