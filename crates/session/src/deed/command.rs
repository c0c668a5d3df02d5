//! A shell command line, read as far as its simple commands and how they hang together.
//!
//! Not a shell. Quotes, substitutions and here-documents are stepped over, never looked into, so
//! a commit message that says `cargo test` runs no test. What an exit code says of one command
//! among several is answered here as well: `cargo test | tail` returns what `tail` returned.

/// Most simple commands of a line that are read. Nobody types more; a script is no line.
const STEPS_MAX: usize = 32;

/// A command line cut into its simple commands.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub steps: Vec<Step>,
    /// It broke off inside a quotation or a substitution of its last step.
    pub is_open: bool,
    /// More may have followed.
    pub is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What stands between it and the step before.
    pub joint: Joint,
    pub words: Vec<String>,
    /// It runs on while the line goes on: its own `&` follows.
    pub is_background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    And,
    Or,
    /// `;`, a new line, the beginning.
    Then,
    Pipe,
}

impl Line {
    /// Reads a command; `is_cut` if its end may be missing.
    pub fn read(text: &str, is_cut: bool) -> Self {
        let mut reader = Reader::new(text);
        reader.run();
        reader.end_step(Joint::Then);
        let mut line = Self { steps: reader.steps, is_open: reader.is_open, is_cut };
        line.is_cut |= line.steps.len() >= STEPS_MAX;
        // `bash -lc '…'`: what it runs is the line.
        if let [step] = line.steps.as_slice()
            && let Some(inner) = shell_script(&step.words)
        {
            return Self::read(inner, line.is_cut || line.is_open);
        }
        line
    }

    /// If the line returned zero, the step did.
    pub fn success_tells(&self, at: usize) -> bool {
        let passes = |step: &Step| match step.joint {
            Joint::And => true,
            Joint::Pipe => self.has_pipefail(),
            Joint::Or | Joint::Then => false,
        };
        !self.is_cut
            && self.steps[at].joint != Joint::Or
            && self.steps[at..].iter().all(|step| !step.is_background)
            && self.steps[at + 1..].iter().all(passes)
    }

    /// If the line returned an error, it was the step's: what else could fail never does.
    pub fn failure_tells(&self, at: usize) -> bool {
        let follows = |step: &Step| match step.joint {
            Joint::And => step.is_harmless(),
            Joint::Pipe => self.has_pipefail() && step.is_harmless(),
            Joint::Or | Joint::Then => false,
        };
        let mut before = at;
        while self.steps[before].joint == Joint::And && before > 0 {
            before -= 1;
            if !self.steps[before].is_harmless() {
                return false;
            }
        }
        !self.is_cut
            && self.steps[before].joint != Joint::Or
            && self.steps[at..].iter().all(|step| !step.is_background)
            && self.steps[at + 1..].iter().all(follows)
    }

    fn has_pipefail(&self) -> bool {
        self.steps.iter().any(|step| {
            step.words.first().is_some_and(|word| word == "set")
                && step.words.iter().any(|word| word == "pipefail")
        })
    }
}

impl Step {
    /// Steps that are there for the others, and do not fail where those ran before.
    fn is_harmless(&self) -> bool {
        const HARMLESS: [&str; 20] = [
            ":", "cat", "cd", "clear", "date", "echo", "exit", "export", "head", "ls", "mkdir",
            "printf", "pushd", "pwd", "set", "source", "tail", "tee", "true", "unset",
        ];
        let command = self.words.iter().find(|word| !is_assignment(word));
        command.is_none_or(|word| HARMLESS.contains(&word.as_str()))
    }
}

/// `NAME=value` before a command.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !name.is_empty() && name.bytes().all(plain) && !name.as_bytes()[0].is_ascii_digit()
    })
}

