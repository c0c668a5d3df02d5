//! `config.toml`: what the operator has set.
//!
//! ```toml
//! [prices."my-model"]        # dollars for a million tokens
//! input = 3.0
//! output = 15.0
//! cache_write = 3.75         # and cache_write_1h, cache_read
//! window = 200000            # tokens of context
//!
//! [search]
//! enabled = false            # no index of what was said
//!
//! [server]
//! hosts = ["box.example.ts.net"]   # names beside the loopback's that lead here
//!
//! [places]                   # folders of clients that are not in the daemon's environment
//! claude-code = ["~/.claude-work"]      # what CLAUDE_CONFIG_DIR would name
//! codex = ["~/.codex-work"]             # CODEX_HOME
//! gemini-cli = ["~/gemini-work"]        # GEMINI_CLI_HOME
//!
//! [opencode]
//! servers = ["http://127.0.0.1:4096"]   # OpenCode and Kilo servers that are not found
//!
//! [model.opus]               # endpoints of models: docs/models.md
//! provider = "anthropic"
//!
//! [agents.claude-code]       # programs of agents that are driven: docs/sessions.md
//! program = "/opt/claude/bin/claude"
//!
//! [notify]                   # whom to tell, and when not: docs/notifications.md
//! quiet = ["22:00-07:30"]
//!
//! [watch]
//! stalled_after_minutes = 10 # without a sign of life; 0: never say so
//!
//! [hooks]
//! observed = true            # post-tool hooks for agents started elsewhere, too: docs/hooks.md
//!
//! [otlp]                     # where traces of driven sessions go: docs/observability.md
//! endpoint = "http://127.0.0.1:4318"
//!
//! [sandbox]                  # what commands of driven sessions may reach: docs/tools.md
//! network = "forbidden"
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use qd_harness::Harness;
use qd_harness::usage::{Price, PriceTable, Rates};
use qd_host::bounded_file::{Links, read_regular_text};
use qd_runners::local_crew::AgentPrograms;
use qd_runners::model::Models;
use qd_runners::tools::SandboxConfig;
use qd_session::limits::STALLED_AFTER_MS;
use qd_sources::client_folders::ClientFolder;
use qd_sources::places::places_in;
use toml_edit::{DocumentMut, Item, TableLike};

use crate::notify_config::NotifyConfig;
use crate::otlp_config::OtlpConfig;
use crate::sandbox_config;

/// Longest settings: a few kilobytes, and room for a long list of prices.
pub const CONFIG_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Default)]
pub struct Config {
    prices: Vec<(String, Price)>,
    is_search_off: bool,
    /// Names beside the loopback's by which the page is reached.
    pub hosts: Vec<String>,
    pub opencode_servers: Vec<String>,
    /// Folders in which clients keep their files, beside those of the environment.
    pub client_folders: Vec<ClientFolder>,
    pub notify: NotifyConfig,
    pub models: Models,
    pub programs: AgentPrograms,
    pub otlp: OtlpConfig,
    /// What commands of driven sessions may reach.
    pub sandbox: SandboxConfig,
    /// How long work may go on without a sign of life.
    pub stalled_after: StalledAfter,
    /// Post-tool hooks run for agents that we only observe, too.
    pub runs_observed_hooks: bool,
}

/// Before it is called stalled; none: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StalledAfter(pub Option<Duration>);

impl Default for StalledAfter {
    fn default() -> Self {
        Self(Some(Duration::from_millis(STALLED_AFTER_MS)))
    }
}

impl StalledAfter {
    fn read(watch: &Item) -> Result<Self> {
        let watch = watch.as_table_like().context("`watch` is no table")?;
        let Some(minutes) = watch.get("stalled_after_minutes") else { return Ok(Self::default()) };
        let minutes = minutes.as_integer().and_then(|minutes| u32::try_from(minutes).ok());
        let minutes =
            minutes.context("`watch.stalled_after_minutes` is no whole number of minutes")?;
        Ok(Self((minutes > 0).then(|| Duration::from_secs(60 * u64::from(minutes)))))
    }
}

impl Config {
    /// Without a file nothing is set. One that cannot be understood is an error: the operator
    /// meant something by it.
    pub fn read(path: &Path) -> Result<Self> {
        let text = match read_regular_text(path, CONFIG_BYTES_MAX, Links::Followed) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let folder = path.parent().unwrap_or(path);
        Self::parsed(&text, folder).with_context(|| format!("in {}", path.display()))
    }

    /// The bundled table, with the operator's prices.
    pub fn price_table(&self) -> PriceTable {
        let mut table = PriceTable::bundled();
        for (model, price) in &self.prices {
            table.set(model, *price);
        }
        table
    }

    pub fn is_search_enabled(&self) -> bool {
        !self.is_search_off
    }

