//! The endpoints of `config.toml`, and those that variables of the environment name.
//!
//! ```toml
//! [model.opus]
//! provider = "anthropic"            # or "openai", for everybody who speaks like it
//! model = "claude-opus-4-6"
//! key_env = "ANTHROPIC_API_KEY"     # or key_file = "/home/me/.config/keys/anthropic", mode 600
//! base_url = "https://…"            # elsewhere than at the provider
//! answer_tokens = 32000             # longest answer
//! thinking_tokens = 8000            # Anthropic only: how much of it may be thought
//! return_reasoning = true           # OpenAI only: thoughts go back with the next request
//! plain_http = true                 # the key may go to another machine unencrypted
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use qd_harness::native::{Options, Provider};
use serde::Deserialize;

use super::endpoint::PlainHttp;
use super::{Endpoint, EndpointError, Key};

/// Model endpoints that an operator can name; a person keeps a handful apart.
const MODELS_MAX: usize = 100;

/// Keys are read when an endpoint is asked for, so that a changed one is taken at once.
#[derive(Debug, Clone, Default)]
pub struct Models {
    tables: BTreeMap<String, ModelTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelTable {
    provider: Provider,
    model: Option<String>,
    base_url: Option<String>,
    key_env: Option<String>,
    key_file: Option<PathBuf>,
    answer_tokens: Option<u32>,
    thinking_tokens: Option<u32>,
    #[serde(default)]
    return_reasoning: bool,
    #[serde(default)]
    plain_http: bool,
}

/// The part of `config.toml` that is ours; others read the rest.
#[derive(Debug, Default, Deserialize)]
struct ConfigFile {
    #[serde(default)]
    model: BTreeMap<String, ModelTable>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ModelsInvalid(String);

impl Models {
    /// Of the text of `config.toml`.
    pub fn parsed(text: &str) -> Result<Self, ModelsInvalid> {
        let file: ConfigFile = toml_edit::de::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].lines().count().max(1));
            let place = line.map_or_else(String::new, |line| format!("line {line}: "));
            ModelsInvalid(format!("{place}{}", error.message()))
        })?;
        if file.model.len() > MODELS_MAX {
            return Err(ModelsInvalid(format!("more than {MODELS_MAX} models")));
        }
        for (name, table) in &file.model {
            let wrong = |what: &str| Err(ModelsInvalid(format!("[model.{name}]: {what}")));
            if table.key_env.is_some() && table.key_file.is_some() {
                return wrong("key_env and key_file; one of them is enough");
            }
            let room = table.answer_tokens.unwrap_or(qd_harness::native::limits::ANSWER_TOKENS);
            if table.thinking_tokens.is_some_and(|budget| budget >= room) {
                return wrong("thinking_tokens must be fewer than answer_tokens");
            }
        }
        Ok(Self { tables: file.model })
    }

    /// Names that an endpoint can be asked for by, those of the environment behind the others.
    pub fn names(&self, variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let mut names: Vec<String> = self.tables.keys().cloned().collect();
        let has_key = |provider: &Provider| variable(defaults(*provider).key_env).is_some();
        let of_variables = Provider::ALL.into_iter().filter(has_key).map(|by| by.name().to_owned());
        names.extend(of_variables.filter(|name| !self.tables.contains_key(name)));
        names
    }

    /// The endpoint of that name; without a name the first there is. `variable` reads the
    /// environment. `model` replaces the configured one.
    pub fn endpoint(
        &self,
        name: Option<&str>,
        model: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Endpoint, EndpointError> {
        let known = self.names(&variable);
        let name = match name {
            Some(name) => name.to_owned(),
            None => known.first().cloned().ok_or(EndpointError::None { variables: VARIABLES })?,
        };
        let of_variables = || Provider::ALL.into_iter().find(|by| by.name() == name);
        let table = match (self.tables.get(&name), of_variables()) {
            (Some(table), _) => table.clone(),
            (None, Some(provider)) => ModelTable::of_variables(provider),
            (None, None) => {
                return Err(EndpointError::Unknown { name, known: known.join(", ") });
            }
        };
        table.endpoint(&name, model, variable)
    }
}

impl ModelTable {
    fn of_variables(provider: Provider) -> Self {
        Self {
            provider,
            model: None,
            base_url: None,
            key_env: None,
            key_file: None,
            answer_tokens: None,
            thinking_tokens: None,
            return_reasoning: false,
            plain_http: false,
        }
    }

    fn endpoint(
        &self,
        name: &str,
        model: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Endpoint, EndpointError> {
        let usual = defaults(self.provider);
        let no_model = || EndpointError::NoModel { name: name.to_owned() };
        let model = model.or(self.model.as_deref()).or(usual.model).ok_or_else(no_model)?;
        // The provider's own variables belong together: its key is not for another address.
        let elsewhere = self.base_url.clone();
        let base_url = elsewhere.clone().or_else(|| variable(usual.base_url_env));
        let base_url = base_url.unwrap_or_else(|| self.provider.base_url().to_owned());
        let key = match (&self.key_env, &self.key_file) {
            (_, Some(path)) => Some(Key::read(path)?),
            (Some(named), None) => Some(key_of(named, &variable)?),
            (None, None) if elsewhere.is_some() => None,
            (None, None) => Some(key_of(usual.key_env, &variable)?),
        };
        let plain_http = match self.plain_http {
            true => PlainHttp::Anywhere,
            false => PlainHttp::Loopback,
        };
        let mut endpoint = Endpoint::new(name, self.provider, &base_url, model, key, plain_http)?;
        endpoint.options = Options {
            answer_tokens: self.answer_tokens,
            thinking_tokens: self.thinking_tokens,
            returns_reasoning: self.return_reasoning,
            ..Options::default()
        };
        Ok(endpoint)
    }
}

fn key_of(name: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Key, EndpointError> {
    let text = variable(name).filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| EndpointError::NoKey { variable: name.to_owned() })?;
    Key::new(&text, &format!("the variable {name}"))
}

/// What a provider's own clients read.
struct Defaults {
    key_env: &'static str,
    base_url_env: &'static str,
    /// Asked where nobody names one; OpenAI-compatible endpoints have no model in common.
    model: Option<&'static str>,
}

fn defaults(provider: Provider) -> Defaults {
    match provider {
        Provider::Anthropic => Defaults {
            key_env: "ANTHROPIC_API_KEY",
            base_url_env: "ANTHROPIC_BASE_URL",
            model: Some("claude-opus-4-6"),
        },
        Provider::OpenAi => {
            Defaults { key_env: "OPENAI_API_KEY", base_url_env: "OPENAI_BASE_URL", model: None }
        }
    }
}

const VARIABLES: &str = "ANTHROPIC_API_KEY or OPENAI_API_KEY";
