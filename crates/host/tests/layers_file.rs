//! `layers.toml`, and the operator's page about it.

use std::fs;
use std::path::Path;

use qd_host::layers_file::LayersFile;
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact, Monitor, Place};
use qd_session::operator::layer::{Icon, Known};
use qd_session::operator::{AgentState, Urgency, resolve};

const PAGE: &str = include_str!("../../../docs/layers.md");
const HOME: &str = "/home/u";

/// The page's examples, as one would copy them.
fn of_page() -> LayersFile {
    let example = PAGE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    LayersFile::parsed(example.expect("an example"), Path::new(HOME))
}

/// A session in a folder that runs a command, as it is shown.
fn shown(
    file: &LayersFile,
    harness: &str,
    cwd: &str,
    facts: Vec<Fact>,
) -> (AgentState, Option<Icon>) {
    let place = Place { cwd: Some(cwd.into()), ..Place::default() };
    let mut monitor = Monitor::default();
    let facts = [Fact::PlaceKnown { place }, Fact::TurnStarted].into_iter().chain(facts);
    for (at, fact) in (1_000_u64..).zip(facts) {
        monitor.apply(&AgentEvent::main(Timestamp(at), Source::Hook, fact));
    }
    let mut state = resolve(Timestamp(2_000), &monitor);
    let known = Known { state: &state, monitor: &monitor, harness, project: Some(cwd) };
    let icon = file.layers.dress(&known).and_then(|dress| dress.put_on(&mut state));
    (state, icon)
}

fn run(command: &str) -> Fact {
    let (call, about) = ("c".into(), Some(command.into()));
    Fact::ToolStarted { call, tool: "Bash".into(), about }
}

fn ended(last_message: &str) -> Fact {
    let last_message = Some(last_message.into());
    Fact::TurnCompleted { last_message, background: None, cut_off: false }
}

#[test]
fn the_examples_of_the_page_do_what_it_says() {
    let file = of_page();
    assert_eq!(file.troubles, []);
    assert_eq!(file.layers.rules_len(), 3);
    let label = |(state, _): &(AgentState, Option<Icon>)| state.label.clone();

    let deploys = shown(&file, "codex", "/w/api", vec![run("cd x && make deploy")]);
    assert_eq!((label(&deploys).as_str(), deploys.1), ("Deploying api", Some(Icon::Deploy)));
    assert_eq!(deploys.0.urgency, Urgency::High);

    let asks = || vec![ended("Which one do you want?")];
    let shop = shown(&file, "codex", "/home/u/work/shop/web", asks());
    assert_eq!((label(&shop).as_str(), shop.1), ("Shop: Asked you a question", Some(Icon::Flag)));
    assert_eq!(label(&shown(&file, "codex", "/w/api", asks())), "Asked you a question");

    let scratch = shown(&file, "codex", "/w/scratch", asks());
    assert_eq!((scratch.0.core_label, scratch.0.urgency), (None, Urgency::Low));
    let other = shown(&file, "claude_code", "/w/scratch", asks());
    assert_eq!(other.0.urgency, Urgency::Usual);

    let commit = || {
        let ended_ok = Fact::ToolCompleted { call: "c".into(), ok: true, exit_code: Some(0) };
        vec![run("git commit -m x"), ended_ok, ended("All done.")]
    };
    assert_eq!(label(&shown(&file, "codex", "/home/u/novel", commit())), "Finished");
    assert_eq!(label(&shown(&file, "codex", "/w/api", commit())), "Committed: x");
}

#[test]
fn the_page_names_every_icon() {
    let list = PAGE.split("`icon` is one of:\n\n").nth(1).and_then(|rest| rest.lines().next());
    let written: Vec<&str> =
        list.expect("a list").split(' ').map(|name| name.trim_matches('`')).collect();
    let held: Vec<&str> = Icon::ALL.iter().map(|icon| icon.name()).collect();
    assert_eq!(written, held);
}

#[test]
fn a_file_that_cannot_be_used_is_told_and_never_hangs() {
    let folder = std::env::temp_dir().join(format!("qd-layers-file-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("made");
    let path = folder.join("layers.toml");
    let read = || LayersFile::read(&path, Path::new(HOME));
    let told = || read().troubles.into_iter().map(|trouble| trouble.what).collect::<String>();
    assert_eq!(read().troubles, []);
    fs::write(&path, "# mine\n[[rule]\n").expect("written");
    assert!(told().starts_with("line 2: "), "{}", told());
    fs::write(&path, [0xff, 0xfe]).expect("written");
    assert!(told().contains("UTF-8"), "{}", told());
    fs::write(&path, "#".repeat(70_000)).expect("written");
    assert!(told().contains("longer than 65536 bytes"), "{}", told());
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("made");
    assert!(!told().is_empty());
    fs::remove_dir(&path).expect("removed");
    let fifo = rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    );
    fifo.expect("a pipe");
    assert_eq!(told(), "it is not a regular file");
    fs::remove_dir_all(&folder).expect("removed");
}