    /// `folder` is where files lie that it names.
    fn parsed(text: &str, folder: &Path) -> Result<Self> {
        let document: DocumentMut = text.parse()?;
        let prices = document.get("prices").map_or_else(|| Ok(Vec::new()), prices)?;
        let is_search_off = document.get("search").map_or(Ok(false), is_off)?;
        let hosts = names(&document, "server", "hosts")?;
        if let Some(odd) = hosts.iter().find(|host| !is_host(host)) {
            bail!("`{odd}` is no host: write a name as box.example.ts.net, with a port if needed");
        }
        let opencode_servers = names(&document, "opencode", "servers")?;
        let home = std::env::home_dir();
        let client_folders = client_folders(&document, home.as_deref())?;
        let notify = document.get("notify").map(|notify| NotifyConfig::read(notify, folder));
        let notify = notify.transpose()?.unwrap_or_default();
        let models = Models::parsed(text).context("a model")?;
        let programs = AgentPrograms::parsed(text).context("an agent")?;
        let otlp = document.get("otlp").map(OtlpConfig::read).transpose()?.unwrap_or_default();
        let sandbox = document.get("sandbox");
        let sandbox = sandbox.map(|sandbox| sandbox_config::read(sandbox, home.as_deref()));
        let sandbox = sandbox.transpose()?.unwrap_or_default();
        let runs_observed_hooks = document.get("hooks").map_or(Ok(false), are_observed)?;
        let stalled_after = document.get("watch").map(StalledAfter::read);
        let stalled_after = stalled_after.transpose()?.unwrap_or_default();
        Ok(Self {
            stalled_after,
            prices,
            is_search_off,
            hosts,
            opencode_servers,
            client_folders,
            notify,
            models,
            programs,
            otlp,
            sandbox,
            runs_observed_hooks,
        })
    }
}

/// A list of texts under a name in a table; without it, none.
fn names(document: &DocumentMut, table: &str, name: &str) -> Result<Vec<String>> {
    let Some(item) = document.get(table) else { return Ok(Vec::new()) };
    let found = item.as_table_like().with_context(|| format!("`{table}` is no table"))?;
    let Some(list) = found.get(name) else { return Ok(Vec::new()) };
    let texts = list.as_array().map(|list| list.iter().map(|text| text.as_str()).collect());
    let texts: Option<Option<Vec<&str>>> = texts;
    let texts = texts.flatten().with_context(|| format!("`{table}.{name}` is no list of texts"))?;
    Ok(texts.into_iter().map(str::to_owned).collect())
}

/// The folders of `[places]`. One below the home may begin with a tilde.
fn client_folders(document: &DocumentMut, home: Option<&Path>) -> Result<Vec<ClientFolder>> {
    let Some(places) = document.get("places") else { return Ok(Vec::new()) };
    let places = places.as_table_like().context("`places` is no table")?;
    let mut folders = Vec::new();
    for (name, _) in places.iter() {
        let harness =
            Harness::named(name).filter(|harness| !places_in(*harness, Path::new("/")).is_empty());
        let harness = harness.with_context(|| {
            format!("`places.{name}` is none of claude-code, codex, gemini-cli")
        })?;
        for path in names(document, "places", name)? {
            let path = match (path.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest),
                (Some(_) | None, _) => PathBuf::from(&path),
            };
            if !path.is_absolute() {
                bail!(
                    "`places.{name}`: write {} as a path from the root or with ~/",
                    path.display()
                );
            }
            folders.push(ClientFolder { harness, path });
        }
    }
    Ok(folders)
}

/// As it stands in a `Host` header: no scheme, no path.
fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').unwrap_or((text, "443"));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    !name.is_empty() && name.bytes().all(plain) && port.parse::<u16>().is_ok()
}

fn is_off(search: &Item) -> Result<bool> {
    let search = search.as_table_like().context("`search` is no table")?;
    match search.get("enabled") {
        Some(enabled) => Ok(!enabled.as_bool().context("`search.enabled` is not true or false")?),
        None => Ok(false),
    }
}

fn are_observed(hooks: &Item) -> Result<bool> {
    let hooks = hooks.as_table_like().context("`hooks` is no table")?;
    match hooks.get("observed") {
        Some(observed) => observed.as_bool().context("`hooks.observed` is not true or false"),
        None => Ok(false),
    }
}

fn prices(prices: &Item) -> Result<Vec<(String, Price)>> {
    let prices = prices.as_table_like().context("`prices` is no table")?;
    let priced = |(model, item): (&str, &Item)| {
        let table = item.as_table_like().with_context(|| format!("`{model}` is no table"))?;
        Ok((model.to_owned(), price(table).with_context(|| format!("the price of {model}"))?))
    };
    prices.iter().map(priced).collect()
}

