//! A patch of `crates/harness/mutations`: it switches one rule off, and says what fails then.
//!
//! Above the diff stand one sentence and lines that say what fails: `Fails: …` names captures
//! that are untrue then, `Fails by hooks and files: …` and its like those that are untrue where
//! nothing else is heard, `Fails test: …` a test of our own in cargo's words. `cargo xtask rules`
//! reads this file too, so it knows nothing but text.

/// One rule switched off.
#[derive(Debug)]
pub struct Patch {
    /// The file's name without its ending: the rule's number, then what is switched off.
    pub name: String,
    pub says: String,
    pub fails: Vec<Fails>,
    pub hunks: Vec<Hunk>,
}

/// Something that fails while the rule is off.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fails {
    pub how: How,
    /// A capture, or the words that make cargo run one test.
    pub what: String,
}

/// How it is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    Whole,
    /// Every signal twice.
    Doubled,
    /// Neighbours swapped.
    Swapped,
    HooksAndFiles,
    RegistryAndFiles,
    /// Session files and processes.
    Files,
    /// It is no capture but a test of our own.
    Test,
}

/// Lines of one file, as they are and as they are to be.
#[derive(Debug, PartialEq, Eq)]
pub struct Hunk {
    pub path: String,
    pub old: String,
    pub new: String,
}

impl How {
    const ALL: [Self; 7] = [
        Self::Whole,
        Self::Doubled,
        Self::Swapped,
        Self::HooksAndFiles,
        Self::RegistryAndFiles,
        Self::Files,
        Self::Test,
    ];

    /// What stands after `Fails`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Doubled => " doubled",
            Self::Swapped => " swapped",
            Self::HooksAndFiles => " by hooks and files",
            Self::RegistryAndFiles => " by registry and files",
            Self::Files => " by files",
            Self::Test => " test",
        }
    }
}

impl Patch {
    /// Reads a patch; the error says what is wrong with it.
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        let at = text.find("--- a/").ok_or("it has no diff")?;
        let (head, diff) = text.split_at(at);
        let says = head.lines().next().unwrap_or_default().to_owned();
        let fails: Vec<Fails> = head.lines().skip(1).flat_map(fails_in).collect();
        if says.is_empty() || fails.is_empty() {
            return Err("it begins with a sentence and what fails".to_owned());
        }
        let hunks = hunks(diff)?;
        Ok(Self { name: name.to_owned(), says, fails, hunks })
    }

    /// The rule it is about.
    pub fn rule(&self) -> u32 {
        let number = self.name.split('-').next().unwrap_or_default();
        number.parse().unwrap_or_default()
    }
}

impl Hunk {
    /// The file with the hunk applied; `None` if its old lines are not there exactly once.
    pub fn apply(&self, text: &str) -> Option<String> {
        let whole_lines = |at: usize| at == 0 || text[..at].ends_with('\n');
        let mut places = text.match_indices(&self.old).filter(|(at, _)| whole_lines(*at));
        let (at, _) = places.next()?;
        if places.next().is_some() {
            return None;
        }
        Some([&text[..at], &self.new, &text[at + self.old.len()..]].concat())
    }
}

fn fails_in(line: &str) -> Vec<Fails> {
    let Some((heading, names)) = line.split_once(": ") else { return Vec::new() };
    let how = heading
        .strip_prefix("Fails")
        .and_then(|name| How::ALL.into_iter().find(|how| how.name() == name));
    let fails = |how: How, what: &str| Fails { how, what: what.to_owned() };
    match how {
        None => Vec::new(),
        Some(How::Test) => vec![fails(How::Test, names.trim())],
        Some(how) => names.split_whitespace().map(|name| fails(how, name)).collect(),
    }
}

fn hunks(diff: &str) -> Result<Vec<Hunk>, String> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut path = "";
    for line in diff.lines() {
        if line.starts_with("--- a/") {
            continue;
        }
        if let Some(named) = line.strip_prefix("+++ b/") {
            path = named;
        } else if line.starts_with("@@ ") {
            hunks.push(Hunk { path: path.to_owned(), old: String::new(), new: String::new() });
        } else {
            let hunk = hunks.last_mut().ok_or("lines before the first hunk")?;
            let (sign, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
            let (in_old, in_new) = match sign {
                " " => (true, true),
                "-" => (true, false),
                "+" => (false, true),
                _ => return Err(format!("no line of a diff: {line}")),
            };
            for (is_in, side) in [(in_old, &mut hunk.old), (in_new, &mut hunk.new)] {
                if is_in {
                    side.push_str(rest);
                    side.push('\n');
                }
            }
        }
    }
    Ok(hunks)
}
