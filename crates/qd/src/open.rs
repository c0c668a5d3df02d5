//! `qd open`: a link that signs a browser in, once; `qd browsers`: who is signed in.

use std::io::IsTerminal;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use qd_server::{Link, LinkWanted, Scope};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use serde_json::json;

use crate::daemon::{Daemon, escaped};
use crate::paths::Paths;

/// Sign a browser in: prints a link that works once, and opens it
///
/// The link is for this machine. For a phone, name the address by which it reaches this machine
/// with --host; it must be one of the hosts in the settings (docs/elsewhere.md).
#[derive(Debug, Args)]
pub struct OpenArgs {
    /// What the browser may do: observe, operate or admin
    #[arg(long, default_value = "operate", value_parser = crate::scope)]
    scope: Scope,
    /// The https name that leads to this machine, as `box.example.ts.net`
    #[arg(long)]
    host: Option<String>,
    /// Print the link only
    #[arg(long)]
    no_browser: bool,
}

pub async fn open(args: &OpenArgs, paths: &Paths) -> Result<()> {
    let program = browser().filter(|_| args.host.is_none() && !args.no_browser);
    let invitation = invitation(args, program.is_some(), paths).await?;
    let link = &invitation.link;
    println!("{link}");
    if std::io::stdout().is_terminal() {
        println!("{}", picture(link)?);
        println!("It works once, within ten minutes.");
    }
    if program.is_some_and(|program| invitation.show(&program)) {
        eprintln!("{IF_NOT_SHOWN}");
    }
    Ok(())
}

/// A browser in a sandbox of its own, as a snap is, cannot read the file that it is given.
pub const IF_NOT_SHOWN: &str = "If the browser cannot read the file, open the link yourself.";

/// A link for a browser on this machine.
pub async fn invite(paths: &Paths) -> Result<String> {
    invitation(&HERE, false, paths).await.map(|invitation| invitation.link)
}

/// The same, shown in the browser of this desktop, if there is one.
pub async fn invite_and_show(paths: &Paths) -> Result<(String, bool)> {
    let program = browser();
    let invitation = invitation(&HERE, program.is_some(), paths).await?;
    let shown = program.is_some_and(|program| invitation.show(&program));
    Ok((invitation.link, shown))
}

const HERE: OpenArgs = OpenArgs { scope: Scope::Operate, host: None, no_browser: false };

struct Invitation {
    link: String,
    /// Leads a browser to the link: other users of this machine can read what a program is started
    /// with, and not this file.
    file: Option<String>,
}

async fn invitation(args: &OpenArgs, with_file: bool, paths: &Paths) -> Result<Invitation> {
    if args.scope == Scope::Ingest {
        bail!("a browser may observe, operate or admin");
    }
    let daemon = Daemon::at(paths);
    let about = daemon.about().await?.ok_or(crate::exit::Exit::NoDaemon)?;
    let wanted = LinkWanted { scope: Some(args.scope.name().to_owned()), file: with_file };
    let link = daemon.post_json("/api/links", &serde_json::to_value(wanted)?).await?;
    let link: Link = serde_json::from_value(link).context("the daemon is of another version")?;
    let address = match &args.host {
        Some(host) => format!("https://{host}{}", link.path),
        None => format!("http://127.0.0.1:{}{}", about.port, link.path),
    };
    Ok(Invitation { link: address, file: link.file })
}

/// For a camera.
fn picture(link: &str) -> Result<String> {
    let code = QrCode::new(link).context("the link is too long for a picture")?;
    Ok(code.render::<Dense1x2>().quiet_zone(true).build())
}

/// What opens the browser of this desktop, if there is a desktop.
fn browser() -> Option<String> {
    let desktop =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = std::env::var("BROWSER").ok().or_else(|| desktop.then(|| "xdg-open".to_owned()));
    program.filter(|program| !program.is_empty())
}

impl Invitation {
    fn show(&self, program: &str) -> bool {
        let Some(file) = &self.file else { return false };
        let mut command = Command::new(program);
        let command = command.arg(file_url(file)).stdin(Stdio::null()).stdout(Stdio::null());
        // The link is printed anyway.
        command.stderr(Stdio::null()).spawn().is_ok()
    }
}

fn file_url(path: &str) -> String {
    let parts: Vec<String> = path.split('/').map(escaped).collect();
    format!("file://{}", parts.join("/"))
}

/// List the browsers that are signed in, or sign one out
#[derive(Debug, Args)]
pub struct BrowsersArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Sign a browser out at once, its notifications included
    Forget {
        /// The id in the list
        id: String,
    },
}

pub async fn browsers(args: &BrowsersArgs, paths: &Paths) -> Result<()> {
    let daemon = Daemon::at(paths);
    if let Some(What::Forget { id }) = &args.what {
        let path = format!("/api/browsers/{}/forget", escaped(id));
        return daemon.post_json(&path, &json!({})).await.map(drop);
    }
    let list = daemon.get("/api/browsers").await?;
    if args.json {
        println!("{list}");
        return Ok(());
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    for browser in list.as_array().into_iter().flatten() {
        let text = |key: &str| browser[key].as_str().unwrap_or_default();
        let seen = Duration::from_secs(browser["seenS"].as_u64().unwrap_or_default());
        let days = now.saturating_sub(seen).as_secs() / (24 * 60 * 60);
        let seen = if days == 0 { "today".to_owned() } else { format!("{days} days ago") };
        println!("{}  {:7}  {seen:12}  {}", text("id"), text("scope"), text("name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_an_address() {
        assert_eq!(file_url("/run/user/1 a/q#d.html"), "file:///run/user/1%20a/q%23d.html");
    }

    #[test]
    fn the_picture_fits_a_terminal() {
        let picture = picture(&format!("https://box.example.ts.net/sign-in#{}", "0".repeat(32)));
        let picture = picture.expect("a picture");
        assert!(picture.lines().all(|line| line.chars().count() <= 60), "{picture}");
    }
}
