//! Software work: tests and how they went, commits, pushes, pull requests.
//!
//! A permission keeps the core's label: what is about to be allowed must not be told in fewer
//! words than it has.

use super::{Dress, Icon, Known};
use crate::deed::{DeedKind, deeds};
use crate::monitor::{Latest, Run};
use crate::operator::state::SubState;

pub fn dress(known: &Known<'_>) -> Option<Dress> {
    let state = &known.state.state;
    if *state == SubState::ACTING {
        return acting(known);
    }
    if *state == SubState::TASK_COMPLETE {
        return finished(known);
    }
    None
}

/// Of several deeds of one command the first that takes its time.
fn acting(known: &Known<'_>) -> Option<Dress> {
    let deeds = deeds(known.tool()?, known.command()?);
    let rank = |kind: &DeedKind| match kind {
        DeedKind::Tests => 0,
        DeedKind::PullRequest => 1,
        DeedKind::Push => 2,
        DeedKind::Commit(_) => 3,
    };
    let deed = deeds.iter().min_by_key(|deed| rank(&deed.kind))?;
    Some(match deed.kind {
        DeedKind::Tests => Dress::new(Icon::Tests, "Running tests"),
        DeedKind::PullRequest => Dress::new(Icon::PullRequest, "Opening a pull request"),
        DeedKind::Push => Dress::new(Icon::Push, "Pushing"),
        DeedKind::Commit(_) => Dress::new(Icon::Commit, "Committing"),
    })
}

/// How the last tests of the turn went.
enum Tests {
    Pass,
    Fail,
    /// They failed, and code was written since.
    FailedEarlier,
    NotKnown,
}

fn finished(known: &Known<'_>) -> Option<Dress> {
    let (work, agent) = (known.monitor.work()?, known.monitor.main_agent());
    let tests = match &work.tests {
        None => Tests::NotKnown,
        Some(run) => match (run.value.succeeded(agent), work.code > run.stamp) {
            (Some(true), false) => Tests::Pass,
            (Some(false), false) => Tests::Fail,
            (Some(false), true) => Tests::FailedEarlier,
            (Some(true), true) | (None, _) => Tests::NotKnown,
        },
    };
    let succeeded = |run: &&Latest<Run>| run.value.succeeded(agent) == Some(true);
    let done = if work.pull_request.as_ref().filter(succeeded).is_some() {
        Some((Icon::PullRequest, "Opened a pull request".to_owned()))
    } else {
        work.commit.as_ref().filter(succeeded).map(|run| {
            let label = match (known.branch(), &run.value.message) {
                (Some(branch), _) => format!("Committed to {branch}"),
                (None, Some(message)) => format!("Committed: {message}"),
                (None, None) => "Committed".to_owned(),
            };
            (Icon::Commit, label)
        })
    };
    let (icon, label) = match (&done, &tests) {
        (None, Tests::NotKnown) => return None,
        (None, _) => (Icon::TestsPassed, "Finished"),
        (Some((icon, label)), _) => (*icon, label.as_str()),
    };
    Some(match tests {
        Tests::Pass => Dress::new(icon, format!("{label}, tests pass")),
        Tests::Fail => Dress::new(Icon::TestsFailed, format!("{label}, tests fail")).urgent(),
        Tests::FailedEarlier => {
            Dress::new(Icon::TestsFailed, format!("{label}, tests failed earlier")).urgent()
        }
        Tests::NotKnown => Dress::new(icon, label),
    })
}
