//! `[sandbox]` of `config.toml`: what commands of driven sessions may reach beyond their workspace.
//! `docs/tools.md` explains each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use qd_runners::tools::limits::{OPENED_MAX, TIMEOUT_MS_MAX};
use qd_runners::tools::{SandboxConfig, Tool};
use qd_runners::warden::{LocalSockets, Network};
use toml_edit::Item;

/// `home` is what `~` stands for.
pub fn read(sandbox: &Item, home: Option<&Path>) -> Result<SandboxConfig> {
    let table = sandbox.as_table_like().context("`sandbox` is no table")?;
    let mut config = SandboxConfig::default();
    for (name, item) in table.iter() {
        match name {
            "network" => {
                config.network = match is_allowed(name, item)? {
                    true => Network::Allowed,
                    false => Network::Forbidden,
                };
            }
            "local_sockets" => {
                config.local_sockets = match is_allowed(name, item)? {
                    true => LocalSockets::Allowed,
                    false => LocalSockets::Forbidden,
                };
            }
            "read" => config.read = paths(name, item, home)?,
            "write" => config.write = paths(name, item, home)?,
            "env" => config.environment = variables(name, item)?,
            "timeout_ms" => config.timeouts_ms = timeouts(name, item)?,
            _ => bail!(
                "`sandbox.{name}` is none of network, local_sockets, read, write, env, timeout_ms"
            ),
        }
    }
    Ok(config)
}

fn is_allowed(name: &str, item: &Item) -> Result<bool> {
    match item.as_str() {
        Some("allowed") => Ok(true),
        Some("forbidden") => Ok(false),
        Some(_) | None => bail!("`sandbox.{name}` is neither \"allowed\" nor \"forbidden\""),
    }
}

fn paths(name: &str, item: &Item, home: Option<&Path>) -> Result<Vec<PathBuf>> {
    let path = |text: String| {
        let path = match (text.strip_prefix('~'), home) {
            (Some(""), Some(home)) => home.to_owned(),
            (Some(below), Some(home)) if below.starts_with('/') => home.join(&below[1..]),
            (Some(_) | None, _) => PathBuf::from(&text),
        };
        let is_plain = path.is_absolute() && !text.contains('\0');
        ensure!(is_plain, "`{text}` in `sandbox.{name}` is no path like /srv/data or ~/data");
        Ok(path)
    };
    texts(name, item)?.into_iter().map(path).collect()
}

fn variables(name: &str, item: &Item) -> Result<Vec<String>> {
    let names = texts(name, item)?;
    let odd = names.iter().find(|text| text.is_empty() || text.contains(['=', '\0']));
    match odd {
        Some(odd) => bail!("`{odd}` in `sandbox.{name}` is no name of a variable"),
        None => Ok(names),
    }
}

fn timeouts(name: &str, item: &Item) -> Result<BTreeMap<String, u64>> {
    let table = item.as_table_like();
    let table = table.with_context(|| format!("`sandbox.{name}` is no table of tools"))?;
    let limit = |(tool, item): (&str, &Item)| {
        let is_ours = Tool::named(tool).is_some();
        ensure!(is_ours, "`{tool}` in `sandbox.{name}` is no tool of ours");
        let ms = item.as_integer().and_then(|ms| u64::try_from(ms).ok());
        let ms = ms.filter(|ms| (1..=TIMEOUT_MS_MAX).contains(ms));
        let ms = ms.with_context(|| {
            format!("`sandbox.{name}.{tool}` is no number from 1 to {TIMEOUT_MS_MAX}")
        })?;
        Ok((tool.to_owned(), ms))
    };
    table.iter().map(limit).collect()
}

fn texts(name: &str, item: &Item) -> Result<Vec<String>> {
    let list: Option<Vec<String>> = item
        .as_array()
        .and_then(|list| list.iter().map(|text| text.as_str().map(str::to_owned)).collect());
    let list = list.with_context(|| format!("`sandbox.{name}` is no list of texts"))?;
    ensure!(list.len() <= OPENED_MAX, "more than {OPENED_MAX} texts in `sandbox.{name}`");
    Ok(list)
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    fn parsed(text: &str) -> Result<SandboxConfig> {
        let document: DocumentMut = text.parse()?;
        read(&document["sandbox"], Some(Path::new("/home/ann")))
    }

    #[test]
    fn everything_can_be_set() {
        let config = parsed(
            "[sandbox]\nnetwork = \"forbidden\"\nlocal_sockets = \"allowed\"\n\
             read = [\"/srv/data\", \"~/data\", \"~\"]\nwrite = [\"/var/cache/build\"]\n\
             env = [\"DATABASE_URL\"]\ntimeout_ms = { bash = 900000 }\n",
        );
        let expected = SandboxConfig {
            network: Network::Forbidden,
            local_sockets: LocalSockets::Allowed,
            read: ["/srv/data", "/home/ann/data", "/home/ann"].map(PathBuf::from).to_vec(),
            write: vec!["/var/cache/build".into()],
            environment: vec!["DATABASE_URL".to_owned()],
            timeouts_ms: BTreeMap::from([("bash".to_owned(), 900_000)]),
        };
        assert_eq!(config.unwrap(), expected);
        assert_eq!(parsed("[sandbox]").unwrap(), SandboxConfig::default());
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, said) in [
            ("sandbox = 1", "`sandbox` is no table"),
            ("[sandbox]\nnetwork = true", "`sandbox.network` is neither"),
            ("[sandbox]\nnetwork = \"open\"", "`sandbox.network` is neither"),
            ("[sandbox]\nlocal_sockets = \"\"", "`sandbox.local_sockets` is neither"),
            ("[sandbox]\nread = \"/srv\"", "`sandbox.read` is no list of texts"),
            ("[sandbox]\nread = [1]", "`sandbox.read` is no list of texts"),
            ("[sandbox]\nread = [\"data\"]", "`data` in `sandbox.read` is no path"),
            ("[sandbox]\nwrite = [\"~ann/x\"]", "`~ann/x` in `sandbox.write` is no path"),
            ("[sandbox]\nenv = [\"A=b\"]", "`A=b` in `sandbox.env` is no name"),
            ("[sandbox]\ntimeout_ms = 5", "`sandbox.timeout_ms` is no table of tools"),
            ("[sandbox.timeout_ms]\nsh = 5", "`sh` in `sandbox.timeout_ms` is no tool of ours"),
            ("[sandbox.timeout_ms]\nbash = 0", "`sandbox.timeout_ms.bash` is no number from 1"),
            ("[sandbox]\nroot = []", "`sandbox.root` is none of network"),
        ] {
            let error = format!("{:#}", parsed(text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }
}
