//! A shell command line, read for a policy: which simple commands it may run, and whether that is
//! all there is to it.
//!
//! Not a shell. It errs to one side: what it does not understand makes a line doubtful, so that no
//! rule allows it, and the commands inside substitutions, groups, here-documents and `sh -c` are
//! listed all the same, so that a rule can refuse them. (`deed` reads command lines to
//! put words to them; that reader may guess, this one may not.)

use crate::limits::{POLICY_COMMAND_BYTES_MAX, POLICY_COMMAND_DEPTH_MAX, POLICY_COMMANDS_MAX};

/// What a line may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    pub commands: Vec<Simple>,
    /// Why the commands are not all that happens, or not known word by word.
    pub doubt: Option<&'static str>,
    /// Part of it could not be read: it may run anything.
    pub is_unread: bool,
}

/// A program and its arguments, without the assignments before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    pub words: Vec<Word>,
    /// It is run, and not only written somewhere that may be run.
    pub is_certain: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Without its quotes.
    pub text: String,
    /// A part of it is known only when it runs.
    pub is_opaque: bool,
    /// The shell may put names of files in its place.
    pub is_pattern: bool,
}

impl Script {
    pub fn read(line: &str) -> Self {
        let script = Self::in_text(line, 0, true);
        // Some clients tell the shell that they put around each command: what it runs is the line,
        // if nothing else is.
        let shell = script.commands.first().filter(|_| script.doubt == Some(NESTED));
        let Some(inner) = shell.and_then(wrapped) else { return script };
        let inner = Self::in_text(inner, 1, true);
        match inner.commands.len() + 1 == script.commands.len() {
            true => inner,
            false => script,
        }
    }

    /// A command that was given as words, not as a line.
    pub fn of_words(words: &[&str]) -> Self {
        let quoted = |word: &&str| format!("'{}'", word.replace('\'', r"'\''"));
        Self::read(&words.iter().map(quoted).collect::<Vec<_>>().join(" "))
    }

    fn in_text(text: &str, depth: usize, is_certain: bool) -> Self {
        if text.len() > POLICY_COMMAND_BYTES_MAX {
            return Self { doubt: Some("it is too long"), is_unread: true, ..Self::default() };
        }
        let mut reader = Reader::new(text, depth, is_certain);
        reader.list(None);
        reader.script
    }

    fn doubted(&mut self, why: &'static str) {
        if self.doubt.is_none_or(|known| known == NESTED) {
            self.doubt = Some(why);
        }
    }

    fn unread(&mut self, why: &'static str) {
        self.is_unread = true;
        self.doubted(why);
    }

    fn take_in(&mut self, inner: Self) {
        for command in inner.commands {
            self.push(command);
        }
        self.is_unread |= inner.is_unread;
    }

    fn push(&mut self, command: Simple) {
        match self.commands.len() < POLICY_COMMANDS_MAX {
            true => self.commands.push(command),
            false => self.unread("it has too many commands"),
        }
    }
}

/// The last part of a path.
pub fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

const NESTED: &str = "a shell in it runs a text";

/// `/bin/bash -lc '…'`, and nothing else.
fn wrapped(command: &Simple) -> Option<&str> {
    let [shell, flag, script] = command.words.as_slice() else { return None };
    let shells = ["bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash"];
    let is_plain = !shell.is_opaque && !flag.is_opaque && !script.is_opaque;
    (is_plain && shells.contains(&shell.text.as_str()) && ["-c", "-lc"].contains(&&*flag.text))
        .then_some(script.text.as_str())
}

/// The text that a command gives to a shell, wherever in it the shell stands. Another one behind it
/// is found in that text.
fn text_run(words: &[Word]) -> Option<String> {
    const SHELLS: [&str; 8] = ["ash", "bash", "dash", "fish", "ksh", "sh", "su", "zsh"];
    let runs_text = |word: &Word| {
        let flag = word.text.as_str();
        let is_short = flag.starts_with('-') && !flag.starts_with("--") && flag.contains('c');
        is_short || flag == "--command"
    };
    let is_shell = |word: &Word| word.text == "eval" || SHELLS.contains(&program(&word.text));
    let at = words.iter().position(is_shell)?;
    let rest = &words[at + 1..];
    if words[at].text == "eval" {
        return Some(joined(rest));
    }
    let flag = rest.iter().position(runs_text)?;
    rest.get(flag + 1).map(|word| word.text.clone())
}

fn joined(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    is_certain: bool,
    script: Script,
    now: Now,
    /// What ends the here-documents that begin on the next line.
    until: Vec<String>,
}

/// The command being read.
#[derive(Default)]
struct Now {
    words: Vec<Word>,
    word: Option<Word>,
    /// Nothing of the word was quoted so far.
    is_bare: bool,
    /// The next word is where this leads.
    redirect: Option<Redirect>,
}

