//! Codex and its trust, with a stand-in that speaks the few messages of `codex app-server`.

use crate::home::Home;

const HOOKS: &str = ".codex/hooks.json";
const CONFIG: &str = ".codex/config.toml";

/// Lists one hook of ours and one of somebody else, and writes the trust it is told as Codex does.
const CODEX: &str = r#"
config="$CODEX_HOME/config.toml"; file="$CODEX_HOME/hooks.json"; status=untrusted
while read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
  *'"method":"initialized"'*) ;;
  *'"method":"initialize"'*) echo '{"method":"notice","params":{}}'; echo "{\"id\":$id,\"result\":{}}" ;;
  *'"method":"hooks/list"'*)
    hooks=
    for event in stop session_start; do
      hooks="$hooks{\"key\":\"$file:$event:0:0\",\"command\":\"/x/qd-hook send\",\"sourcePath\":\"$file\",\"currentHash\":\"sha256:1\",\"trustStatus\":\"$status\"},"
    done
    echo "{\"id\":$id,\"result\":{\"data\":[{\"hooks\":[$hooks{\"key\":\"$file:stop:1:0\",\"command\":\"mine\",\"sourcePath\":\"$file\",\"currentHash\":\"sha256:2\",\"trustStatus\":\"untrusted\"}]}]}}" ;;
  *'"method":"config/batchWrite"'*)
    case "$line" in *stop:1:0*) exit 9 ;; esac
    status=trusted
    printf '\n[hooks.state]\n' >> "$config"
    for event in session_start session_end user_prompt_submit pre_tool_use permission_request \
      post_tool_use pre_compact post_compact subagent_start subagent_stop stop \
      pre_model_request post_model_request interrupt; do
      printf '\n[hooks.state."%s"]\ntrusted_hash = "sha256:1"\n' "$file:$event:0:0" >> "$config"
    done
    echo "{\"id\":$id,\"result\":{\"status\":\"ok\"}}" ;;
  esac
done"#;

#[test]
fn codex_is_had_to_trust_our_hooks_and_forgets_them_again() {
    let home = Home::new("codex_trust");
    home.program("tools/codex", CODEX);
    home.write(CONFIG, "# mine\r\nmodel = \"m\" # keep\r\n");
    home.write(HOOKS, "{}");
    let before = home.picture();
    let done = home.hooks(&["install", "codex", "--yes", "--json", "--otel"]).expect(0).json();
    assert_eq!(done["harnesses"][0]["trust"], "given");
    let config = home.read(CONFIG);
    assert!(config.contains("[otel]") && config.contains("hooks.json:stop:0:0"), "{config}");
    let status = home.hooks(&["status", "codex", "--json"]).expect(0).json();
    assert_eq!(status["harnesses"][0]["state"], "installed", "{status}");
    let again = home.hooks(&["install", "codex", "--yes", "--json"]).expect(0).json();
    assert_eq!(again["harnesses"][0]["state"], "nothing_to_do");
    home.hooks(&["uninstall", "codex", "--yes"]).expect(0);
    assert_eq!(home.picture(), before);
}

#[test]
fn without_codex_the_operator_is_told_what_to_do() {
    let home = Home::new("codex_absent");
    home.write(HOOKS, "{\"hooks\": {}}\n");
    let before = home.picture();
    let outcome = home.hooks(&["install", "codex", "--yes"]).expect(0);
    assert!(outcome.out.contains("Hooks need review"), "{outcome:?}");
    let status = home.hooks(&["status", "codex", "--json"]).expect(0).json();
    assert_eq!(status["harnesses"][0]["state"], "partly");
    assert_eq!(status["harnesses"][0]["untrusted"].as_array().unwrap().len(), 14);
    home.hooks(&["uninstall", "codex", "--yes"]).expect(0);
    assert_eq!(home.picture(), before);
}

#[test]
fn a_codex_that_fails_is_told_and_the_hooks_stay() {
    let home = Home::new("codex_fails");
    home.program("tools/codex", "exit 1");
    home.write(HOOKS, "{}");
    let outcome = home.hooks(&["install", "codex", "--yes"]).expect(1);
    assert!(outcome.err.contains("could not be had to trust them"), "{outcome:?}");
    assert!(outcome.out.contains("Hooks need review"), "{outcome:?}");
    assert!(home.read(HOOKS).contains("qd-hook"));
}

#[test]
fn a_configuration_that_cannot_be_read_is_left_alone() {
    let home = Home::new("codex_bad_config");
    home.write(HOOKS, "{}");
    home.write(CONFIG, "model = \n");
    let before = home.picture();
    for action in ["install", "uninstall"] {
        let outcome = home.hooks(&[action, "codex", "--yes"]).expect(1);
        assert!(outcome.err.contains("config.toml was left alone"), "{outcome:?}");
    }
    assert_eq!(home.picture(), before);
}
