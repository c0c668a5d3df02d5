//! Tools of MCP servers: a good one, and every bad one.

use std::path::Path;

use qd_runners::mcp::{McpFile, McpServerConfig};
use qd_runners::tools::Toolbox;
use qd_session::machine::ToolOutcome;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::world::{SECRET, World, alive, mark, order, run};

/// A server that does what its tool's name says.
const SERVER: &str = r#"
import json, os, subprocess, sys, time
open('starts', 'a').write('x')
def say(message):
    sys.stdout.write(json.dumps(message) + '\n')
    sys.stdout.flush()
def text(words, **more):
    return {'content': [{'type': 'text', 'text': words}], **more}
def call(name, given):
    if name == 'echo': return text(given.get('words', 'nothing'))
    if name == 'fail': return text('it went wrong', isError=True)
    if name == 'env': return text(' '.join(sorted(os.environ)) + ' '.join(os.environ.values()))
    if name == 'picture': return {'content': [{'type': 'image', 'mimeType': 'image/png', 'data': 'AAAA'}]}
    if name == 'long': return text('a' * 3000000)
    if name == 'die': os._exit(3)
    if name == 'hang':
        subprocess.Popen(['setsid', 'sleep', given['mark']])
        open('hangs', 'w').close()
        time.sleep(600)
    if name == 'babble':
        print('hello there', flush=True)
        time.sleep(600)
    if name == 'endless':
        while True: sys.stdout.write('a' * 65536)
    if name == 'ask':
        say({'jsonrpc': '2.0', 'id': 'mine', 'method': 'sampling/createMessage', 'params': {}})
        say({'jsonrpc': '2.0', 'method': 'notifications/message', 'params': {}})
        reply = json.loads(sys.stdin.readline())
        return text(str(reply['error']['code']))
def tool(name, **more):
    return {'name': name, 'description': 'It does.', 'inputSchema': {'type': 'object'}, **more}
for line in sys.stdin:
    asked = json.loads(line)
    if 'id' not in asked: continue
    method, params = asked['method'], asked.get('params', {})
    if method == 'initialize':
        result = {'protocolVersion': params['protocolVersion'], 'capabilities': {'tools': {}},
                  'serverInfo': {'name': 'test', 'version': '1'}}
    elif method == 'tools/list' and 'cursor' not in params:
        result = {'tools': [tool('echo', annotations={'readOnlyHint': True}), tool('not a name')],
                  'nextCursor': 'more'}
    elif method == 'tools/list':
        result = {'tools': [tool('fail')]}
    elif params.get('name') == 'unknown':
        say({'jsonrpc': '2.0', 'id': asked['id'], 'error': {'code': -32602, 'message': 'no such tool'}})
        continue
    else:
        result = call(params['name'], params['arguments'])
    say({'jsonrpc': '2.0', 'id': asked['id'], 'result': result})
"#;

