//! `[model.NAME]` of config.toml, variables of the environment, and keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use qd_harness::native::Provider;
use qd_runners::model::{Endpoint, EndpointError, Key, Models};
use qd_testbed::Home;

use crate::{KEY, endpoint};

fn asked(config: &str, name: Option<&str>, variables: &[(&str, &str)]) -> Result<Endpoint, String> {
    let models = Models::parsed(config).map_err(|error| error.to_string())?;
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    models.endpoint(name, None, variable).map_err(|error| error.to_string())
}

fn check_refused(config: &str, name: Option<&str>, variables: &[(&str, &str)], said: &str) {
    match asked(config, name, variables) {
        Err(error) => {
            assert!(error.contains(said), "{error}");
            assert!(!error.contains(KEY), "{error}");
        }
        Ok(endpoint) => panic!("{endpoint:?}"),
    }
}

#[test]
fn the_providers_own_variables_are_enough() {
    let ours = [("ANTHROPIC_API_KEY", KEY), ("OPENAI_API_KEY", KEY)];
    let first = asked("", None, &ours).expect("an endpoint");
    assert_eq!(
        (first.provider, first.url().as_str()),
        (Provider::Anthropic, "https://api.anthropic.com/v1/messages")
    );
    let elsewhere = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/x")];
    let endpoint = asked("", Some("anthropic"), &elsewhere).expect("an endpoint");
    assert_eq!(endpoint.url().as_str(), "http://127.0.0.1:9/x/v1/messages");
    check_refused("", None, &[], "set ANTHROPIC_API_KEY or OPENAI_API_KEY");
    check_refused("", Some("anthropic"), &[], "the variable ANTHROPIC_API_KEY holds no key");
    check_refused("", Some("openai"), &ours, "openai names no model");
    check_refused("", Some("nobody"), &ours, "no model is called nobody");
}

#[test]
fn a_table_says_where_and_which() {
    let config = "[model.local]\nprovider = \"openai\"\nmodel = \"qwen\"\nbase_url = \"http://10.0.0.7:11434\"\n\
                  answer_tokens = 9000\nreturn_reasoning = true\n\n[prices.x]\ninput = 1\n";
    let endpoint = asked(config, None, &[("OPENAI_API_KEY", KEY)]).expect("an endpoint");
    assert_eq!(endpoint.url().as_str(), "http://10.0.0.7:11434/v1/chat/completions");
    assert_eq!((&*endpoint.name, &*endpoint.model), ("local", "qwen"));
    assert_eq!(endpoint.options.answer_tokens, Some(9_000));
    assert!(endpoint.options.returns_reasoning);
    let models = Models::parsed(config).expect("a configuration");
    let other = models.endpoint(Some("local"), Some("llama"), |_| None).expect("an endpoint");
    assert_eq!(&*other.model, "llama");
}

#[test]
fn a_key_goes_in_the_clear_only_where_the_operator_says_so() {
    let table = |url: &str, more: &str| {
        format!(
            "[model.m]\nprovider = \"openai\"\nmodel = \"x\"\nbase_url = \"{url}\"\n\
             key_env = \"K\"\n{more}"
        )
    };
    let variables = [("K", KEY)];
    check_refused(&table("http://10.0.0.7:1", ""), None, &variables, "in the clear");
    check_refused(&table("http://localhost.example", ""), None, &variables, "in the clear");
    for (url, more) in [
        ("http://10.0.0.7:1", "plain_http = true"),
        ("http://127.0.0.1:1", ""),
        ("http://localhost:1", ""),
        ("http://[::1]:1", ""),
        ("https://x.example", ""),
    ] {
        asked(&table(url, more), None, &variables).expect(url);
    }
    let secret = format!("https://ann:{KEY}@x.example");
    check_refused(&table(&secret, ""), None, &variables, "is no http or https address");
    check_refused(&table("ftp://x.example", ""), None, &variables, "is no http or https address");
    check_refused(&table("x", ""), None, &variables, "is no http or https address");
}

#[test]
fn a_mistake_in_the_table_is_named() {
    let base = "[model.m]\nprovider = \"openai\"\nmodel = \"x\"\n";
    for (more, said) in [
        ("key = \"abc\"", "unknown field `key`"),
        ("key_env = \"A\"\nkey_file = \"/b\"", "one of them is enough"),
        ("answer_tokens = 10\nthinking_tokens = 10", "fewer than answer_tokens"),
        ("answer_tokens = -1", "line 4"),
    ] {
        check_refused(&format!("{base}{more}"), None, &[], said);
    }
    check_refused("[model.m]\nprovider = \"bard\"", None, &[], "unknown variant `bard`");
    check_refused("[model.m]\nmodel = \"x\"", None, &[], "missing field `provider`");
    check_refused(&format!("{base}key_env = \"K\""), None, &[("K", "a b")], "is no key");
    check_refused(&format!("{base}key_env = \"K\""), None, &[("K", " ")], "K holds no key");
}

#[test]
fn a_key_file_is_ours_and_nobody_elses_to_read() {
    let home = Home::new().expect("a home");
    let path = home.path().join("key");
    let mode = |mode: u32| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
    };
    let refused = |said: &str| {
        let error = Key::read(&path).expect_err(said).to_string();
        assert!(error.contains(said) && !error.contains(KEY), "{error}");
    };
    refused("cannot read the key");
    fs::write(&path, format!("{KEY}\n")).expect("a file");
    for open in [0o644, 0o640, 0o604, 0o660] {
        mode(open);
        refused("chmod 600");
    }
    mode(0o600);
    let key = Key::read(&path).expect("a key");
    assert_eq!(format!("{key:?}"), "Key(…)");
    mode(0o400);
    assert_eq!(Key::read(&path).expect("a key"), key);
    for odd in ["", "\n", "two words", "two\nlines", "ü", &"x".repeat(9_000)] {
        mode(0o600);
        fs::write(&path, odd).expect("a file");
        refused("is no key");
    }
    fs::remove_file(&path).expect("it was there");
    fs::create_dir(&path).expect("a folder");
    mode(0o700);
    refused("cannot read the key");
    let foreign = if rustix::process::geteuid().is_root() {
        let path = home.path().join("foreign");
        fs::write(&path, KEY).expect("a file");
        std::os::unix::fs::chown(&path, Some(1), None).expect("another owner");
        path
    } else {
        "/etc/passwd".into()
    };
    let refused = Key::read(&foreign);
    assert!(matches!(refused, Err(EndpointError::KeyForeign { .. })), "{refused:?}");
}

#[test]
fn no_output_shows_a_key() {
    let endpoint = endpoint(Provider::Anthropic, "https://x.example");
    let shown = format!("{endpoint:?} {endpoint:#?} {}", endpoint.url());
    assert!(!shown.contains(KEY) && shown.contains("Key(…)"), "{shown}");
}
