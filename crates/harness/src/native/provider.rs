//! Who is asked: the two languages models are spoken to in.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Provider {
    /// Anthropic Messages.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// Chat completions of OpenAI, or of anybody who speaks them.
    #[serde(rename = "openai")]
    OpenAi,
}

impl Provider {
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// Where it is unless the operator says otherwise.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
        }
    }

    /// The address of a request below a base, as operators write bases: Anthropic's without the
    /// version, OpenAI's with it; either is understood.
    pub fn url(self, base: &str) -> String {
        let base = base.trim_end_matches('/');
        let after_host = base.split_once("://").map_or(base, |(_, rest)| rest);
        let is_bare = !after_host.contains('/');
        match self {
            Self::Anthropic if base.ends_with("/v1") => format!("{base}/messages"),
            Self::Anthropic => format!("{base}/v1/messages"),
            Self::OpenAi if is_bare => format!("{base}/v1/chat/completions"),
            Self::OpenAi => format!("{base}/chat/completions"),
        }
    }

    /// The header that carries a key, and how the key stands in it.
    pub fn key_header(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Anthropic => ("x-api-key", key.to_owned()),
            Self::OpenAi => ("authorization", format!("Bearer {key}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_understood_with_its_version_and_without() {
        let check = |provider: Provider, base: &str, url: &str| {
            assert_eq!(provider.url(base), url);
            assert_eq!(provider.url(&format!("{base}/")), url);
        };
        use Provider::{Anthropic, OpenAi};
        check(Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages");
        check(Anthropic, "https://x.example/v1", "https://x.example/v1/messages");
        check(Anthropic, "https://x.example/anthropic", "https://x.example/anthropic/v1/messages");
        check(OpenAi, "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions");
        check(OpenAi, "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions");
        check(OpenAi, "https://x.example/api/v4", "https://x.example/api/v4/chat/completions");
    }
}
