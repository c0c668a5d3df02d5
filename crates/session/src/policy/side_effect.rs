//! Options and operands with which a command that usually reads writes a file or runs a program:
//! `git log --output=x`, `find -delete`, `sort -o x`, `rg --pre x`, `sed -i`, `env x`.
//!
//! A rule that allows `git log *` means the reading. What stands here is therefore not covered by a
//! rule's `*`: the rule has to spell it out. The list cannot be whole (docs/policy.md says so); it
//! errs to one side, so an abbreviation or a bundle that may be such an option counts as one.

use super::shell::{Word, program};

/// Why the command may do more than its name says; `is_named` says whether the rule spells a word
/// out.
pub fn side_effect(words: &[Word], is_named: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    let (first, rest) = words.split_first()?;
    let name = program(&first.text);
    if RUNNERS.contains(&name) {
        return of_runner(name, rest, is_named);
    }
    if name == "git" {
        return of_git(rest, is_named);
    }
    let reader = READERS.iter().find(|reader| reader.names.contains(&name))?;
    reader.side_effect(rest, is_named)
}

const OPTION: &str = "one of its options may write a file or run a program";
const PATTERN: &str = "the shell may put a file's name where an option can stand";
const RUNS: &str = "it may run another command";
const WRITES: &str = "it may write a file";
const SCRIPT: &str = "what its script does is not understood";

/// Programs whose operands are a command.
pub const RUNNERS: [&str; 22] = [
    "builtin", "busybox", "chroot", "command", "doas", "env", "exec", "flock", "ionice", "nice",
    "nohup", "parallel", "pkexec", "setsid", "stdbuf", "strace", "sudo", "time", "timeout",
    "unshare", "watch", "xargs",
];

fn of_runner(name: &str, rest: &[Word], is_named: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    // `command -v git` only says where git is.
    if name == "command" && rest.first().is_some_and(|word| ["-v", "-V"].contains(&&*word.text)) {
        return None;
    }
    // `env -S 'a command'`.
    let splits = |word: &&Word| name == "env" && is_option(word, &["split-string"], "S", "Cu");
    if rest.iter().any(|word| splits(&word) && !is_named(&word.text)) {
        return Some(RUNS);
    }
    let is_measure = |text: &str| text.starts_with(|letter: char| letter.is_ascii_digit());
    let is_operand = |word: &Word| {
        !word.text.starts_with('-') && !word.text.contains('=') && !is_measure(&word.text)
    };
    let Some(at) = rest.iter().position(is_operand) else {
        // `env` prints the environment, `time` nothing.
        return rest.iter().any(|word| word.text.contains('=')).then_some(RUNS);
    };
    if !is_named(&rest[at].text) {
        return Some(RUNS);
    }
    // What comes from standard input may be an option of the inner command.
    let adds_words = ["parallel", "xargs"].contains(&name);
    let inner = &rest[at..];
    if adds_words && has_side_effects(program(&inner[0].text)) {
        return Some(OPTION);
    }
    side_effect(inner, is_named)
}

fn has_side_effects(name: &str) -> bool {
    name == "git"
        || RUNNERS.contains(&name)
        || READERS.iter().any(|reader| reader.names.contains(&name))
}

fn of_git(rest: &[Word], is_named: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    let at = rest.iter().position(|word| !word.text.starts_with('-')).unwrap_or(rest.len());
    // Before the subcommand: `-c alias.x='!y'`, `--exec-path=x`, `-C elsewhere`, `--paginate`. All
    // but these few decide where git reads its settings, which name programs.
    const PLAIN: [&str; 5] = ["--no-pager", "-P", "--version", "--help", "--no-optional-locks"];
    let is_plain = |word: &Word| PLAIN.contains(&word.text.as_str()) || is_named(&word.text);
    if !rest[..at].iter().all(is_plain) {
        return Some(OPTION);
    }
    let (sub, rest) = rest[at..].split_first()?;
    let short = match sub.text.as_str() {
        "archive" | "format-patch" => "o",
        "grep" => "O",
        "difftool" | "rebase" => "x",
        "clone" | "ls-remote" | "fetch" | "pull" => "u",
        _ => "",
    };
    let git = Reader { long: GIT_LONG, short, ..GIT };
    // `ext::sh -c x` is an address that runs a program.
    let is_transport = |word: &Word| word.text.contains("ext::") && !is_named(&word.text);
    if rest.iter().any(is_transport) {
        return Some(RUNS);
    }
    git.side_effect(rest, is_named)
}

const GIT_LONG: &[&str] = &[
    "config",
    "exec",
    "ext-diff",
    "extcmd",
    "filters",
    "open-files-in-pager",
    "output",
    "output-directory",
    "receive-pack",
    "show-signature",
    "template",
    "textconv",
    "upload-pack",
];

const GIT: Reader = Reader { names: &["git"], ..PLAIN };

