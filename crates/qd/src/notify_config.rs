//! `[notify]` of `config.toml`: what the operator is told, when not, and where. `docs/notifications.md`
//! explains each.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use qd_host::bounded_file::{Links, read_regular_text};
use qd_notices::{NtfySettings, PrivateHost, Settings, WebhookSettings};
use qd_session::limits::QUIET_RANGES_MAX;
use qd_session::moment::Timestamp;
use qd_session::operator::notice::{Kind, Quiet, Rules};
use toml_edit::{Item, TableLike};

/// Receivers of one sort that the settings may name.
const RECEIVERS_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotifyConfig {
    rules: Rules,
    contact: Option<String>,
    link: Option<String>,
    desktop: bool,
    allow_private: Vec<PrivateHost>,
    webhooks: Vec<WebhookSettings>,
    ntfy: Vec<NtfySettings>,
}

/// A secret in a file of its own; a whole key with its certificate is a few kilobytes.
const SECRET_BYTES_MAX: u64 = 64 << 10;

/// Some push services refuse whoever names nobody.
const CONTACT: &str = "mailto:operator@example.com";

/// Nobody waits longer, and a number of that size is a mistake in its unit.
const WAIT_S_MAX: u64 = 24 * 60 * 60;

impl NotifyConfig {
    pub fn read(notify: &Item, folder: &Path) -> Result<Self> {
        let table = notify.as_table_like().context("`notify` is no table")?;
        let mut config = Self::default();
        for (name, item) in table.iter() {
            config.set(name, item, folder)?;
        }
        Ok(config)
    }

    /// `hosts` are the names of the page beside the loopback's.
    pub fn settings(
        self,
        state: PathBuf,
        hosts: &[String],
        port: u16,
        offset: Box<dyn FnMut(Timestamp) -> i32 + Send>,
    ) -> Settings {
        let usual = match hosts.first() {
            Some(host) => format!("https://{host}"),
            None => format!("http://127.0.0.1:{port}"),
        };
        Settings {
            state,
            rules: self.rules,
            contact: self.contact.unwrap_or_else(|| CONTACT.to_owned()),
            link: self.link.unwrap_or(usual),
            webhooks: self.webhooks,
            ntfy: self.ntfy,
            desktop: self.desktop,
            allow_private: self.allow_private,
            offset,
        }
    }

    fn set(&mut self, name: &str, item: &Item, folder: &Path) -> Result<()> {
        match name {
            "kinds" => self.rules.kinds = kinds(item)?,
            "dwell_s" => self.rules.dwell_ms = seconds(name, item)? * 1_000,
            "cooldown_s" => self.rules.cooldown_ms = seconds(name, item)? * 1_000,
            "quiet" => self.rules.quiet = quiet(item)?,
            "contact" => {
                let contact = text(name, item)?;
                let is_one = contact.starts_with("mailto:") || contact.starts_with("https://");
                ensure!(is_one, "`notify.contact` is neither mailto:… nor https://…");
                self.contact = Some(contact);
            }
            "link" => {
                let link = text(name, item)?;
                WebhookSettings::read_url(&link)
                    .map_err(|why| anyhow::anyhow!("`notify.link`: {why}"))?;
                self.link = Some(link);
            }
            "desktop" => self.desktop = flag(name, item)?,
            "allow_private" => self.allow_private = private_hosts(item)?,
            "webhook" => {
                let webhooks = receivers(name, item)?.into_iter();
                self.webhooks =
                    webhooks.map(|table| webhook(table, folder)).collect::<Result<_>>()?;
            }
            "ntfy" => {
                let servers = receivers(name, item)?.into_iter();
                self.ntfy = servers.map(|table| ntfy(table, folder)).collect::<Result<_>>()?;
            }
            _ => bail!(
                "`notify.{name}` is none of kinds, dwell_s, cooldown_s, quiet, contact, link, \
                 desktop, allow_private, webhook, ntfy"
            ),
        }
        Ok(())
    }
}

fn webhook(table: &dyn TableLike, folder: &Path) -> Result<WebhookSettings> {
    let Receiver { url, secret, details } = receiver(table, "webhook", "secret", folder)?;
    Ok(WebhookSettings { url, secret, details: details.unwrap_or(true) })
}

