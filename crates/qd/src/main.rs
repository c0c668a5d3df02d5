//! Flags, configuration, wiring: no rule lives here.

mod act;
mod archive;
mod audit;
mod background;
mod capture;
mod config;
mod daemon;
mod demo;
mod doctor;
mod exit;
mod explain;
mod heap;
mod hooks;
mod log_file;
mod notify_config;
mod open;
mod otlp_config;
mod paper;
mod paths;
mod policy;
mod program;
mod progress_bar;
mod record;
mod redact;
mod replay;
mod request_text;
mod run;
mod sandbox_config;
mod search;
mod serve;
mod service;
mod session_line;
mod status;
mod story;
mod usage;
mod usage_table;
mod wait;
mod watch;
mod zone;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use qd_server::{Scope, Tokens};
use tracing_subscriber::EnvFilter;

use crate::daemon::{Daemon, escaped};
use crate::exit::Exit;
use crate::log_file::LogFile;
use crate::paths::Paths;

/// See, answer and drive every coding agent on this machine.
///
/// Without a command: starts the daemon in the background if none runs, and opens its page.
#[derive(Debug, Parser)]
#[command(name = "qd", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 a mistake in the command line, \
                          3 no daemon runs, 4 no such session, 5 timed out, 6 records were changed\n\n\
                          Environment: XDG_STATE_HOME, XDG_RUNTIME_DIR and XDG_CONFIG_HOME say where our files are;\n\
                          CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_HOME and XDG_DATA_HOME where the agents' are;\n\
                          OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS where traces go;\n\
                          QD_PORT, QD_LOG and NO_COLOR are honoured";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon: watch this machine's agents until stopped
    ///
    /// Listens on a unix socket that only this user can open and on 127.0.0.1, where a token is
    /// needed (`qd token`). Logs to standard error; QD_LOG says how much, as `debug` or
    /// `qd_broker=debug`. SIGTERM or Ctrl-C ends it; what it took is written first.
    Serve(serve::ServeArgs),
    /// Show every session and its state, once
    ///
    /// A line has the session's id, the agent, what it does, for how long, its title and its folder.
    /// Those that wait for you come first, the longest wait on top.
    Status(status::StatusArgs),
    /// Show the board in this terminal, as it changes
    ///
    /// Keys: j and k or the arrows move, enter shows why a session is seen as it is, e dismisses
    /// it until it does something, q quits. NO_COLOR turns colours off.
    Watch,
    /// Say why a session is seen as it is: live, or in a capture at a moment
    ///
    /// Tells the state, the rule that gave it, who said what it rests on, how long ago, and what
    /// the agent waits for.
    Explain(replay::ExplainArgs),
    /// Wait until a session is in a state
    ///
    /// Prints the first session that is in it, at once if one is already. For scripts:
    /// `qd wait --until needs-you && notify-send "An agent waits"`.
    Wait(wait::WaitArgs),
    Run(run::RunArgs),
    Approve(act::ApproveArgs),
    Deny(act::DenyArgs),
    Answer(act::AnswerArgs),
    Send(act::SendArgs),
    /// End a session's turn
    Interrupt(act::PlainArgs),
    /// Ask a session's process to end
    Stop(act::PlainArgs),
    /// Bring a session's terminal to the front, where it runs in tmux
    Focus(act::PlainArgs),
    Yolo(act::YoloArgs),
    /// Go on with a session: one that has ended in this terminal, one that is driven where it was held
    Resume(act::PlainArgs),
    /// Take a session out of Needs You until its next event
    Dismiss {
        /// A session: its id, or a beginning of it that is unique
        session: String,
    },
    Archive(archive::ArchiveArgs),
    Unarchive(archive::UnarchiveArgs),
    /// Show what agents may do without asking, or try it on what they asked for
    Policy(policy::PolicyArgs),
    Usage(usage::UsageArgs),
    Search(search::SearchArgs),
    Audit(audit::AuditArgs),
    Record(record::RecordArgs),
    Demo(demo::DemoArgs),
    /// Play a recorded session and show what the operator would have seen
    ///
    /// The same handlers and rules as in the daemon, on the recording's own clock.
    Replay(replay::ReplayArgs),
    /// Let agents report to the daemon, through hooks in their own settings
    ///
    /// Every change is shown as a diff first; uninstall leaves the files as they were.
    Hooks(hooks::HooksArgs),
    Doctor(doctor::DoctorArgs),
    /// Run the daemon as a service of this user, with systemd
    ///
    /// The unit is shown, then written to $XDG_CONFIG_HOME/systemd/user/quarterdeck.service. Where
    /// systemctl cannot be used, it says what to run.
    Service(service::ServiceArgs),
    Open(open::OpenArgs),
    Browsers(open::BrowsersArgs),
    /// Print a token for the daemon's port
    Token {
        /// ingest, observe, operate or admin; each may do what those before it may
        #[arg(long, default_value = "observe", value_parser = scope)]
        scope: Scope,
        /// Print the path of the file that holds it instead
        #[arg(long)]
        path: bool,
    },
    /// Run a program for the daemon, and end with all that it starts
    #[command(hide = true)]
    Warden,
    /// Print completions for a shell
    Completions {
        /// The shell they are for
        shell: Shell,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if matches!(cli.command, Some(Command::Warden)) {
        return qd_runners::warden::keep_watch();
    }
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("qd: {error:#}");
            ExitCode::from(error.downcast_ref::<Exit>().map_or(1, Exit::code))
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let Some(command) = cli.command else {
        return with_daemon(async |paths| background::open(paths).await);
    };
    match command {
        Command::Replay(args) => replay::replay(&args),
        Command::Explain(args) if is_capture(&args) => replay::explain(&args),
        Command::Hooks(args) => hooks::run(&args),
        Command::Search(args) => search::search(&args, &Paths::from_environment()?),
        Command::Audit(args) => audit::audit(&args, &Paths::from_environment()?),
        Command::Policy(args) => with_daemon(async |paths| policy::policy(&args, paths).await),
        Command::Usage(args) => usage::usage(&args, &Paths::from_environment()?),
        Command::Service(args) => service::service(&args, &Paths::from_environment()?),
        // It has no daemon, no paths and no words: `main` has it.
        Command::Warden => Ok(()),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "qd", &mut std::io::stdout());
            Ok(())
        }
        Command::Token { scope, path } => {
            let tokens = Tokens::open(&Paths::from_environment()?.tokens())?;
            match path {
                true => println!("{}", tokens.path(scope).display()),
                false => println!("{}", tokens.token(scope)),
            }
            Ok(())
        }
        Command::Serve(args) => {
            let paths = Paths::from_environment()?;
            log_to_stderr(args.is_detached().then(|| LogFile::at(paths.log())));
            daemon_threads()?.block_on(serve::serve(&args, &paths))
        }
        Command::Demo(args) => daemon_threads()?.block_on(demo::demo(&args)),
        Command::Status(args) => with_daemon(async |paths| status::status(&args, paths).await),
        Command::Open(args) => with_daemon(async |paths| open::open(&args, paths).await),
        Command::Browsers(args) => with_daemon(async |paths| open::browsers(&args, paths).await),
        Command::Watch => with_daemon(async |paths| watch::watch(paths).await),
        Command::Wait(args) => with_daemon(async |paths| wait::wait(&args, paths).await),
        Command::Doctor(args) => with_daemon(async |paths| doctor::doctor(&args, paths).await),
        Command::Record(args) => with_daemon(async |paths| record::record(&args, paths).await),
        Command::Explain(args) => with_daemon(async |paths| {
            explain::explain(&args.session_or_capture.to_string_lossy(), args.json, paths).await
        }),
        Command::Run(args) => with_daemon(async |paths| run::run(&args, paths).await),
        Command::Approve(args) => with_daemon(async |paths| act::approve(&args, paths).await),
        Command::Deny(args) => with_daemon(async |paths| act::deny(&args, paths).await),
        Command::Answer(args) => with_daemon(async |paths| act::answer(&args, paths).await),
        Command::Send(args) => with_daemon(async |paths| act::send(&args, paths).await),
        Command::Yolo(args) => with_daemon(async |paths| act::yolo(&args, paths).await),
        Command::Interrupt(args) => plain_command(&args, "interrupt"),
        Command::Stop(args) => plain_command(&args, "stop"),
        Command::Focus(args) => plain_command(&args, "focus"),
        Command::Resume(args) => with_daemon(async |paths| act::resume(&args, paths).await),
        Command::Archive(args) => with_daemon(async |paths| archive::archive(&args, paths).await),
        Command::Unarchive(args) => {
            with_daemon(async |paths| archive::unarchive(&args, paths).await)
        }
        Command::Dismiss { session } => with_daemon(async |paths| {
            let path = format!("/api/sessions/{}/dismiss", escaped(&session));
            Daemon::at(paths).post(&path).await.map(drop)
        }),
    }
}