/// A program that usually only reads, and how it does more.
struct Reader {
    names: &'static [&'static str],
    /// Without their dashes. Most programs take any beginning that only one option has.
    long: &'static [&'static str],
    /// Letters, which may stand in a bundle.
    short: &'static str,
    /// Letters that take a value: what follows in the bundle is none.
    valued: &'static str,
    /// Whole words, with or without `=value` behind them.
    words: &'static [&'static str],
    operands: Operands,
}

enum Operands {
    Read,
    /// Every one is a file that is written.
    Written,
    /// The second one is.
    SecondWritten,
    /// The first one is a script, and it is plain if this says so.
    Script(fn(&str) -> bool),
    /// The first word may be a bundle without a dash: `tar xf`.
    Bundle,
    /// `+x` is a command: `less +!x`.
    Commands,
}

const PLAIN: Reader =
    Reader { names: &[], long: &[], short: "", valued: "", words: &[], operands: Operands::Read };

const READERS: &[Reader] = &[
    Reader {
        names: &["find"],
        words: &[
            "-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok",
            "-okdir",
        ],
        ..PLAIN
    },
    Reader { names: &["fd", "fdfind"], long: &["exec", "exec-batch"], short: "xX", ..PLAIN },
    Reader { names: &["rg"], long: &["hostname-bin", "pre"], ..PLAIN },
    Reader { names: &["ag", "bat", "batcat"], long: &["pager"], ..PLAIN },
    Reader {
        names: &["sort"],
        long: &["compress-program", "output", "temporary-directory"],
        short: "oT",
        valued: "kSt",
        ..PLAIN
    },
    Reader { names: &["tree"], short: "oR", valued: "HILPT", ..PLAIN },
    Reader { names: &["iconv"], long: &["output"], short: "o", valued: "ft", ..PLAIN },
    Reader { names: &["date"], long: &["set"], short: "s", valued: "dfrI", ..PLAIN },
    Reader { names: &["tee"], operands: Operands::Written, ..PLAIN },
    Reader { names: &["uniq"], valued: "fsw", operands: Operands::SecondWritten, ..PLAIN },
    Reader {
        names: &["xxd"],
        short: "r",
        valued: "cglos",
        operands: Operands::SecondWritten,
        ..PLAIN
    },
    Reader {
        names: &["sed", "gsed"],
        long: &["expression", "file", "in-place"],
        short: "efiI",
        valued: "l",
        operands: Operands::Script(is_plain_sed),
        ..PLAIN
    },
    Reader {
        names: &["awk", "gawk", "mawk", "nawk", "original-awk"],
        long: &[
            "debug",
            "dump-variables",
            "exec",
            "file",
            "include",
            "load",
            "pretty-print",
            "profile",
            "source",
        ],
        short: "DEWdefilop",
        valued: "Fv",
        operands: Operands::Script(is_plain_awk),
        ..PLAIN
    },
    Reader {
        names: &["tar", "bsdtar", "gtar"],
        long: &[
            "append",
            "catenate",
            "checkpoint-action",
            "concatenate",
            "create",
            "delete",
            "directory",
            "extract",
            "get",
            "index-file",
            "info-script",
            "listed-incremental",
            "new-volume-script",
            "rmt-command",
            "rsh-command",
            "to-command",
            "update",
            "use-compress-program",
            "volno-file",
        ],
        short: "ACFIKMcgrux",
        valued: "LNTVXbfH",
        operands: Operands::Bundle,
        ..PLAIN
    },
    Reader {
        names: &["less", "more", "most"],
        long: &["LOG-FILE", "lesskey-content", "lesskey-file", "lesskey-src", "log-file"],
        short: "Ook",
        operands: Operands::Commands,
        ..PLAIN
    },
    Reader {
        names: &["man"],
        long: &["html", "pager", "preprocessor"],
        short: "HP",
        valued: "CELMRSemprs",
        ..PLAIN
    },
    Reader {
        names: &["curl"],
        long: &[
            "alt-svc",
            "config",
            "cookie-jar",
            "data",
            "data-ascii",
            "data-binary",
            "data-urlencode",
            "dump-header",
            "etag-save",
            "form",
            "hsts",
            "json",
            "libcurl",
            "output",
            "output-dir",
            "remote-name",
            "remote-name-all",
            "stderr",
            "trace",
            "trace-ascii",
            "upload-file",
            "write-out",
        ],
        short: "DFKOTcdow",
        valued: "ACEHPQUXYabehmrtuxyz",
        ..PLAIN
    },
    Reader { names: &["yq"], long: &["in-place", "inplace", "split-exp"], short: "is", ..PLAIN },
    Reader {
        names: &["go"],
        words: &["-exec", "-modfile", "-o", "-overlay", "-toolexec", "-vettool", "-w"],
        ..PLAIN
    },
];

