//! `[otlp]` of `config.toml`, and the variables that other programs read for the same: where traces
//! of driven sessions go. `docs/observability.md` explains them.

use anyhow::{Context, Result, anyhow, bail};
use qd_telemetry::Collector;
use toml_edit::Item;
use tracing::warn;

#[derive(Debug, Default)]
pub struct OtlpConfig {
    endpoint: Endpoint,
    headers: Vec<Header>,
}

#[derive(Debug, Default)]
enum Endpoint {
    /// The file says nothing: the environment may.
    #[default]
    Unsaid,
    Nowhere,
    At(Collector),
}

/// A name, and a value that may be a key.
type Header = (String, String);

impl OtlpConfig {
    pub fn read(otlp: &Item) -> Result<Self> {
        let table = otlp.as_table_like().context("`otlp` is no table")?;
        let mut config = Self::default();
        for (name, item) in table.iter() {
            match name {
                "endpoint" => {
                    let text = item.as_str().context("`otlp.endpoint` is no text")?;
                    config.endpoint =
                        endpoint(text).map_err(|why| anyhow!("`otlp.endpoint`: {why}"))?;
                }
                "headers" => config.headers = headers(item)?,
                _ => bail!("`otlp.{name}` is none of endpoint, headers"),
            }
        }
        // Said now and not when the daemon runs.
        if let Endpoint::At(collector) = &config.endpoint {
            with_headers(collector.clone(), &config.headers).map_err(|why| anyhow!("{why}"))?;
        }
        Ok(config)
    }

    /// Where spans go. What the file says wins over the environment; a variable that cannot be used
    /// was perhaps meant for others, and is only told of. `port` is our own.
    pub fn collector(
        self,
        variable: impl Fn(&str) -> Option<String>,
        port: u16,
    ) -> Option<Collector> {
        let told = |name| variable(name).filter(|value: &String| !value.trim().is_empty());
        let (theirs, their_headers) = (told(ENDPOINT), told(HEADERS).unwrap_or_default());
        let found = match self.endpoint {
            Endpoint::Nowhere => return None,
            Endpoint::At(collector) => {
                // Keys for another address do not go to this one.
                let headers = match self.headers.is_empty() && theirs.is_none() {
                    true => listed(&their_headers),
                    false => Ok(self.headers),
                };
                headers.and_then(|headers| with_headers(collector, &headers))
            }
            Endpoint::Unsaid => match endpoint(&theirs?) {
                Ok(Endpoint::At(collector)) => {
                    listed(&their_headers).and_then(|headers| with_headers(collector, &headers))
                }
                Ok(Endpoint::Nowhere | Endpoint::Unsaid) => return None,
                Err(why) => Err(format!("{ENDPOINT}: {why}")),
            },
        };
        match found {
            Ok(collector) if collector.is_at_own(port) => {
                warn!(%collector, "that is this daemon itself; turns are not traced");
                None
            }
            Ok(collector) => Some(collector),
            Err(why) => {
                warn!(why, "turns are not traced");
                None
            }
        }
    }
}

fn endpoint(text: &str) -> Result<Endpoint, &'static str> {
    match text.trim().is_empty() {
        true => Ok(Endpoint::Nowhere),
        false => Collector::at(text).map(Endpoint::At),
    }
}

fn with_headers(mut collector: Collector, headers: &[Header]) -> Result<Collector, String> {
    for (name, value) in headers {
        collector.header(name, value)?;
    }
    Ok(collector)
}

fn headers(item: &Item) -> Result<Vec<Header>> {
    let table = item.as_table_like().context("`otlp.headers` is no table")?;
    let header = |(name, value): (&str, &Item)| {
        let value = value.as_str().with_context(|| format!("the header `{name}` is no text"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    table.iter().map(header).collect()
}

/// `name=value,name=value`, values with `%20` and its like.
fn listed(text: &str) -> Result<Vec<Header>, String> {
    let header = |part: &str| {
        let (name, value) =
            part.split_once('=').ok_or(format!("{HEADERS} is no list of name=value"))?;
        let value = unescaped(value.trim()).ok_or(format!("{HEADERS}: the value of `{name}`"))?;
        Ok((name.trim().to_owned(), value))
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(header).collect()
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (code, more) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()?);
        rest = more;
    }
    String::from_utf8(bytes).ok()
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    fn read(text: &str) -> Result<OtlpConfig> {
        let document: DocumentMut = text.parse().expect("TOML");
        document.get("otlp").map_or_else(|| Ok(OtlpConfig::default()), OtlpConfig::read)
    }

    /// Where spans go, with these variables.
    fn check(text: &str, variables: &[(&str, &str)], expected: Option<&str>) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let collector = read(text).expect("it is right").collector(variable, 47892);
        let found = collector.map(|collector| collector.to_string());
        assert_eq!(found.as_deref(), expected, "{text} {variables:?}");
    }

    #[test]
    fn the_file_wins_over_the_environment() {
        let theirs = [(ENDPOINT, "http://127.0.0.1:4318")];
        check("", &[], None);
        check("", &theirs, Some("http://127.0.0.1:4318/v1/traces"));
        let ours = "[otlp]\nendpoint = \"https://o.example\"";
        check(ours, &theirs, Some("https://o.example/v1/traces"));
        check("[otlp]\nendpoint = \"\"", &theirs, None);
        check("", &[(ENDPOINT, "")], None);
    }

    #[test]
    fn a_variable_that_cannot_be_used_is_left_alone() {
        check("", &[(ENDPOINT, "4318")], None);
        check("", &[(ENDPOINT, "http://a"), (HEADERS, "nothing")], None);
        check("", &[(ENDPOINT, "http://127.0.0.1:47892")], None);
    }

    #[test]
    fn headers_are_listed_as_other_programs_list_them() {
        let listed = listed("api-key=a%20b, x=1=2 ,").expect("a list");
        let expected = [("api-key", "a b"), ("x", "1=2")];
        assert_eq!(listed, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for bad in ["a=%2", "a=%zz", "a=%ff", "a"] {
            assert!(super::listed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_mistake_in_the_file_is_named_and_no_key_with_it() {
        for (text, said) in [
            ("otlp = 1", "`otlp` is no table"),
            ("[otlp]\nendpoint = 1", "`otlp.endpoint` is no text"),
            ("[otlp]\nendpoint = \"4318\"", "`otlp.endpoint`: it is no address"),
            ("[otlp]\nport = 1", "`otlp.port` is none of endpoint, headers"),
            ("[otlp]\nheaders = 1", "`otlp.headers` is no table"),
            ("[otlp.headers]\na = 1", "the header `a` is no text"),
            ("[otlp]\nendpoint=\"http://a\"\nheaders.\"a b\" = \"k\"", "`a b` is no name"),
            (
                "[otlp]\nendpoint=\"http://a\"\nheaders.a = \"hunter2\\n\\u0001\"",
                "the value of `a`",
            ),
        ] {
            let error = format!("{:#}", read(text).expect_err("a mistake"));
            assert!(error.contains(said) && !error.contains("hunter2"), "{error}");
        }
    }
}
