//! Software work and creative work.

use qd_session::monitor::{Ask, Fact, Stage};
use qd_session::operator::Urgency;
use qd_session::operator::layer::{Icon, Layers};

use super::world::World;

#[test]
fn a_running_command_says_what_it_is_for() {
    for (command, label, icon) in [
        ("cd x && cargo test 2>&1 | tail", "Running tests", Some(Icon::Tests)),
        ("git commit -m x", "Committing", Some(Icon::Commit)),
        ("git commit -m x && git push", "Pushing", Some(Icon::Push)),
        ("gh pr create --fill", "Opening a pull request", Some(Icon::PullRequest)),
        ("cargo build", "Running Bash", None),
    ] {
        let mut world = World::working();
        world.start("Bash", command);
        world.reads(label, icon);
    }
}

#[test]
fn a_finished_turn_says_how_its_last_tests_went() {
    let run = |command, code| World::working().ran(command, code).finished();
    run("cargo test", 101).reads("Finished, tests fail", Some(Icon::TestsFailed));
    run("cargo test", 0).reads("Finished, tests pass", Some(Icon::TestsPassed));
    // What `tail` returned says nothing, and who was killed has not failed.
    run("cargo test | tail", 0).reads("Finished", None);
    run("cargo test", 137).reads("Finished", None);
    run("cargo test", 127).reads("Finished", None);
    let again = World::working().ran("cargo test", 101).ran("cargo test", 0).finished();
    again.reads("Finished, tests pass", Some(Icon::TestsPassed));
    let (state, _) = run("cargo test", 101).shown(&Layers::default());
    assert_eq!((state.core_label.as_deref(), state.urgency), (Some("Finished"), Urgency::High));
}

#[test]
fn tests_that_nobody_knows_the_end_of_are_not_spoken_of() {
    let mut world = World::working();
    let call = world.start("Bash", "cargo test");
    // Refused, or told by a client that keeps exit codes to itself.
    world.end(call, false, None);
    world.said("All done.").reads("Finished", None);
}

#[test]
fn code_that_was_written_since_makes_tests_old() {
    let edited =
        |code| World::working().ran("cargo test", code).wrote("Edit", "/w/a.rs").finished();
    edited(101).reads("Finished, tests failed earlier", Some(Icon::TestsFailed));
    edited(0).reads("Finished", None);
}

#[test]
fn commits_and_pull_requests_are_told_with_their_place() {
    let commit = "git add -A && git commit -m 'Fix the lock'";
    World::working().ran(commit, 0).finished().reads("Committed: Fix the lock", Some(Icon::Commit));
    let mut on_branch = World::working();
    on_branch.at("/w", Some("feature/auth"));
    let on_branch = on_branch.ran(commit, 0).finished();
    on_branch.reads("Committed to feature/auth", Some(Icon::Commit));
    let tested = World::working().ran("npm test", 0).ran("git commit --amend", 0).finished();
    tested.reads("Committed, tests pass", Some(Icon::Commit));
    let failing = World::working().ran("npm test", 1).ran("git commit --amend", 0).finished();
    failing.reads("Committed, tests fail", Some(Icon::TestsFailed));
    let opened = World::working().ran(commit, 0).ran("gh pr create --fill", 0).finished();
    opened.reads("Opened a pull request", Some(Icon::PullRequest));
    World::working().ran(commit, 1).finished().reads("Finished", None);
}

#[test]
fn what_an_earlier_turn_did_is_over() {
    let mut world = World::working().ran("cargo test", 101).finished();
    world.tell(Fact::TurnStarted);
    world.said("Hello.").reads("Finished", None);
}

#[test]
fn prose_without_code_is_creative_work() {
    let mut drafting = World::working();
    drafting.start("Write", "/w/chapter-1.md");
    drafting.reads("Drafting chapter-1.md", Some(Icon::Draft));
    let mut revising = World::working();
    revising.start("Edit", "/w/chapter-1.md");
    revising.reads("Revising chapter-1.md", Some(Icon::Revision));
    let wrote = |tool| World::working().wrote(tool, "/w/chapter-1.md");
    wrote("Write").finished().reads("Draft ready: chapter-1.md", Some(Icon::Draft));
    wrote("Edit").finished().reads("Revised chapter-1.md", Some(Icon::Revision));
    let asks = wrote("Write").said("Which ending do you want?");
    asks.reads("Wants feedback on chapter-1.md", Some(Icon::Feedback));
    let with_code = World::working().wrote("Edit", "/w/main.rs").wrote("Write", "/w/README.md");
    with_code.finished().reads("Finished", None);
}

#[test]
fn a_permission_is_never_told_in_other_words() {
    let mut world = World::working();
    let input = Some(r#"{"command":"cargo test && rm -rf /"}"#.into());
    let ask = Ask { tool: Some("Bash".into()), input, ..Ask::default() };
    let request = "r".into();
    world.tell(Fact::ApprovalRequested { request, stage: Stage::Waiting, ask });
    world.reads("Needs permission: Bash", None);
}