fn plain_command(args: &act::PlainArgs, what: &str) -> Result<()> {
    with_daemon(async |paths| act::plain_command(args, what, paths).await)
}

/// A folder with a moment, or one that looks like a capture.
fn is_capture(args: &replay::ExplainArgs) -> bool {
    args.at.is_some() || Path::new(&args.session_or_capture).join("signals.jsonl").is_file()
}

/// For a command that is a daemon: what it serves does not wait for its loop.
fn daemon_threads() -> Result<tokio::runtime::Runtime> {
    heap::share();
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    Ok(threads.worker_threads(2).enable_all().build()?)
}

/// For a command that asks the daemon something: one thread is enough.
fn with_daemon(command: impl AsyncFnOnce(&Paths) -> Result<()>) -> Result<()> {
    let paths = Paths::from_environment()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot wait for the daemon")?;
    runtime.block_on(command(&paths))
}

/// `QD_LOG` says how much, as `info` or `qd_broker=debug`. A log of our own is kept short.
fn log_to_stderr(log: Option<LogFile>) {
    // The client of MCP servers would tell whatever they send.
    let usual = || EnvFilter::new("info,rmcp=error");
    let filter = EnvFilter::try_from_env("QD_LOG").unwrap_or_else(|_| usual());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || match &log {
            Some(log) => Box::new(log.clone()) as Box<dyn std::io::Write>,
            None => Box::new(std::io::stderr()),
        })
        // A log that cannot be written, as on a full disk, must not end the daemon: telling of it
        // would be a write to the same file, which panics.
        .log_internal_errors(false)
        .init();
}

fn scope(name: &str) -> Result<Scope, String> {
    Scope::named(name).ok_or_else(|| "ingest, observe, operate or admin".to_owned())
}

/// Whoever read our output has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    };
    error.chain().any(broken)
}
