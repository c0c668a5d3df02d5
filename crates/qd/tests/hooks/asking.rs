//! The diff comes first, and somebody has to agree.

use std::io::Write;
use std::process::Stdio;

use crate::home::{Home, Outcome};

const CLAUDE: &str = ".claude/settings.json";

#[test]
fn with_nobody_to_ask_it_shows_the_diff_and_refuses() {
    let home = Home::new("nobody");
    home.write(CLAUDE, "{}\n");
    let outcome = home.hooks(&["install"]).expect(2);
    assert!(outcome.out.contains("+    \"SessionStart\": ["), "{outcome:?}");
    assert!(!outcome.out.contains('\x1b'));
    assert!(outcome.err.contains("--yes"));
    assert_eq!(home.read(CLAUDE), "{}\n");
}

#[test]
fn a_dry_run_shows_the_diff_and_is_content() {
    let home = Home::new("dry");
    home.write(CLAUDE, "{}\n");
    let outcome = home.hooks(&["install", "--dry-run"]).expect(0);
    assert!(outcome.out.contains("+++ "), "{outcome:?}");
    assert_eq!(home.read(CLAUDE), "{}\n");
}

#[test]
fn a_program_reads_json() {
    let home = Home::new("json");
    home.write(CLAUDE, "{}\n");
    let refused = home.hooks(&["install", "--json"]).expect(2).json();
    assert_eq!(
        (&refused["applied"], &refused["harnesses"][0]["state"]),
        (&false.into(), &"planned".into())
    );
    let done = home.hooks(&["install", "--json", "--yes"]).expect(0).json();
    assert_eq!(done["applied"], true);
    assert_eq!(done["harnesses"][0]["files"][0]["changes"].as_array().unwrap().len(), 20);
    let again = home.hooks(&["install", "--json", "--yes"]).expect(0).json();
    assert_eq!(again["harnesses"][0]["state"], "nothing_to_do");
}

#[test]
fn a_token_is_written_but_not_shown() {
    let home = Home::new("token");
    home.write(CLAUDE, "{}\n");
    let token = home.write("token", "s3cr3t-t0ken\n");
    let args = ["install", "--yes", "--otel", "--otel-token-file", token.to_str().unwrap()];
    let outcome = home.hooks(&args).expect(0);
    assert!(!outcome.out.contains("s3cr3t"), "{outcome:?}");
    assert!(home.read(CLAUDE).contains("Authorization=Bearer s3cr3t-t0ken"));
    home.hooks(&["uninstall", "--yes", "--otel"]).expect(0);
    assert!(!home.read(CLAUDE).contains("s3cr3t"));
    assert!(home.read(CLAUDE).contains("qd-hook"));
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_it_asks_in_colour() {
    let home = Home::new("terminal");
    home.write(CLAUDE, "{}\n");
    let declined = on_a_terminal(&home, "", "n\n");
    assert_eq!(declined.code, Some(1), "{declined:?}");
    assert!(declined.out.contains("[y/N]") && declined.out.contains("\x1b[32m+"), "{declined:?}");
    assert_eq!(home.read(CLAUDE), "{}\n");
    let agreed = on_a_terminal(&home, "1", "y\n");
    assert_eq!(agreed.code, Some(0), "{agreed:?}");
    assert!(!agreed.out.contains("\x1b[32m"), "{agreed:?}");
    assert!(home.read(CLAUDE).contains("qd-hook"));
}

#[cfg(target_os = "linux")]
fn on_a_terminal(home: &Home, no_color: &str, answer: &str) -> Outcome {
    let line = format!("'{}' hooks install", home.qd().display());
    let mut script = home.command("/usr/bin/script");
    script.args(["-qec", &line, "/dev/null"]).env("NO_COLOR", no_color);
    let mut child =
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(answer.as_bytes()).unwrap();
    Outcome::of(child.wait_with_output().unwrap())
}
