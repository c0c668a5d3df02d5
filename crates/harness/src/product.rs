//! Agent products by the command lines of their processes, for those that nobody can read here.
//!
//! A process that runs and says nothing is shown as that. What would help is a fact about its
//! product, and stands beside it.

use crate::Harness;

/// An agent product that may run on this machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Product {
    /// As its makers write it.
    pub name: &'static str,
    /// What its program is called.
    programs: &'static [&'static str],
    /// Where a script of it lies, whatever runs it: `node_modules/<package>/`.
    packages: &'static [&'static str],
    /// First words behind the program with which it is no agent: servers, sign-ins, updates.
    errands: &'static [&'static str],
    /// Other programs have the same name: only in a terminal it is this one.
    pub is_common_word: bool,
    /// Sessions of it that are on the board in the same folder explain the process.
    pub harness: Option<Harness>,
    pub why: &'static str,
    pub help: &'static str,
}

const NOT_READ: &str = "Quarterdeck can't read this agent.";
const IN_ITS_TERMINAL: &str = "Look at its terminal.";

/// Every product that is known. The first that fits is it.
pub const PRODUCTS: [Product; 16] = [
    Product {
        harness: Some(Harness::ClaudeCode),
        errands: &[
            "agents",
            "attach",
            "auth",
            "bg-pty-host",
            "bg-spare",
            "config",
            "daemon",
            "doctor",
            "install",
            "logs",
            "mcp",
            "migrate-installer",
            "plugin",
            "setup-token",
            "stop",
            "update",
            "--version",
            "-v",
            "--help",
            "-h",
        ],
        ..product(
            "Claude Code",
            &["claude"],
            &["@anthropic-ai/claude-code"],
            "It hasn't opened a session yet, or keeps its files in a folder that isn't known here.",
            "It may ask in its terminal whether you trust the folder. Otherwise: qd hooks install claude-code",
        )
    },
    Product {
        harness: Some(Harness::Codex),
        errands: &[
            "app-server",
            "apply",
            "cloud",
            "completion",
            "debug",
            "features",
            "login",
            "logout",
            "mcp",
            "mcp-server",
            "sandbox",
            "--version",
            "-V",
            "--help",
            "-h",
        ],
        ..product(
            "Codex",
            &["codex"],
            &["@openai/codex"],
            "It hasn't begun a session yet, or keeps its files in a folder that isn't known here.",
            "Send it a prompt. If it stays here: qd hooks install codex",
        )
    },
    Product {
        harness: Some(Harness::GeminiCli),
        errands: &["extensions", "hooks", "mcp", "skills", "--version", "-v", "--help", "-h"],
        ..product(
            "Gemini CLI",
            &["gemini"],
            &["@google/gemini-cli"],
            "It hasn't written anything yet.",
            "Send it a prompt. If it stays here: qd hooks install gemini-cli",
        )
    },
    Product {
        harness: Some(Harness::Opencode),
        errands: &[
            "acp",
            "agent",
            "attach",
            "auth",
            "completion",
            "export",
            "github",
            "import",
            "mcp",
            "models",
            "serve",
            "stats",
            "uninstall",
            "upgrade",
            "web",
            "--version",
            "-v",
            "--help",
            "-h",
        ],
        ..product(
            "OpenCode",
            &["opencode", ".opencode"],
            &["opencode-ai"],
            "Its terminal has no server, so nothing outside can read it.",
            "Start it with a port: opencode --port 4096",
        )
    },
    Product {
        harness: Some(Harness::Opencode),
        errands: &[
            "acp",
            "attach",
            "auth",
            "mcp",
            "models",
            "serve",
            "upgrade",
            "web",
            "--version",
        ],
        ..product(
            "Kilo",
            &["kilo", "kilocode", ".kilo"],
            &["@kilocode/cli"],
            "Its terminal has no server, so nothing outside can read it.",
            "Start it with a port: kilo --port 4097",
        )
    },
    Product {
        harness: Some(Harness::Cline),
        errands: &["auth", "config", "hub", "mcp", "version", "--version", "--help"],
        ..product(
            "Cline",
            &["cline"],
            &["cline"],
            "A Cline that was started in a terminal can't be read.",
            "Start it from Quarterdeck: qd run cline",
        )
    },
    Product {
        errands: &["login", "mcp", "update", "--version", "--help"],
        ..product("GitHub Copilot CLI", &["copilot"], &["@github/copilot"], NOT_READ, COPILOT)
    },
    product("Cursor", &["cursor-agent"], &["cursor-agent"], NOT_READ, IN_ITS_TERMINAL),
    product("Aider", &["aider"], &["aider-chat", "aider"], NOT_READ, IN_ITS_TERMINAL),
    Product {
        is_common_word: true,
        errands: &[
            "configure",
            "down",
            "fix",
            "info",
            "postgres",
            "mysql",
            "sqlite3",
            "status",
            "up",
            "update",
            "version",
            "--version",
            "--help",
        ],
        ..product("Goose", &["goose"], &[], NOT_READ, GOOSE)
    },
    product("Qwen Code", &["qwen"], &["@qwen-code/qwen-code"], NOT_READ, QWEN),
    Product { is_common_word: true, ..product("Grok Build", &["grok"], &[], NOT_READ, GROK) },
    Product {
        is_common_word: true,
        ..product("Amp", &["amp"], &["@sourcegraph/amp"], NOT_READ, IN_ITS_TERMINAL)
    },
    Product {
        is_common_word: true,
        ..product("Crush", &["crush"], &["@charmland/crush"], NOT_READ, IN_ITS_TERMINAL)
    },
    Product {
        is_common_word: true,
        ..product("Droid", &["droid"], &["@factory/cli"], NOT_READ, IN_ITS_TERMINAL)
    },
    product("Kiro CLI", &["kiro-cli"], &[], NOT_READ, IN_ITS_TERMINAL),
];