fn price(table: &dyn TableLike) -> Result<Price> {
    let mut price = Price::default();
    let Rates { input, output, cache_write, cache_write_1h, cache_read } = &mut price.rates;
    for (name, item) in table.iter() {
        let number = item.as_float().or_else(|| item.as_integer().map(|whole| whole as f64));
        let number = number.filter(|number| *number >= 0.0 && number.is_finite());
        let number = number.with_context(|| format!("`{name}` is no number of dollars"))?;
        match name {
            "input" => *input = number,
            "output" => *output = number,
            "cache_write" => *cache_write = Some(number),
            "cache_write_1h" => *cache_write_1h = Some(number),
            "cache_read" => *cache_read = Some(number),
            "window" => price.window = Some(number as u64),
            _ => bail!(
                "`{name}` is none of input, output, cache_write, cache_write_1h, cache_read, window"
            ),
        }
    }
    Ok(price)
}

#[cfg(test)]
mod tests {
    use qd_harness::usage::Tokens;

    use super::*;

    fn parsed(text: &str) -> Result<Config> {
        Config::parsed(text, Path::new("/nowhere"))
    }

    #[test]
    fn the_operators_price_wins() {
        let config = parsed("[prices.\"claude-opus-4-6\"]\ninput = 1\noutput = 2.5\n");
        let table = config.unwrap().price_table();
        let tokens = Tokens { input: 1_000_000, output: 1_000_000, ..Tokens::default() };
        let charge = table.charge_of(Some("claude-opus-4-6"), &tokens, None);
        assert_eq!((charge.dollars, charge.is_estimate), (3.5, false));
    }

    #[test]
    fn hosts_and_servers_are_lists() {
        let config = parsed(
            "[server]\nhosts = [\"box.example.ts.net\", \"a.example:8443\"]\n\
             [opencode]\nservers = [\"http://127.0.0.1:4096\"]",
        );
        let config = config.unwrap();
        assert_eq!(config.hosts, ["box.example.ts.net", "a.example:8443"]);
        assert_eq!(config.opencode_servers, ["http://127.0.0.1:4096"]);
    }

    #[test]
    fn several_folders_of_a_client_are_followed() {
        let config =
            parsed("[places]\nclaude-code = [\"/work/.claude\", \"/me/.claude\"]\ncodex = []");
        let folders = config.unwrap().client_folders;
        let of = |path: &str| ClientFolder { harness: Harness::ClaudeCode, path: path.into() };
        assert_eq!(folders, [of("/work/.claude"), of("/me/.claude")]);
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, said) in [
            ("prices = 3", "`prices` is no table"),
            ("[prices]\nm = 1", "`m` is no table"),
            ("[prices.m]\ninput = \"much\"", "`input` is no number of dollars"),
            ("[prices.m]\ninput = -1", "`input` is no number of dollars"),
            ("[prices.m]\nprice = 1", "`price` is none of"),
        ] {
            let error = format!("{:#}", parsed(text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
        for (text, said) in [
            ("search = 1", "`search` is no table"),
            ("[search]\nenabled = 1", "`search.enabled` is not true or false"),
            ("server = 1", "`server` is no table"),
            ("[server]\nhosts = \"a\"", "`server.hosts` is no list of texts"),
            ("[server]\nhosts = [1]", "`server.hosts` is no list of texts"),
            ("[server]\nhosts = [\"https://a\"]", "`https://a` is no host"),
            ("[server]\nhosts = [\"*\"]", "`*` is no host"),
            ("watch = 1", "`watch` is no table"),
            ("[watch]\nstalled_after_minutes = -1", "is no whole number of minutes"),
            ("hooks = 1", "`hooks` is no table"),
            ("[hooks]\nobserved = 1", "`hooks.observed` is not true or false"),
            ("places = 1", "`places` is no table"),
            ("[places]\nopencode = []", "`places.opencode` is none of"),
            ("[places]\ncodex = \"/x\"", "`places.codex` is no list of texts"),
            ("[places]\ncodex = [\"x\"]", "write x as a path from the root"),
            ("[opencode]\nservers = 3", "`opencode.servers` is no list of texts"),
            ("[sandbox]\nnetwork = 1", "`sandbox.network` is neither"),
        ] {
            let error = format!("{:#}", parsed(text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
        let is_on = |text| parsed(text).unwrap().is_search_enabled();
        assert!(is_on("") && is_on("[search]") && is_on("[search]\nenabled = true"));
        assert!(!is_on("[search]\nenabled = false"));
        let stalled = |text| parsed(text).unwrap().stalled_after.0.map(|after| after.as_secs());
        assert_eq!((stalled(""), stalled("[watch]")), (Some(600), Some(600)));
        assert_eq!(stalled("[watch]\nstalled_after_minutes = 3"), Some(180));
        assert_eq!(stalled("[watch]\nstalled_after_minutes = 0"), None);
        let is_hooked = |text| parsed(text).unwrap().runs_observed_hooks;
        assert!(is_hooked("[hooks]\nobserved = true") && !is_hooked("[hooks]") && !is_hooked(""));
        assert!(parsed("[other]\nx = 1").unwrap().prices.is_empty());
    }
}