/// The last part of a path: `./gradlew` is `gradlew`.
pub fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn shell_script(words: &[String]) -> Option<&str> {
    let shells = ["bash", "sh", "zsh", "dash"];
    let (shell, rest) = words.split_first()?;
    let [flag, script, ..] = rest else { return None };
    let runs = flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c');
    (shells.contains(&program(shell)) && runs).then_some(script.as_str())
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    steps: Vec<Step>,
    joint: Joint,
    words: Vec<String>,
    /// The word being read; an empty one in quotes is a word, too.
    word: Option<String>,
    /// The line that ends a here-document, once the line that announced it is over.
    until: Option<String>,
    is_open: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let (steps, words) = (Vec::new(), Vec::new());
        let joint = Joint::Then;
        Self { text, at: 0, steps, joint, words, word: None, until: None, is_open: false }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn run(&mut self) {
        while let Some(letter) = self.rest().chars().next() {
            if self.steps.len() >= STEPS_MAX {
                return;
            }
            self.at += letter.len_utf8();
            match letter {
                '\'' => self.quoted_plainly(),
                '"' => self.quoted(),
                '\\' => self.escaped(),
                '$' if self.rest().starts_with('(') => self.substitution(),
                '`' => self.through('`'),
                '#' if self.word.is_none() => self.comment(),
                '\n' => self.new_line(),
                ';' => self.end_step(Joint::Then),
                '&' => self.ampersand(),
                '|' => self.bar(),
                '<' if self.rest().starts_with('<') => self.here_document(),
                // Groups: what is inside counts as if it stood there alone.
                '(' | ')' if self.word.is_none() => {}
                ')' => self.end_word(),
                space if space.is_whitespace() => self.end_word(),
                other => self.push(other),
            }
        }
    }

    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    /// Takes what comes before `end` into the word, and steps over `end`.
    fn through(&mut self, end: char) {
        let rest = self.rest();
        let len = rest.find(end);
        self.is_open |= len.is_none();
        let inside = &rest[..len.unwrap_or(rest.len())];
        self.word.get_or_insert_default().push_str(inside);
        self.at += inside.len() + len.map_or(0, |_| end.len_utf8());
    }

    fn quoted_plainly(&mut self) {
        self.through('\'');
    }

    fn quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(letter) = self.rest().chars().next() {
            self.at += letter.len_utf8();
            match letter {
                '"' => return,
                '\\' => self.escaped(),
                '$' if self.rest().starts_with('(') => self.substitution(),
                other => self.push(other),
            }
        }
        self.is_open = true;
    }

    fn escaped(&mut self) {
        if let Some(letter) = self.rest().chars().next() {
            self.at += letter.len_utf8();
            if letter != '\n' {
                self.push(letter);
            }
        }
    }

    /// `$(…)`: what it would say is not known here.
    fn substitution(&mut self) {
        self.push('$');
        let mut depth = 0_usize;
        while let Some(letter) = self.rest().chars().next() {
            self.at += letter.len_utf8();
            self.push(letter);
            match letter {
                '(' => depth += 1,
                ')' if depth == 1 => return,
                ')' => depth -= 1,
                _ => {}
            }
        }
        self.is_open = true;
    }

    fn comment(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    fn new_line(&mut self) {
        self.end_step(Joint::Then);
        let Some(until) = self.until.take() else { return };
        while !self.rest().is_empty() {
            let rest = self.rest();
            let len = rest.find('\n').map_or(rest.len(), |at| at + 1);
            self.at += len;
            if rest[..len].trim() == until {
                return;
            }
        }
    }

    fn here_document(&mut self) {
        self.at += 1;
        self.end_word();
        if self.rest().starts_with('<') {
            // A here-string is a word.
            self.at += 1;
            return;
        }
        let rest = self.rest();
        let after = rest.trim_start_matches(['-', ' ', '\'', '"', '\\']);
        let len = after.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let name = &after[..len.unwrap_or(after.len())];
        self.until = (!name.is_empty()).then(|| name.to_owned());
        self.at += rest.len() - after.len() + name.len();
        if self.rest().starts_with(['\'', '"']) {
            self.at += 1;
        }
    }

    fn ampersand(&mut self) {
        // `2>&1`, `&>file`: no operators.
        let redirects = self.word.as_ref().is_some_and(|word| word.ends_with('>'));
        if redirects || self.rest().starts_with('>') {
            return self.push('&');
        }
        if self.rest().starts_with('&') {
            self.at += 1;
            return self.end_step(Joint::And);
        }
        let before = self.steps.len();
        self.end_step(Joint::Then);
        if let Some(step) = self.steps.get_mut(before) {
            step.is_background = true;
        }
    }

    fn bar(&mut self) {
        let joint = match self.rest().chars().next() {
            Some('|') => Joint::Or,
            Some('&') => Joint::Pipe,
            Some(_) | None => return self.end_step(Joint::Pipe),
        };
        self.at += 1;
        self.end_step(joint);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    /// The step is over; `next` stands before the one that follows.
    fn end_step(&mut self, next: Joint) {
        self.end_word();
        if self.words.is_empty() {
            // `a &&` and a new line: the operator counts.
            if next != Joint::Then {
                self.joint = next;
            }
            return;
        }
        let words = std::mem::take(&mut self.words);
        self.steps.push(Step { joint: self.joint, words, is_background: false });
        self.joint = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> Vec<(Joint, String)> {
        let line = Line::read(text, false);
        line.steps.into_iter().map(|step| (step.joint, step.words.join(" "))).collect()
    }

    #[track_caller]
    fn check(text: &str, steps: &[(Joint, &str)]) {
        let steps: Vec<_> = steps.iter().map(|(joint, words)| (*joint, (*words).into())).collect();
        assert_eq!(joined(text), steps, "{text}");
    }

    #[test]
    fn a_line_is_cut_where_a_shell_would_cut_it() {
        use Joint::*;
        check("cd a && b c", &[(Then, "cd a"), (And, "b c")]);
        check("a 2>&1 | tail -5", &[(Then, "a 2>&1"), (Pipe, "tail -5")]);
        check("a &>log || b; c\nd", &[(Then, "a &>log"), (Or, "b"), (Then, "c"), (Then, "d")]);
        check("(cd a && b)", &[(Then, "cd a"), (And, "b")]);
        check("a \\\n  b # c && d", &[(Then, "a b")]);
        check("echo 'a && b' \"c; $(d | e)\"", &[(Then, "echo a && b c; $(d | e)")]);
        check("a &&\nb", &[(Then, "a"), (And, "b")]);
        check("bash -lc 'a && b'", &[(Then, "a"), (And, "b")]);
        check("/bin/sh -c \"a\"", &[(Then, "a")]);
        check("", &[]);
    }

    #[test]
    fn what_is_quoted_or_piped_in_is_no_command() {
        use Joint::*;
        check("cat > x <<'EOF'\ncargo test\nEOF\nb", &[(Then, "cat > x"), (Then, "b")]);
        check(
            "git commit -m \"$(cat <<'EOF'\nIt's done; cargo test\nEOF\n)\" && b",
            &[(Then, "git commit -m $(cat <<'EOF'\nIt's done; cargo test\nEOF\n)"), (And, "b")],
        );
        check("a <<< 'x y'", &[(Then, "a x y")]);
    }

    #[test]
    fn a_line_that_breaks_off_says_so() {
        assert!(Line::read("git commit -m \"half a", true).is_open);
        assert!(Line::read("git commit -m 'half a", true).is_open);
        assert!(Line::read("a $(b", true).is_open);
        assert!(!Line::read("a b", false).is_open);
        let long = "a; ".repeat(100);
        assert!(Line::read(&long, false).is_cut);
    }

    /// Whether zero and whether an error of the line say the same of the step that is `t`.
    #[track_caller]
    fn tells(text: &str, success: bool, failure: bool) {
        let line = Line::read(text, text.ends_with('…'));
        let at = line.steps.iter().position(|step| step.words.contains(&"t".to_owned()));
        let at = at.expect("a step called t");
        assert_eq!((line.success_tells(at), line.failure_tells(at)), (success, failure), "{text}");
    }

    #[test]
    fn an_exit_code_tells_only_of_what_it_is_about() {
        tells("t", true, true);
        tells("cd x && t", true, true);
        tells("export A=1; t", true, true);
        tells("make && t", true, false);
        tells("make; t", true, true);
        tells("t && git push", true, false);
        tells("t && echo fine", true, true);
        tells("t | tail -5", false, false);
        tells("set -o pipefail; t | tail -5", true, true);
        tells("t || true", false, false);
        tells("x || t", false, false);
        tells("t; echo $?", false, false);
        tells("t &", false, false);
        tells("t && a …", false, false);
    }
}