#[derive(Clone, Copy)]
enum Redirect {
    File,
    /// `>&2`, or a file.
    Duplicate,
    HereString,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, depth: usize, is_certain: bool) -> Self {
        let (script, now) = (Script::default(), Now::default());
        Self { text, at: 0, depth, is_certain, script, now, until: Vec::new() }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn eat(&mut self, letter: char) -> bool {
        let is_next = self.peek() == Some(letter);
        self.at += if is_next { letter.len_utf8() } else { 0 };
        is_next
    }

    /// Commands up to `end`, or to the end of the text.
    fn list(&mut self, end: Option<char>) {
        loop {
            let Some(letter) = self.next() else {
                self.end_command();
                if end.is_some() || !self.until.is_empty() {
                    self.script.unread("it breaks off");
                }
                return;
            };
            match letter {
                ' ' | '\t' => self.end_word(),
                '\n' => {
                    self.end_command();
                    self.here_documents();
                }
                ';' => self.end_command(),
                '&' if self.eat('>') => {
                    self.eat('>');
                    self.end_word();
                    self.now.redirect = Some(Redirect::File);
                }
                '&' | '|' => {
                    let _ = self.eat(letter) || letter == '|' && self.eat('&');
                    self.end_command();
                }
                ')' if end == Some(')') => return self.end_command(),
                ')' => {
                    self.script.unread("a bracket is closed that was not opened");
                    self.end_command();
                }
                '(' => {
                    self.script.doubted("commands are grouped");
                    self.end_command();
                    self.nested();
                }
                '<' | '>' => self.redirection(letter),
                '#' if self.now.word.is_none() => self.comment(),
                '\'' => self.quoted_plainly(),
                '"' => self.quoted(),
                '\\' => self.escaped(),
                '$' => self.dollar(),
                '`' => self.backticks(),
                '{' => {
                    self.script.doubted("it has braces");
                    self.word().is_opaque = true;
                    self.push('{');
                }
                // Names that the shell looks for decide which program it is.
                '*' | '?' | '[' if self.now.words.is_empty() => {
                    self.word().is_opaque = true;
                    self.script.doubted("the program is a pattern");
                    self.push(letter);
                }
                '*' | '?' | '[' => {
                    self.word().is_pattern = true;
                    self.push(letter);
                }
                '~' | '=' if self.now.words.is_empty() && self.now.word.is_none() => {
                    self.word().is_opaque = true;
                    self.script.doubted("the program is looked up");
                    self.push(letter);
                }
                control if control.is_control() => {
                    self.script.unread("it has a control character");
                    self.end_word();
                }
                other => self.push(other),
            }
        }
    }

    fn word(&mut self) -> &mut Word {
        if self.now.word.is_none() {
            self.now.is_bare = true;
        }
        self.now.word.get_or_insert_default()
    }

    fn push(&mut self, letter: char) {
        self.word().text.push(letter);
    }

    fn quoted_plainly(&mut self) {
        self.word();
        self.now.is_bare = false;
        while let Some(letter) = self.next() {
            if letter == '\'' {
                return;
            }
            self.push(letter);
        }
        self.script.unread("a quotation is not closed");
    }

    fn quoted(&mut self) {
        self.word();
        self.now.is_bare = false;
        while let Some(letter) = self.next() {
            match letter {
                '"' => return,
                '\\' => match self.peek() {
                    Some('$' | '`' | '"' | '\\' | '\n') => self.escaped(),
                    Some(_) | None => self.push('\\'),
                },
                '$' => self.dollar(),
                '`' => self.backticks(),
                other => self.push(other),
            }
        }
        self.script.unread("a quotation is not closed");
    }

    fn escaped(&mut self) {
        match self.next() {
            Some('\n') => {}
            Some(letter) => {
                self.push(letter);
                self.now.is_bare = false;
            }
            None => self.script.unread("it breaks off"),
        }
    }

    fn dollar(&mut self) {
        let rest = &self.text[self.at..];
        let name_len = |text: &str| {
            text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count()
        };
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.word().is_opaque = true;
                self.script.doubted("it has a command substitution");
                let outer = std::mem::take(&mut self.now);
                self.nested();
                self.now = outer;
            }
            Some('{') => {
                let len = name_len(&rest[1..]);
                self.word().is_opaque = true;
                self.script.doubted("it has a variable");
                match len > 0 && rest[1 + len..].starts_with('}') {
                    true => self.at += len + 2,
                    false => self.script.unread("it has an expansion that is not understood"),
                }
            }
            Some('\'') => {
                self.word().is_opaque = true;
                self.script.unread("it has an expansion that is not understood");
            }
            Some('"') => self.script.doubted("it has a variable"),
            Some(letter) if letter.is_ascii_alphanumeric() || "_?!@*#$-".contains(letter) => {
                self.at += name_len(rest).max(1);
                self.word().is_opaque = true;
                self.script.doubted("it has a variable");
            }
            Some(_) | None => self.push('$'),
        }
    }

    fn backticks(&mut self) {
        let mut inner = String::new();
        let mut is_closed = false;
        while let Some(letter) = self.next() {
            match letter {
                '`' => {
                    is_closed = true;
                    break;
                }
                '\\' if matches!(self.peek(), Some('`' | '\\' | '$')) => inner.extend(self.next()),
                other => inner.push(other),
            }
        }
        self.word().is_opaque = true;
        self.script.doubted("it has a command substitution");
        if !is_closed {
            self.script.unread("a quotation is not closed");
        }
        self.within(&inner, self.is_certain);
    }

    /// Up to the bracket that closes what was opened just now.
    fn nested(&mut self) {
        if self.depth >= POLICY_COMMAND_DEPTH_MAX {
            return self.script.unread("it is nested too deep");
        }
        self.depth += 1;
        self.list(Some(')'));
        self.depth -= 1;
    }

    /// Another text that the line has in it.
    fn within(&mut self, text: &str, is_certain: bool) {
        if self.depth >= POLICY_COMMAND_DEPTH_MAX {
            return self.script.unread("it is nested too deep");
        }
        let inner = Script::in_text(text, self.depth + 1, is_certain);
        self.script.take_in(inner);
    }

    fn comment(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    fn redirection(&mut self, sign: char) {
        // `2>`: the number is no word.
        let is_number = |word: &Word| word.text.bytes().all(|byte| byte.is_ascii_digit());
        match self.now.is_bare && self.now.word.as_ref().is_some_and(is_number) {
            true => self.now.word = None,
            false => self.end_word(),
        }
        if sign == '<' && self.eat('<') {
            return match self.eat('<') {
                true => self.now.redirect = Some(Redirect::HereString),
                false => self.here_document(),
            };
        }
        if self.peek() == Some('(') {
            return self.script.doubted("it has a process substitution");
        }
        let is_duplicate = self.eat('&');
        let _ = !is_duplicate && (self.eat('>') || sign == '>' && self.eat('|'));
        self.now.redirect = Some(if is_duplicate { Redirect::Duplicate } else { Redirect::File });
    }

    fn here_document(&mut self) {
        self.script.doubted("it has a here-document");
        self.eat('-');
        while self.eat(' ') || self.eat('\t') {}
        let mut name = String::new();
        while let Some(letter) = self.peek().filter(|letter| !" \t\n;&|<>()".contains(*letter)) {
            self.at += letter.len_utf8();
            if !"'\"\\".contains(letter) {
                name.push(letter);
            }
        }
        self.until.push(name);
    }

    fn here_documents(&mut self) {
        for until in std::mem::take(&mut self.until) {
            let mut body = String::new();
            let mut is_closed = false;
            while self.at < self.text.len() && !is_closed {
                let rest = &self.text[self.at..];
                let len = rest.find('\n').map_or(rest.len(), |at| at + 1);
                self.at += len;
                is_closed = rest[..len].trim_start_matches('\t').trim_end_matches('\n') == until;
                if !is_closed {
                    body.push_str(&rest[..len]);
                }
            }
            if !is_closed {
                self.script.unread("it breaks off");
            }
            // Whether a shell reads it is not known.
            self.within(&body, false);
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.now.word.take() else { return };
        let Some(redirect) = self.now.redirect.take() else { return self.now.words.push(word) };
        let is_number = !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_digit());
        let is_harmless = match redirect {
            Redirect::File => word.text == "/dev/null",
            Redirect::Duplicate => is_number || word.text == "-" || word.text == "/dev/null",
            Redirect::HereString => false,
        };
        if word.is_opaque || !is_harmless {
            self.script.doubted("it reads or writes a file by redirection");
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if self.now.redirect.take().is_some() {
            self.script.unread("it breaks off");
        }
        let mut words = std::mem::take(&mut self.now.words);
        let assigned = words.iter().take_while(|word| is_assignment(&word.text)).count();
        if assigned > 0 {
            self.script.doubted("it sets a variable");
            words.drain(..assigned);
        }
        if words.is_empty() {
            return;
        }
        let text = text_run(&words);
        self.script.push(Simple { words, is_certain: self.is_certain });
        if let Some(text) = text {
            self.script.doubted(NESTED);
            self.within(&text, self.is_certain);
        }
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_[]".contains(&byte);
        !name.is_empty() && name.bytes().all(is_plain) && !name.as_bytes()[0].is_ascii_digit()
    })
}