impl Reader {
    fn side_effect(&self, rest: &[Word], is_named: &dyn Fn(&str) -> bool) -> Option<&'static str> {
        let mut operands = 0;
        let mut is_value = false;
        let mut takes_options = true;
        for (at, word) in rest.iter().enumerate() {
            if std::mem::take(&mut is_value) || is_named(&word.text) {
                is_value |= self.ends_with_valued(&word.text) && takes_options;
                operands += usize::from(!word.text.starts_with('-'));
                continue;
            }
            // `*` may become a file called `--output=x`.
            if takes_options && word.is_pattern && word.text.starts_with(['*', '?', '[', '-']) {
                return Some(PATTERN);
            }
            if takes_options && word.text == "--" {
                takes_options = false;
            } else if takes_options && word.text.starts_with('-') && word.text.len() > 1 {
                if is_option(word, self.long, self.short, self.valued) || self.has_word(word) {
                    return Some(OPTION);
                }
                is_value = self.ends_with_valued(&word.text);
            } else if let Some(why) = self.operand(&word.text, at, operands) {
                return Some(why);
            } else {
                operands += 1;
            }
        }
        None
    }

    fn has_word(&self, word: &Word) -> bool {
        let name = word.text.split('=').next().unwrap_or_default();
        let single = name.strip_prefix('-').filter(|rest| rest.starts_with('-')).unwrap_or(name);
        self.words.contains(&single)
    }

    /// The next word is this option's value.
    fn ends_with_valued(&self, text: &str) -> bool {
        let Some(bundle) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            return false;
        };
        bundle.find(|letter| self.valued.contains(letter)).is_some_and(|at| at + 1 == bundle.len())
    }

    fn operand(&self, text: &str, at: usize, before: usize) -> Option<&'static str> {
        match self.operands {
            Operands::Read => None,
            Operands::Written => (text != "/dev/null").then_some(WRITES),
            Operands::SecondWritten => (before > 0).then_some(WRITES),
            Operands::Script(is_plain) => (before == 0 && !is_plain(text)).then_some(SCRIPT),
            Operands::Bundle => {
                let is_bundle = at == 0 && is_bundle_of(text, self.short, self.valued);
                is_bundle.then_some(OPTION)
            }
            Operands::Commands => text.starts_with('+').then_some(RUNS),
        }
    }
}

fn is_option(word: &Word, long: &[&str], short: &str, valued: &str) -> bool {
    let text = word.text.as_str();
    match text.strip_prefix("--") {
        Some(name) => {
            let name = name.split('=').next().unwrap_or_default();
            // A short beginning of one may also be that of a harmless option.
            name != "text" && !name.is_empty() && long.iter().any(|known| known.starts_with(name))
        }
        None => text.strip_prefix('-').is_some_and(|text| is_bundle_of(text, short, valued)),
    }
}

/// A letter of `short` stands in it before one that takes the rest as its value.
fn is_bundle_of(text: &str, short: &str, valued: &str) -> bool {
    let letters = text.chars().take_while(|letter| !valued.contains(*letter));
    letters.into_iter().any(|letter| short.contains(letter))
}

/// `5p`, `$d`, `/x/,/y/p`, `s/a/b/g`: no `w`, `r`, `e` and no second command.
fn is_plain_sed(script: &str) -> bool {
    let Some(rest) = after_address(script) else { return false };
    let rest = match rest.strip_prefix(',') {
        Some(second) => match after_address(second) {
            Some(rest) => rest,
            None => return false,
        },
        None => rest,
    };
    let rest = rest.trim_start_matches(['!', ' ']);
    if let Some(substitution) = rest.strip_prefix('s') {
        let mut letters = substitution.chars();
        let Some(mark) = letters.next().filter(|mark| !mark.is_alphanumeric()) else {
            return false;
        };
        let parts: Vec<&str> = letters.as_str().split(mark).collect();
        let [_, _, flags] = parts.as_slice() else { return false };
        // An escaped mark would move the parts.
        let is_plain = !substitution.contains(['\n', '\\']) && mark != '\\';
        return is_plain && flags.chars().all(|flag| "gpiI0123456789".contains(flag));
    }
    matches!(rest, "p" | "d" | "q" | "=" | "l" | "P" | "D")
}

/// What stands behind a line's number, `$` or `/…/`; all of it where there is none.
fn after_address(script: &str) -> Option<&str> {
    if let Some(pattern) = script.strip_prefix('/') {
        let (inside, rest) = pattern.split_once('/')?;
        return (!inside.contains(['\\', '\n'])).then_some(rest);
    }
    let script = script.strip_prefix('$').unwrap_or(script);
    Some(script.trim_start_matches(|letter: char| "0123456789+~".contains(letter)))
}

/// It neither writes, nor runs, nor loads anything.
fn is_plain_awk(script: &str) -> bool {
    !script.contains(['>', '|', '@', '\\'])
        && !["system", "getline"].iter().any(|word| script.contains(word))
}
