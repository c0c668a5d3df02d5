//! OpenAI Responses over a WebSocket: each message asks for a response, each event is one
//! message back, and a request may continue an earlier response by its id.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::gate::Gate;
use crate::http::{self, HttpRequest};
use crate::limits::{HTTP_BODY_BYTES_MAX, WEBSOCKET_RESPONSES_MAX};
use crate::reply::{Failure, Reply};
use crate::request_log::{Answer, Delivery};
use crate::serving::{Chosen, Stage};
use crate::wire::{Draft, StreamEvent, Wire, openai_responses};

pub(crate) async fn serve(
    mut stream: TcpStream,
    already_read: Vec<u8>,
    upgrade: HttpRequest,
    stage: Arc<Stage>,
) {
    let key = upgrade.header("sec-websocket-key").unwrap_or_default();
    let accepted = upgrade.path().ends_with("/responses") && !key.is_empty();
    let handshake = if accepted {
        let accept = derive_accept_key(key.as_bytes());
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-accept: {accept}\r\n\r\n"
        )
        .into_bytes()
    } else {
        http::response(404, &[], &json!({"error": {"message": "no WebSocket here"}}))
    };
    if !accepted {
        stage.note(&upgrade, Value::Null, Answer::NotFound);
    }
    if stream.write_all(&handshake).await.is_err() || !accepted {
        return;
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(HTTP_BODY_BYTES_MAX))
        .max_frame_size(Some(HTTP_BODY_BYTES_MAX));
    let socket =
        WebSocketStream::from_partially_read(stream, already_read, Role::Server, Some(config))
            .await;
    Line { socket, upgrade, stage, told: VecDeque::new() }.run().await;
}

/// One open WebSocket, with what was said on it.
struct Line {
    socket: WebSocketStream<TcpStream>,
    upgrade: HttpRequest,
    stage: Arc<Stage>,
    /// Response id, and the whole conversation up to and with it.
    told: VecDeque<(String, Vec<Value>)>,
}

impl Line {
    async fn run(mut self) {
        while let Some(Ok(message)) = self.socket.next().await {
            let Message::Text(text) = message else { continue };
            let request = HttpRequest { body: text.as_bytes().to_vec(), ..self.upgrade.clone() };
            if self.answer(request).await != Delivery::Sent {
                return;
            }
        }
    }

    async fn answer(&mut self, request: HttpRequest) -> Delivery {
        let mut body = request.json();
        if body["type"] != "response.create" {
            self.stage.note(&request, body, Answer::NotFound);
            return Delivery::Sent;
        }
        let mut input = match self.continued(&body) {
            Ok(input) => input,
            Err(why) => {
                self.stage.note(&request, body, Answer::NotFound);
                return self.send(&failure(400, &why, None)).await;
            }
        };
        input.extend(body["input"].as_array().cloned().unwrap_or_default());
        body["input"] = json!(input);
        if body["generate"] == false {
            return self.warm_up(&request, body, input).await;
        }
        let mut conversation = Wire::OpenAiResponses.read(request.path(), &body);
        conversation.streams = true;
        let model = conversation.model.clone();
        let Some(Chosen { number, reply }) = self.stage.choose(&request, body, conversation) else {
            return self.send(&failure(503, "the testbed has had too many requests", None)).await;
        };
        let draft = Draft { number, model: &model, reply: &reply };
        let delivery = self.deliver(draft).await;
        input.extend(openai_responses::items(draft));
        self.remember(number, input);
        self.stage.delivered(number, delivery);
        delivery
    }

    /// The conversation that the request goes on with; empty for a new one.
    fn continued(&self, body: &Value) -> Result<Vec<Value>, String> {
        let Some(id) = body["previous_response_id"].as_str() else { return Ok(Vec::new()) };
        let told = self.told.iter().find(|(known, _)| known == id);
        told.map(|(_, items)| items.clone())
            .ok_or_else(|| format!("Previous response with id '{id}' not found."))
    }

    fn remember(&mut self, number: usize, items: Vec<Value>) {
        if self.told.len() == WEBSOCKET_RESPONSES_MAX {
            self.told.pop_front();
        }
        self.told.push_back((openai_responses::response_id(number), items));
    }

    async fn warm_up(&mut self, request: &HttpRequest, body: Value, input: Vec<Value>) -> Delivery {
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let Some(number) = self.stage.note(request, body, Answer::Service) else {
            return self.send(&failure(503, "the testbed has had too many requests", None)).await;
        };
        let draft = Draft { number, model: &model, reply: &Reply::default() };
        let mut delivery = Delivery::Sent;
        for event in openai_responses::warm_up(draft) {
            if delivery == Delivery::Sent {
                delivery = self.send(&event.data).await;
            }
        }
        self.remember(number, input);
        self.stage.delivered(number, delivery);
        delivery
    }

    async fn deliver(&mut self, draft: Draft<'_>) -> Delivery {
        let reply = draft.reply;
        if let Some(gate) = &reply.pace.before_start
            && self.held(gate).await == Delivery::ClientGone
        {
            return Delivery::ClientGone;
        }
        // A message has no headers, but the one that it spells out.
        if let Some(Failure { status, message, retry_after_s, headers: _ }) = &reply.failure {
            return self.send(&failure(*status, message, *retry_after_s)).await;
        }
        let events = Wire::OpenAiResponses.stream(draft);
        for (index, StreamEvent { data, .. }) in events.iter().enumerate() {
            if reply.cut_after.is_some_and(|limit| index >= limit) {
                return Delivery::Cut;
            }
            if let Some(gate) = &reply.pace.before_end
                && index + 1 == events.len()
                && self.held(gate).await == Delivery::ClientGone
            {
                return Delivery::ClientGone;
            }
            if self.send(data).await == Delivery::ClientGone {
                return Delivery::ClientGone;
            }
            tokio::time::sleep(reply.pace.between_events).await;
        }
        Delivery::Sent
    }

    async fn send(&mut self, data: &str) -> Delivery {
        match self.socket.send(Message::text(data)).await {
            Ok(()) => Delivery::Sent,
            Err(_) => Delivery::ClientGone,
        }
    }

    async fn held(&mut self, gate: &Gate) -> Delivery {
        loop {
            tokio::select! {
                () = gate.opened() => return Delivery::UnderWay,
                message = self.socket.next() => match message {
                    None | Some(Err(_) | Ok(Message::Close(_))) => return Delivery::ClientGone,
                    // Pings are answered by the socket itself.
                    Some(Ok(_)) => {}
                },
            }
        }
    }
}

/// An HTTP error as it is said on a WebSocket.
fn failure(status: u16, message: &str, retry_after_s: Option<u32>) -> String {
    let mut said = Wire::OpenAiResponses.refuse(status, message);
    said["type"] = json!("error");
    said["status"] = json!(status);
    if let Some(seconds) = retry_after_s {
        said["headers"] = json!({"retry-after": seconds.to_string()});
    }
    said.to_string()
}
