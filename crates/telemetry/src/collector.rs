//! Where spans go: an address that speaks OTLP over HTTP.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// An address, and what it wants to see of us. Headers may hold keys: nothing shows them.
#[derive(Clone)]
pub struct Collector {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
}

impl Collector {
    /// The base of a collector, as `http://127.0.0.1:4318`; where traces go is added to it.
    pub fn at(endpoint: &str) -> Result<Self, &'static str> {
        let mut url: Url = endpoint.trim().parse().map_err(|_| "it is no address")?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err("it is no address as http://127.0.0.1:4318");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a user in an address is not taken; keys go into headers");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("it ends with its path");
        }
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix(TRACES).unwrap_or(path).to_owned();
        url.set_path(&format!("{path}{TRACES}"));
        Ok(Self { url, headers: HeaderMap::new() })
    }

    /// Another header with each request. The name is in the error, the value is not.
    pub fn header(&mut self, name: &str, value: &str) -> Result<(), String> {
        let known = HeaderName::from_bytes(name.trim().as_bytes());
        let known = known.map_err(|_| format!("`{name}` is no name of a header"))?;
        let value = HeaderValue::from_str(value.trim());
        let mut value = value.map_err(|_| format!("the value of `{name}` is none of a header"))?;
        value.set_sensitive(true);
        self.headers.insert(known, value);
        Ok(())
    }

    /// That port of this machine: a daemon that listens there would tell itself.
    pub fn is_at_own(&self, port: u16) -> bool {
        self.is_on_loopback() && self.url.port_or_known_default() == Some(port)
    }

    pub(super) fn is_on_loopback(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.url)
    }
}

/// Where OTLP takes traces, below any base.
const TRACES: &str = "/v1/traces";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_go_below_the_base() {
        for (endpoint, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://o.example/otlp/", "https://o.example/otlp/v1/traces"),
            ("https://o.example/v1/traces", "https://o.example/v1/traces"),
        ] {
            assert_eq!(Collector::at(endpoint).expect("an address").to_string(), url);
        }
    }

    #[test]
    fn what_is_no_collector_is_refused() {
        for endpoint in
            ["", "4318", "localhost:4318", "ftp://a", "http://", "http://u:p@a", "http://a?b"]
        {
            assert!(Collector::at(endpoint).is_err(), "{endpoint}");
        }
    }

    #[test]
    fn we_are_no_collector_of_ours() {
        let is_own = |endpoint, port| Collector::at(endpoint).expect("an address").is_at_own(port);
        assert!(is_own("http://127.0.0.1:47892", 47892) && is_own("http://localhost:47892", 47892));
        assert!(is_own("http://[::1]:47892", 47892) && is_own("http://localhost", 80));
        assert!(!is_own("http://127.0.0.1:4318", 47892));
        assert!(!is_own("http://o.example:47892", 47892));
    }

    #[test]
    fn a_key_is_in_no_words() {
        let mut collector = Collector::at("http://a").expect("an address");
        collector.header("x-key", "hunter2").expect("a header");
        assert!(!format!("{collector:?} {collector}").contains("hunter2"));
        let error = collector.header("x-key", "hunter2\n2").expect_err("a line break");
        assert!(error.contains("x-key") && !error.contains("hunter2"));
        assert!(collector.header("x key", "a").is_err());
    }
}
