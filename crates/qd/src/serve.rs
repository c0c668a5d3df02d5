//! `qd serve`: the daemon itself.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use qd_daemon::runtime::{Runtime, Settings};
use qd_harness::usage::PriceTable;
use qd_history::{Bookkeeper, Books, Searcher};
use qd_notices::Notices;
use qd_runners::environment;
use qd_runners::hooks::{HooksFile, ObservedHooks};
use qd_runners::local_crew::{AgentPrograms, CrewSettings, LocalCrew};
use qd_runners::model::Models;
use qd_runners::tools::SandboxConfig;
use qd_runners::warden::Warden;
use qd_server::{Doors, PORT, Records, Server, Tokens};
use qd_sources::hook_intake;
use qd_sources::places::Place;
use qd_telemetry::Exporter;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::config::Config;
use crate::daemon::Daemon;
use crate::heap;
use crate::paths::Paths;
use crate::zone::Zone;

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The TCP port on 127.0.0.1; 0 takes any that is free
    #[arg(long, env = "QD_PORT", default_value_t = PORT)]
    port: u16,
    /// Open no page. It never does by itself: that is `qd open`, or `qd` alone
    #[arg(long)]
    no_open: bool,
    /// Live on when the terminal closes that started it
    #[arg(long, hide = true)]
    detached: bool,
}

impl ServeArgs {
    /// Whether it runs in the background, with a log of its own.
    pub fn is_detached(&self) -> bool {
        self.detached
    }
}

pub async fn serve(args: &ServeArgs, paths: &Paths) -> Result<()> {
    if args.detached {
        rustix::process::setsid().context("cannot leave the terminal")?;
    }
    allow_many_files();
    // Before anybody can know of us: who is told to end while he starts ends well, too.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let socket = match hook_intake::bind(&paths.socket) {
        Ok(socket) => socket,
        Err(qd_sources::Error::SocketTaken { path }) => bail!(first_one(paths, &path).await),
        Err(error) => return Err(error.into()),
    };
    socket.set_nonblocking(true)?;
    let socket = UnixListener::from_std(socket)?;
    let port = Server::listen(args.port).await.context("choose another with --port")?;
    let address = port.local_addr()?;
    let tokens = Tokens::open(&paths.tokens())?;
    let config = Config::read(&paths.config)?;
    let (prices, is_search_enabled) = (config.price_table(), config.is_search_enabled());
    let mut clock = Zone::of_operator();
    let offset = Box::new(move |at| clock.offset(at));
    let driving = Driving {
        models: config.models,
        programs: config.programs,
        prices: prices.clone(),
        sandbox: config.sandbox,
    };
    let telling = config.notify.settings(paths.notices(), &config.hosts, address.port(), offset);
    let collector = config.otlp.collector(|name| std::env::var(name).ok(), address.port());
    let doors = Doors { socket, port, tokens, hosts: config.hosts };
    let (stop, stopped) = watch::channel(false);
    let settings = Settings {
        home: paths.home.clone(),
        environment: std::env::vars_os().collect(),
        state: paths.state.clone(),
        opencode_servers: config.opencode_servers,
        client_folders: config.client_folders,
        layers: paths.layers(),
        policy: paths.policy(),
    };
    let (mut runtime, handle) = Runtime::open(&settings, stopped.clone())?;
    if let Some(collector) = collector {
        info!(%collector, "turns of driven sessions are traced");
        runtime.export_spans(Exporter::start(collector)?);
    }
    runtime.set_stalled_after(config.stalled_after.0);
    if config.runs_observed_hooks {
        keep_observed_hooks(&mut runtime, paths)?;
    }
    let mut zone = Zone::of_operator();
    let mut counted = settings.places();
    counted.push(Place::journal(paths.journal()));
    let (bookkeeper, news) = Bookkeeper::start(Books {
        places: counted,
        index: paths.usage_index(),
        prices,
        offset: Box::new(move |at| zone.offset(at)),
    })?;
    runtime.keep_books(bookkeeper.clone(), news);
    runtime.keep_crew(Arc::new(crew(paths, driving)?));
    let notices = Some(Notices::start(handle.clone(), telling)?);
    let mut records = Records { books: Some(bookkeeper), searcher: None, notices };
    if is_search_enabled {
        let searcher = Searcher::start(settings.places(), paths.search_index())?;
        runtime.keep_search(searcher.clone());
        records.searcher = Some(searcher);
    }
    info!(%address, socket = %paths.socket.display(), "listening");
    println!("Quarterdeck listens at http://{address} and {}", paths.socket.display());
    let served = tokio::spawn(Server::serve(handle, records, doors, stopped));
    let mut running = tokio::spawn(runtime.run());
    let ran = tokio::select! {
        ran = &mut running => ran,
        () = heap::give_back() => unreachable!("it gives back for ever"),
        _ = interrupted.recv() => ended(&stop, running).await,
        _ = terminated.recv() => ended(&stop, running).await,
    };
    // Nobody takes anything in any more.
    stop.send_replace(true);
    served.await??;
    let removed = std::fs::remove_file(&paths.socket);
    removed.with_context(|| format!("cannot remove {}", paths.socket.display()))?;
    ran?.context("the daemon cannot go on")
}

/// Who runs things for the sessions that we drive.
fn crew(paths: &Paths, driving: Driving) -> Result<LocalCrew> {
    let Driving { models, programs, prices, sandbox } = driving;
    let settings = CrewSettings {
        home: paths.home.clone(),
        environment: environment::ours(),
        scratch: paths.scratch(),
        hooks_file: paths.hooks_file(),
        mcp_file: paths.mcp_file(),
        models,
        programs,
        prices,
        sandbox,
        private: paths.private(),
        warden: Warden::of_this_program().context("cannot find this program")?,
    };
    LocalCrew::new(settings).context("cannot speak to models")
}

/// What the operator has set for them.
struct Driving {
    models: Models,
    programs: AgentPrograms,
    prices: PriceTable,
    sandbox: SandboxConfig,
}

/// Hooks that cannot be read hold nobody up.
fn keep_observed_hooks(runtime: &mut Runtime, paths: &Paths) -> Result<()> {
    match HooksFile::read(&paths.hooks_file()) {
        Ok(hooks) => {
            info!(hooks = hooks.len(), "post-tool hooks run for observed agents");
            let warden = Warden::of_this_program().context("cannot find this program")?;
            runtime.keep_observed_hooks(ObservedHooks { hooks, warden });
        }
        Err(error) => warn!(%error, "no post-tool hook runs"),
    }
    Ok(())
}

/// As many open files as we may have: pages and hooks hold one each, and a shell's usual 1,024 are
/// fewer than we are willing to serve.
fn allow_many_files() {
    let allowed = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: allowed.maximum, ..allowed };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        warn!(%error, "open files stay limited");
    }
}

/// Tells the loop to stop and waits until all it took is written.
async fn ended<T>(
    stop: &watch::Sender<bool>,
    running: tokio::task::JoinHandle<T>,
) -> Result<T, tokio::task::JoinError> {
    info!("stopping");
    stop.send_replace(true);
    running.await
}

/// Says where the daemon is that was here first.
async fn first_one(paths: &Paths, socket: &std::path::Path) -> String {
    let socket = socket.display();
    match Daemon::at(paths).about().await {
        Ok(Some(about)) => format!(
            "a daemon already runs here: process {}, version {}, http://127.0.0.1:{}, socket {socket}",
            about.pid, about.version, about.port
        ),
        Ok(None) | Err(_) => format!("a daemon already listens at {socket}, but does not answer"),
    }
}