/// Others may read what is on such a server, so an agent's words go there only if they shall.
fn ntfy(table: &dyn TableLike, folder: &Path) -> Result<NtfySettings> {
    let Receiver { url, secret: token, details } = receiver(table, "ntfy", "token", folder)?;
    Ok(NtfySettings { url, token, details: details.unwrap_or(false) })
}

struct Receiver {
    url: hyper::Uri,
    secret: Option<String>,
    details: Option<bool>,
}

/// `secret` is what this sort of receiver calls its secret; it may be in a file of its own.
fn receiver(table: &dyn TableLike, sort: &str, secret: &str, folder: &Path) -> Result<Receiver> {
    let (mut url, mut kept, mut details) = (None, None, None);
    for (name, item) in table.iter() {
        let full = format!("{sort}.{name}");
        match name {
            "url" => {
                let read = WebhookSettings::read_url(&text(&full, item)?);
                url = Some(read.map_err(|why| anyhow::anyhow!("`notify.{full}`: {why}"))?);
            }
            "details" => details = Some(flag(&full, item)?),
            _ if name == secret => kept = Some(text(&full, item)?),
            _ if name.strip_suffix("_file") == Some(secret) => {
                let path = folder.join(text(&full, item)?);
                let read = read_regular_text(&path, SECRET_BYTES_MAX, Links::Followed);
                let read = read.with_context(|| format!("cannot read {}", path.display()))?;
                kept = Some(read.trim().to_owned());
            }
            _ => bail!("`notify.{full}` is none of url, {secret}, {secret}_file, details"),
        }
    }
    let url = url.with_context(|| format!("a `notify.{sort}` has no url"))?;
    Ok(Receiver { url, secret: kept, details })
}

fn receivers<'a>(name: &str, item: &'a Item) -> Result<Vec<&'a dyn TableLike>> {
    let tables = item.as_array_of_tables();
    let tables = tables.with_context(|| format!("write [[notify.{name}]] for each"))?;
    ensure!(tables.len() <= RECEIVERS_MAX, "more than {RECEIVERS_MAX} `notify.{name}`");
    Ok(tables.iter().map(|table| table as &dyn TableLike).collect())
}

fn kinds(item: &Item) -> Result<BTreeSet<Kind>> {
    let named = |name: &String| {
        Kind::named(name).with_context(|| {
            let all = Kind::ALL.map(Kind::name).join(", ");
            format!("`{name}` in `notify.kinds` is none of {all}")
        })
    };
    texts("kinds", item)?.iter().map(named).collect()
}

fn private_hosts(item: &Item) -> Result<Vec<PrivateHost>> {
    let hosts = texts("allow_private", item)?;
    ensure!(hosts.len() <= RECEIVERS_MAX, "more than {RECEIVERS_MAX} `notify.allow_private`");
    let read = |text: &String| {
        let host = PrivateHost::read(text);
        host.map_err(|why| anyhow::anyhow!("`{text}` in `notify.allow_private`: {why}"))
    };
    hosts.iter().map(read).collect()
}

fn quiet(item: &Item) -> Result<Vec<Quiet>> {
    let ranges = texts("quiet", item)?;
    ensure!(
        ranges.len() <= QUIET_RANGES_MAX,
        "more than {QUIET_RANGES_MAX} ranges in `notify.quiet`"
    );
    let read = |text: &String| {
        let range = Quiet::read(text);
        range.with_context(|| format!("`{text}` in `notify.quiet` is no range like 22:00-07:30"))
    };
    ranges.iter().map(read).collect()
}

fn texts(name: &str, item: &Item) -> Result<Vec<String>> {
    let list: Option<Vec<String>> = item
        .as_array()
        .and_then(|list| list.iter().map(|text| text.as_str().map(str::to_owned)).collect());
    list.with_context(|| format!("`notify.{name}` is no list of texts"))
}

fn text(name: &str, item: &Item) -> Result<String> {
    let text = item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    text.with_context(|| format!("`notify.{name}` is no text"))
}

fn flag(name: &str, item: &Item) -> Result<bool> {
    item.as_bool().with_context(|| format!("`notify.{name}` is not true or false"))
}

