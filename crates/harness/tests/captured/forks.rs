//! A session that went on from another one names it.

use std::collections::BTreeMap;

use qd_harness::Channel;
use qd_harness::capture::Recorded;
use qd_harness::replay::Replay;

use super::capture::{Capture, top};

/// Which session each one went on from, by what one source tells.
fn chains(capture: &Capture, source: Channel) -> BTreeMap<String, String> {
    let mut replay = Replay::new(capture.scenario.harness);
    let signals = capture.signals.iter().filter_map(Recorded::signal);
    signals.filter(|signal| signal.channel == source).for_each(|signal| {
        replay.play(&signal);
    });
    replay.finish();
    let chains = replay.sessions().filter_map(|(id, monitor)| {
        let parent = &monitor.about()?.forked_from.as_ref()?.value;
        Some((id.to_string(), parent.to_string()))
    });
    chains.collect()
}

#[test]
fn a_fork_of_codex_names_the_thread_it_went_on_from() {
    let capture = Capture::read(&top().join("codex/app-resume"));
    let (fork, parent) =
        ("01a1e095-97e1-7861-86b6-d8396e6f2f5c", "01a1e095-8f4c-7b52-8e33-a5c9cd0ad4ab");
    // Each of them knows it.
    for source in [Channel::Transcript, Channel::AppServer] {
        let expected = BTreeMap::from([(fork.to_owned(), parent.to_owned())]);
        assert_eq!(chains(&capture, source), expected, "by {source:?}");
    }
}
