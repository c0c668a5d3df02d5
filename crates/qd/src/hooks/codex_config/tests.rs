use super::*;

const FILE: &str = "/home/ann/.codex/hooks.json";

const TEXTS: [&str; 10] = [
    "\u{feff}model = \"m\"\n[otel]\nx = 1\n",
    "",
    "model = \"gpt-5\"",
    "model = \"gpt-5\"\n",
    "# mine\nmodel = \"gpt-5\"   # keep\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n# the end\n",
    "model = \"m\"\r\n\r\n[tui]\r\nx = 1\r\n",
    "[otel]\nenvironment = \"dev\"\n",
    "[otel]",
    "[otel.headers]\na = \"b\"\n\n\n[z]\n",
    "[hooks.state]\n\n[hooks.state.\"/other:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\n",
];

fn removal(places: &[Place]) -> Removal<'_> {
    static FILES: std::sync::LazyLock<Vec<String>> =
        std::sync::LazyLock::new(|| vec![FILE.to_owned()]);
    Removal { files: &FILES, places }
}

fn ours(event: &str, group: usize) -> Place {
    Place { event: event.to_owned(), group, index: 0, is_ours: true, after: None }
}

/// As Codex writes it.
fn trust(text: &str, places: &[(&str, usize)]) -> String {
    let mut out = text.to_owned();
    if !out.is_empty() {
        out.push_str(if out.ends_with('\n') { "\n" } else { "\n\n" });
    }
    if !text.contains("[hooks.state]") {
        out.push_str("[hooks.state]\n");
    }
    for (event, group) in places {
        out.push_str(&format!(
            "\n[hooks.state.\"{FILE}:{}:{group}:0\"]\ntrusted_hash = \"sha256:{event}{group}\"\n",
            snake(event)
        ));
    }
    out
}

#[test]
fn telemetry_goes_in_and_out_without_a_trace() {
    for text in TEXTS {
        for token in [None, Some("abc")] {
            let installed = install(Some(text), token).unwrap().new_text.unwrap();
            assert_eq!(telemetry_found(&installed).unwrap(), TelemetryFound::Ours, "{text}");
            assert!(install(Some(&installed), token).unwrap().changes.is_empty(), "{text}");
            let out = uninstall(&installed, Some(text), removal(&[])).unwrap();
            assert_eq!(out.new_text.as_deref(), Some(text));
        }
    }
    let created = install(None, None).unwrap().new_text.unwrap();
    assert_eq!(uninstall(&created, None, removal(&[])).unwrap().new_text, None);
}

#[test]
fn a_new_token_replaces_the_old_one() {
    let first = install(Some("a = 1\n"), Some("old")).unwrap().new_text.unwrap();
    let second = install(Some(&first), Some("new")).unwrap().new_text.unwrap();
    assert_eq!(second, install(Some("a = 1\n"), Some("new")).unwrap().new_text.unwrap());
}

#[test]
fn somebody_elses_exporter_stays() {
    for text in [
        "[otel]\nexporter = \"none\"\n",
        "[otel]\nexporter = { otlp-http = { endpoint = \"http://x/v1/logs\", protocol = \"json\" } }\n",
    ] {
        assert_eq!(install(Some(text), None).unwrap().new_text.as_deref(), Some(text));
        assert_eq!(uninstall(text, None, removal(&[])).unwrap().new_text.as_deref(), Some(text));
    }
}

#[test]
fn a_form_we_do_not_edit_is_refused() {
    for text in ["otel = {}\n", "otel.environment = \"dev\"\n", "a = \n"] {
        assert!(install(Some(text), None).is_err(), "{text}");
    }
    let refused = install(Some("a = 1\nb = = 2\n"), None).unwrap_err();
    assert_eq!((refused.line, refused.column), (2, 5));
}

#[test]
fn trust_that_codex_wrote_goes_with_the_hooks() {
    let places = [ours("PreToolUse", 0), ours("Stop", 2)];
    for text in TEXTS {
        let trusted = trust(text, &[("PreToolUse", 0), ("Stop", 2)]);
        let files = [FILE.to_owned()];
        assert!(untrusted(&trusted, &files, &places).unwrap().is_empty());
        let plan = uninstall(&trusted, Some(text), removal(&places)).unwrap();
        assert_eq!(plan.new_text.as_deref(), Some(text));
        assert_eq!(plan.changes.len(), 2);
    }
}

#[test]
fn trust_in_another_hook_follows_it_to_its_new_place() {
    let text = "a = 1\n";
    let foreign =
        Place { event: "Stop".to_owned(), group: 1, index: 0, is_ours: false, after: Some((0, 0)) };
    let trusted = trust(text, &[("Stop", 0), ("Stop", 1)]);
    let plan = uninstall(&trusted, Some(text), removal(&[ours("Stop", 0), foreign])).unwrap();
    let expected =
        format!("a = 1\n\n[hooks.state.\"{FILE}:stop:0:0\"]\ntrusted_hash = \"sha256:Stop1\"\n");
    assert_eq!(plan.new_text, Some(expected));
}

#[test]
fn what_was_written_after_us_stays() {
    let trusted = trust("a = 1\n", &[("Stop", 0)]);
    let later = format!("{trusted}\n# mine\n[tui]\nx = 1\n");
    let plan = uninstall(&later, Some("a = 1\n"), removal(&[ours("Stop", 0)])).unwrap();
    assert_eq!(plan.new_text.as_deref(), Some("a = 1\n\n# mine\n[tui]\nx = 1\n"));
}
