//! What a program that we start gets of our environment: what is named, and nothing else. A tool's
//! command, a hook and an MCP server get variables by their names, an agent by its product.

use std::collections::BTreeMap;

use qd_harness::Harness;

/// Our own environment. Values that are no text are left out: no program of ours needs one.
pub fn ours() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// The variables of `ours` that are named, in the order of their names.
pub(super) fn of_names<'a>(
    ours: &BTreeMap<String, String>,
    names: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, String> {
    let named = names.into_iter().filter_map(|name| ours.get_key_value(name));
    named.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What a program of the operator's gets, a hook or an MCP server: what every program expects, and
/// what its file names.
pub(super) fn of_program(
    ours: &BTreeMap<String, String>,
    env_allow: &[String],
) -> BTreeMap<String, String> {
    of_names(ours, EXPECTED.into_iter().chain(env_allow.iter().map(String::as_str)))
}

const EXPECTED: [&str; 5] = ["PATH", "HOME", "USER", "LANG", "TMPDIR"];

/// What an agent of that product gets of these variables: a person's surroundings, proxies and
/// certificates, the product's own settings and the keys of the providers it can use. Tokens of
/// other programs stay where they are.
pub fn of_agent(harness: Harness, ours: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let passed = ours.iter().filter(|(name, _)| is_passed(harness, name));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_passed(harness: Harness, name: &str) -> bool {
    let begins = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
    !NEVER.contains(&name)
        && (EXACT.contains(&name)
            || begins(&SURROUNDINGS)
            || begins(PROVIDERS)
            || begins(own(harness)))
}

/// A person's surroundings.
const EXACT: [&str; 24] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "SSH_AUTH_SOCK",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "VIRTUAL_ENV",
];

/// Whole families of it: locales, folders, proxies, certificates, tool chains.
const SURROUNDINGS: [&str; 16] = [
    "LC_",
    "XDG_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_",
    "NODE_",
    "NPM_CONFIG_",
    "GIT_",
    "CARGO_",
    "RUSTUP_",
    "PYTHON",
    "JAVA_HOME",
    "GOPATH",
    "NVM_",
];

/// Keys and endpoints of model providers: every agent can use several of them.
const PROVIDERS: &[&str] = &[
    "ANTHROPIC_",
    "OPENAI_",
    "GEMINI_",
    "GOOGLE_",
    "VERTEX",
    "AWS_",
    "AZURE_",
    "OPENROUTER_",
    "MISTRAL_",
    "GROQ_",
    "DEEPSEEK_",
    "XAI_",
    "OLLAMA_",
];

/// A session that runs inside another one must not be taken for it, and secrets of the client
/// around us are not for the client that we start.
const NEVER: [&str; 6] = [
    "CLAUDECODE",
    "CLAUDE_PID",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
];

/// The product's own variables.
fn own(harness: Harness) -> &'static [&'static str] {
    match harness {
        Harness::ClaudeCode => &["CLAUDE_", "DISABLE_", "OTEL_", "MAX_THINKING_TOKENS", "BASH_"],
        Harness::Codex => &["CODEX_", "RUST_LOG"],
        Harness::GeminiCli => &["GEMINI_", "CODE_ASSIST_"],
        Harness::KiloCode => &["KILO", "OPENCODE_"],
        Harness::Cline => &["CLINE_"],
        Harness::Opencode => &["OPENCODE_"],
        // Whatever it is, its settings are its own: nobody knows their names.
        Harness::Acp => &[""],
        // It is no program.
        Harness::Native => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(harness: Harness, passed: &[&str], kept: &[&str]) {
        let all = passed.iter().chain(kept);
        let ours = all.map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let given = of_agent(harness, &ours);
        let names: Vec<&str> = given.keys().map(String::as_str).collect();
        let mut expected = passed.to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected, "{harness:?}");
    }

    #[test]
    fn an_agent_gets_its_own_settings_and_the_keys_of_providers() {
        check(
            Harness::ClaudeCode,
            &["HOME", "PATH", "LC_ALL", "CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY", "https_proxy"],
            &["CODEX_HOME", "GITHUB_TOKEN", "QD_TOKEN", "DATABASE_URL"],
        );
        check(
            Harness::Codex,
            &["CODEX_HOME", "OPENAI_API_KEY", "XDG_RUNTIME_DIR"],
            &["CLAUDE_CONFIG_DIR", "SLACK_TOKEN"],
        );
    }

    #[test]
    fn a_client_that_runs_inside_another_is_not_told_so() {
        check(
            Harness::ClaudeCode,
            &["CLAUDE_CODE_MAX_RETRIES"],
            &["CLAUDECODE", "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_SESSION_ID"],
        );
    }
}
