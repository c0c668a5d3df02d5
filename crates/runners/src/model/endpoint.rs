//! One endpoint, ready to be asked: where it is, which model, whose key.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use qd_harness::native::{Options, Provider};
use reqwest::Url;

use super::Key;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// As `config.toml` calls it.
    pub name: Arc<str>,
    pub provider: Provider,
    pub model: Arc<str>,
    /// How it is to be asked; whoever asks adds the system's words.
    pub options: Options,
    url: Url,
    key: Option<Key>,
}

#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("no model is called {name}; config.toml knows {known}")]
    Unknown { name: String, known: String },
    #[error("no model is set up: write a [model.NAME] into config.toml, or set {variables}")]
    None { variables: &'static str },
    #[error("{name} names no model: write `model = \"…\"` into [model.{name}] of config.toml")]
    NoModel { name: String },
    #[error("{url} is no http or https address of a model endpoint")]
    Url { url: String },
    #[error(
        "{url} would get the key in the clear; use https, or write `plain_http = true` if you \
         trust the way there"
    )]
    KeyInTheClear { url: String },
    #[error("the variable {variable} holds no key")]
    NoKey { variable: String },
    #[error("what {origin} holds is no key: one line without spaces is expected")]
    KeyOdd { origin: String },
    #[error("cannot read the key in {}", path.display())]
    KeyFile { path: PathBuf, source: io::Error },
    #[error("the key in {} belongs to another user", path.display())]
    KeyForeign { path: PathBuf },
    #[error(
        "others can read the key in {} (mode {mode:03o}); `chmod 600` it, and change the key if \
         somebody may have read it",
        path.display()
    )]
    KeyOpen { path: PathBuf, mode: u32 },
}

/// Whether a key may go over a connection that is not encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// To this machine only.
    Loopback,
    Anywhere,
}

impl Endpoint {
    pub(super) fn new(
        name: &str,
        provider: Provider,
        base_url: &str,
        model: &str,
        key: Option<Key>,
        plain_http: PlainHttp,
    ) -> Result<Self, EndpointError> {
        let odd = || EndpointError::Url { url: shown(base_url) };
        let url = Url::parse(&provider.url(base_url)).map_err(|_| odd())?;
        let is_encrypted = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(odd()),
        };
        // A password in an address would be shown wherever the address is.
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(odd());
        }
        let is_safe = is_encrypted || plain_http == PlainHttp::Anywhere || is_loopback(&url);
        if key.is_some() && !is_safe {
            return Err(EndpointError::KeyInTheClear { url: shown(base_url) });
        }
        let options = Options::default();
        Ok(Self { name: name.into(), provider, model: model.into(), options, url, key })
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// An address without what could be a password in it.
fn shown(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        (_, _) => url.to_owned(),
    }
}