fn seconds(name: &str, item: &Item) -> Result<u64> {
    let seconds = item.as_integer().and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = seconds.filter(|seconds| *seconds <= WAIT_S_MAX);
    seconds.with_context(|| format!("`notify.{name}` is no number of seconds"))
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    fn read(text: &str) -> Result<NotifyConfig> {
        let document: DocumentMut = text.parse()?;
        NotifyConfig::read(&document["notify"], Path::new("/nowhere"))
    }

    #[test]
    fn everything_can_be_set() {
        let config = read(
            "[notify]\nkinds = [\"permission\", \"delivered\"]\ndwell_s = 10\ncooldown_s = 0\n\
             quiet = [\"22:00-07:30\"]\ndesktop = true\ncontact = \"mailto:ann@example.org\"\n\
             link = \"https://box.example.ts.net\"\nallow_private = [\"127.0.0.1:8080\"]\n\
             [[notify.webhook]]\nurl = \"https://hooks.example/qd\"\nsecret = \"s\"\n\
             [[notify.ntfy]]\nurl = \"https://ntfy.example/topic\"\ntoken = \"t\"\n",
        );
        let config = config.unwrap();
        let rules = Rules {
            kinds: [Kind::Permission, Kind::Delivered].into(),
            dwell_ms: 10_000,
            cooldown_ms: 0,
            quiet: vec![Quiet::read("22:00-07:30").unwrap()],
        };
        assert_eq!(config.rules, rules);
        assert!(config.webhooks[0].details && !config.ntfy[0].details);
        assert_eq!(config.ntfy[0].token.as_deref(), Some("t"));
        let settings = config.settings("/s".into(), &[], 1, Box::new(|_| 0));
        assert_eq!(settings.link, "https://box.example.ts.net");
        assert_eq!(settings.allow_private, [PrivateHost::read("127.0.0.1:8080").unwrap()]);
        let hosts = ["a.example".to_owned()];
        let usual = NotifyConfig::default().settings("/s".into(), &hosts, 1, Box::new(|_| 0));
        assert_eq!(usual.link, "https://a.example");
        let usual = NotifyConfig::default().settings("/s".into(), &[], 7, Box::new(|_| 0));
        assert_eq!(usual.link, "http://127.0.0.1:7");
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, said) in [
            ("notify = 1", "`notify` is no table"),
            ("[notify]\nkind = 1", "`notify.kind` is none of"),
            ("[notify]\nkinds = [\"all\"]", "`all` in `notify.kinds` is none of permission"),
            ("[notify]\nkinds = \"idle\"", "`notify.kinds` is no list of texts"),
            ("[notify]\ndwell_s = -1", "`notify.dwell_s` is no number of seconds"),
            ("[notify]\ncooldown_s = \"1m\"", "`notify.cooldown_s` is no number of seconds"),
            ("[notify]\nquiet = [\"22-7\"]", "`22-7` in `notify.quiet` is no range"),
            ("[notify]\ncontact = \"ann\"", "`notify.contact` is neither"),
            ("[notify]\nlink = \"box\"", "`notify.link`: it is no address"),
            ("[notify]\nallow_private = true", "`notify.allow_private` is no list of texts"),
            ("[notify]\nallow_private = [\"a/b\"]", "`a/b` in `notify.allow_private`: it is no"),
            ("[notify]\ndesktop = 1", "`notify.desktop` is not true or false"),
            ("[notify]\nwebhook = \"https://a\"", "write [[notify.webhook]] for each"),
            ("[[notify.webhook]]\nsecret = \"a\"", "a `notify.webhook` has no url"),
            ("[[notify.webhook]]\nurl = \"ftp://a/b\"", "`notify.webhook.url`: it is no address"),
            (
                "[[notify.ntfy]]\nurl = \"https://a.b/c\"\nsecret = \"a\"",
                "`notify.ntfy.secret` is none",
            ),
            ("[[notify.ntfy]]\nurl = \"https://u:p@a.b/c\"", "a user in an address is not taken"),
            ("[[notify.webhook]]\nurl = \"https://a.b/c\"\nsecret_file = \"no\"", "cannot read"),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }
}