fn config(command: &[&str]) -> McpServerConfig {
    McpServerConfig {
        name: "test".to_owned(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        env_allow: vec!["WANTED".to_owned()],
        timeout_ms: 120_000,
    }
}

async fn connected(world: &World) -> Toolbox {
    let mut toolbox = world.toolbox();
    let troubles = toolbox.connect(vec![config(&["python3", "server.py"])]).await;
    assert_eq!(troubles, Vec::<String>::new());
    toolbox
}

fn world() -> World {
    World::new().with(&[("server.py", SERVER)])
}

fn ok(output: &str) -> ToolOutcome {
    ToolOutcome::Succeeded { output: output.into(), is_error: false }
}

fn failed(error: &str) -> ToolOutcome {
    ToolOutcome::Failed { error: format!("the MCP server test: {error}").into() }
}

#[tokio::test]
async fn a_servers_tools_are_offered_beside_ours() {
    let world = world();
    let toolbox = connected(&world).await;
    let theirs: Vec<(&str, bool)> = toolbox
        .definitions()
        .iter()
        .filter(|tool| tool.name.starts_with("mcp__"))
        .map(|tool| (tool.name.as_str(), tool.mutating))
        .collect();
    assert_eq!(theirs, [("mcp__test__echo", false), ("mcp__test__fail", true)]);
    assert!(!toolbox.is_mutating(&"mcp__test__echo".into()));
    let outcome = run(&toolbox, "mcp__test__echo", json!({"words": "hello"})).await;
    assert_eq!(outcome, ok("hello"));
    assert_eq!(run(&toolbox, "mcp__test__echo", json!(null)).await, ok("nothing"));
    let outcome = run(&toolbox, "mcp__test__fail", json!({})).await;
    assert_eq!(outcome, ToolOutcome::Succeeded { output: "it went wrong".into(), is_error: true });
    let outcome = run(&toolbox, "mcp__test__unknown", json!({})).await;
    assert_eq!(outcome, ToolOutcome::Succeeded { output: "no such tool".into(), is_error: true });
    let outcome = run(&toolbox, "mcp__test__picture", json!({})).await;
    assert_eq!(outcome, ok("[image/png, 4 bytes of base64]"));
    assert_eq!(run(&toolbox, "mcp__test__ask", json!({})).await, ok("-32601"));
    let ToolOutcome::Succeeded { output, .. } = run(&toolbox, "mcp__test__long", json!({})).await
    else {
        panic!("no result")
    };
    assert!(output.len() < 40 << 10 && output.contains("bytes left out"), "{}", output.len());
    assert_eq!(world.text("starts"), "x", "one server did it all");
}

#[tokio::test]
async fn a_server_gets_the_environment_that_it_may_have() {
    let world = world();
    let toolbox = connected(&world).await;
    let ToolOutcome::Succeeded { output, .. } = run(&toolbox, "mcp__test__env", json!({})).await
    else {
        panic!("no result")
    };
    assert!(output.contains("WANTED") && !output.contains(SECRET), "{output}");
}

#[tokio::test]
async fn a_server_that_breaks_is_started_again() {
    let world = world();
    let toolbox = connected(&world).await;
    for (tool, why) in [
        ("die", "it has ended"),
        ("babble", "it sent what is no message"),
        ("endless", "it sent a line without end"),
    ] {
        let before = world.text("starts").len();
        let outcome = run(&toolbox, &format!("mcp__test__{tool}"), json!({})).await;
        assert_eq!(outcome, failed(why), "{tool}");
        let outcome = run(&toolbox, "mcp__test__echo", json!({"words": "again"})).await;
        assert_eq!(outcome, ok("again"), "{tool}");
        assert_eq!(world.text("starts").len(), before + 1);
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_ended_with_what_it_started() {
    let (world, mark) = (world(), mark());
    let mut toolbox = world.toolbox();
    let slow = McpServerConfig { timeout_ms: 5_000, ..config(&["python3", "server.py"]) };
    assert_eq!(toolbox.connect(vec![slow]).await, Vec::<String>::new());
    let outcome = run(&toolbox, "mcp__test__hang", json!({"mark": mark})).await;
    let output = "the MCP server test: no answer within 5000 ms".into();
    assert_eq!(outcome, ToolOutcome::Succeeded { output, is_error: true });
    assert!(world.path("hangs").exists());
    assert_eq!(alive(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_canceled_call_ends_its_server() {
    let (world, mark) = (world(), mark());
    let toolbox = connected(&world).await;
    let order = order("mcp__test__hang", json!({"mark": mark}));
    let cancel = CancellationToken::new();
    let running = toolbox.run(&order, cancel.clone());
    tokio::pin!(running);
    while !world.path("hangs").exists() {
        let moment = std::time::Duration::from_millis(5);
        assert!(tokio::time::timeout(moment, &mut running).await.is_err());
    }
    cancel.cancel();
    assert_eq!(running.await, ToolOutcome::Failed { error: "canceled".into() });
    assert_eq!(alive(&mark), Vec::<String>::new());
    assert_eq!(run(&toolbox, "mcp__test__echo", json!({"words": "on"})).await, ok("on"));
}

#[tokio::test]
async fn a_server_that_never_works_is_given_up() {
    let world = World::new();
    let mut toolbox = world.toolbox();
    let troubles = toolbox.connect(vec![config(&["sh", "-c", "echo x >> starts"])]).await;
    assert_eq!(troubles, ["the MCP server test: it has ended"]);
    for _ in 0..2 {
        let outcome = run(&toolbox, "mcp__test__echo", json!({})).await;
        assert_eq!(outcome, failed("it has ended"));
    }
    let outcome = run(&toolbox, "mcp__test__echo", json!({})).await;
    assert_eq!(outcome, failed("given up after 3 starts"));
    assert_eq!(world.text("starts"), "x\nx\nx\n");
}

#[test]
fn the_file_is_read_strictly() {
    let read = |text: &str| McpFile::parsed(text, Path::new("mcp.json"));
    let good = r#"{"servers":{"test":{"command":["python3","server.py"],"env_allow":["WANTED"]}}}"#;
    let expected = McpServerConfig { timeout_ms: 300_000, ..config(&["python3", "server.py"]) };
    assert_eq!(read(good), Ok(vec![expected]));
    for (text, place) in [
        ("{", ""),
        ("{}", "servers"),
        (r#"{"servers":{"a b":{"command":["x"]}}}"#, "servers.a b"),
        (r#"{"servers":{"a__b":{"command":["x"]}}}"#, "servers.a__b"),
        (r#"{"servers":{"a":{}}}"#, "servers.a.command"),
        (r#"{"servers":{"a":{"command":[]}}}"#, "servers.a.command"),
        (r#"{"servers":{"a":{"command":["x"],"env":{}}}}"#, "servers.a.env"),
        (r#"{"servers":{"a":{"command":["x"],"timeout_ms":0}}}"#, "servers.a.timeout_ms"),
        (r#"{"mcpServers":{},"servers":{}}"#, "mcpServers"),
    ] {
        assert_eq!(read(text).expect_err(text).place, place, "{text}");
    }
    assert_eq!(McpFile::read(Path::new("/no/such/mcp.json")), Ok(Vec::new()));
}