const COPILOT: &str = "Start it from Quarterdeck as an ACP agent (docs/sessions.md): copilot --acp";
const GOOSE: &str = "Start it from Quarterdeck as an ACP agent (docs/sessions.md): goose acp";
const QWEN: &str = "Start it from Quarterdeck as an ACP agent (docs/sessions.md): qwen --acp";
const GROK: &str = "Start it from Quarterdeck as an ACP agent (docs/sessions.md): grok agent stdio";

const fn product(
    name: &'static str,
    programs: &'static [&'static str],
    packages: &'static [&'static str],
    why: &'static str,
    help: &'static str,
) -> Product {
    let (errands, is_common_word, harness) = (&[] as &[&str], false, None);
    Product { name, programs, packages, errands, is_common_word, harness, why, help }
}

impl Product {
    /// The product that a process was started as, by its words: the program and what follows.
    pub fn of_command(words: &[&str]) -> Option<&'static Self> {
        let program = words.first()?;
        let (script, rest) = match is_interpreter(file_name(program)) {
            false => (*program, &words[1..]),
            true => {
                let at = 1 + words[1..].iter().position(|word| !word.starts_with('-'))?;
                (words[at], &words[at + 1..])
            }
        };
        let stem = file_name(script);
        let stem = stem.strip_suffix(".js").or(stem.strip_suffix(".py")).unwrap_or(stem);
        let fits = |product: &&Self| {
            product.programs.contains(&stem)
                || product.packages.iter().any(|package| lies_in(script, package))
        };
        let found = PRODUCTS.iter().find(fits)?;
        let is_errand = rest.first().is_some_and(|word| found.errands.contains(word));
        (!is_errand).then_some(found)
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_interpreter(program: &str) -> bool {
    let version = |tail: &str| tail.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    ["node", "bun", "deno", "python"]
        .into_iter()
        .any(|name| program.strip_prefix(name).is_some_and(version))
}

fn lies_in(script: &str, package: &str) -> bool {
    let (mut rest, folder) = (script, format!("/node_modules/{package}"));
    while let Some(at) = rest.find(&folder) {
        rest = &rest[at + folder.len()..];
        // A package for one platform has that behind its name.
        if rest.starts_with('/') || rest.starts_with("-linux") || rest.starts_with("-darwin") {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(Product::of_command(&words).map(|product| product.name), expected, "{line}");
    }

    #[test]
    fn a_product_is_known_by_its_program_or_its_package() {
        check("claude --permission-mode manual", Some("Claude Code"));
        check("/c/node_modules/@anthropic-ai/claude-code-linux-x64/claude", Some("Claude Code"));
        check("node /usr/lib/node_modules/@openai/codex/bin/codex.js", Some("Codex"));
        check("node --no-warnings /usr/bin/gemini", Some("Gemini CLI"));
        check("opencode", Some("OpenCode"));
        check("/h/node_modules/opencode-linux-x64/bin/opencode", Some("OpenCode"));
        check("node /h/.npm-global/bin/cline", Some("Cline"));
        check("node /x/node_modules/@github/copilot/index.js", Some("GitHub Copilot CLI"));
        check("/h/.local/bin/cursor-agent", Some("Cursor"));
        check("/usr/bin/python3.12 /h/.local/bin/aider --model x", Some("Aider"));
        check("goose session", Some("Goose"));
        check("node /usr/bin/qwen", Some("Qwen Code"));
        check("grok", Some("Grok Build"));
    }

    #[test]
    fn what_is_no_agent_is_not_taken_for_one() {
        for line in [
            "vim claude.md",
            "/usr/bin/less /h/claude",
            "claude daemon run --origin transient",
            "claude mcp serve",
            "codex app-server",
            "opencode serve --port 4096",
            "goose postgres up",
            "node /h/acme/claude_client/server.js",
            "node /h/node_modules/declined/x.js",
            "python3 -m http.server",
            "nodemon claude",
            "bash -c claude",
            "node",
            "",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn every_product_says_why_and_what_would_help() {
        for product in &PRODUCTS {
            let Product { name, programs, why, help, .. } = product;
            assert!(!name.is_empty() && !programs.is_empty(), "{name}");
            assert!(why.ends_with('.') && !help.is_empty(), "{name}");
        }
    }
}
