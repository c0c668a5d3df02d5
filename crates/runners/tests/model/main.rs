//! Model endpoints, asked over real connections: a scripted provider on loopback answers.

mod answers;
mod endpoints;
mod failures;
mod wild;

use std::time::Duration;

use qd_harness::native::{
    Conversation, Failure, HttpRequest, Options, Piece, Provider, ToolDefinition, request,
};
use qd_runners::model::{CallEnd, Endpoint, Heard, Line, Models, Patience};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A key that has no known shape, so that nothing recognises it by chance.
const KEY: &str = "opensesame.4711";

/// What fits between us and a listener.
const HEARD_MAX: usize = 100;

fn endpoint(provider: Provider, base_url: &str) -> Endpoint {
    let text = format!(
        "[model.here]\nprovider = \"{}\"\nmodel = \"scripted\"\nbase_url = \"{base_url}\"\n\
         key_env = \"HERE_KEY\"\nthinking_tokens = 2000\n",
        provider.name()
    );
    let models = Models::parsed(&text).expect("a configuration");
    let variable = |name: &str| (name == "HERE_KEY").then(|| KEY.to_owned());
    models.endpoint(Some("here"), None, variable).expect("an endpoint")
}

fn line() -> Line {
    Line::new(Patience::default()).expect("a line")
}

/// A line that gives up soon. Whoever waits for that sends nothing at all meanwhile.
fn impatient() -> Line {
    let silence = Duration::from_millis(200);
    Line::new(Patience { silence, ..Patience::default() }).expect("a line")
}

fn asking(endpoint: &Endpoint, conversation: &Conversation) -> HttpRequest {
    let tools = [ToolDefinition {
        name: "Bash".into(),
        description: "runs a command".into(),
        input_schema: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
    }];
    let options = Options { system: Some("Be brief.".into()), ..endpoint.options.clone() };
    request(endpoint.provider, &endpoint.model, conversation, &tools, &options)
}

fn prompt(text: &str) -> Conversation {
    let mut conversation = Conversation::default();
    conversation.ask(&[], Some(text.into()));
    conversation
}

/// Asks, and gives every piece of the answer.
async fn ask(line: &Line, endpoint: &Endpoint, conversation: &Conversation) -> Vec<Piece> {
    let (sender, mut heard) = mpsc::channel(HEARD_MAX);
    let request = asking(endpoint, conversation);
    let cancel = CancellationToken::new();
    let call = async move {
        let end = line.call(endpoint, request, "turn_1".into(), &cancel, &sender).await;
        assert_eq!(end, CallEnd::Told);
    };
    let listening = async {
        let mut pieces = Vec::new();
        while let Some(heard) = heard.recv().await {
            match heard {
                Heard::Piece(piece) => pieces.push(piece),
                Heard::Life => {}
            }
        }
        pieces
    };
    let ((), pieces) = tokio::join!(call, listening);
    let (last, before) = pieces.split_last().expect("a last piece");
    assert!(last.is_last() && !before.iter().any(Piece::is_last), "{pieces:?}");
    pieces
}

async fn failure(line: &Line, endpoint: &Endpoint) -> Failure {
    match ask(line, endpoint, &prompt("go")).await.pop() {
        Some(Piece::Failed(failure)) => {
            let shown = format!("{failure:?} {:?}", failure.trouble());
            assert!(!shown.contains(KEY), "{shown}");
            failure
        }
        other => panic!("{other:?}"),
    }
}
