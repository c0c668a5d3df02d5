//! One connection to the model: read a request, choose the answer, deliver it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::conversation::Conversation;
use crate::gate::Gate;
use crate::http::{self, HttpRequest, LAST_CHUNK, Unreadable};
use crate::reply::Reply;
use crate::request_log::{Answer, Delivery, RequestLog};
use crate::script::{Choice, Script};
use crate::watched::Watched;
use crate::websocket;
use crate::wire::{Draft, StreamEvent, Wire};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Stage {
    script: Mutex<Script>,
    pub(crate) log: Watched<RequestLog>,
}

/// An answer that has been chosen and logged.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) number: usize,
    pub(crate) reply: Reply,
}

impl Stage {
    pub(crate) fn new(script: Script) -> Self {
        Self { script: Mutex::new(script), log: Watched::default() }
    }

    pub(crate) fn append(&self, later: Script) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).append(later);
    }

    /// Chooses the answer and logs the request; `None` when the log is full.
    pub(crate) fn choose(
        &self,
        http: &HttpRequest,
        body: Value,
        conversation: Conversation,
    ) -> Option<Chosen> {
        self.log.change(|log| {
            if !log.has_room(http.body.len()) {
                log.turn_away();
                return None;
            }
            let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
            let choice = script.take(&conversation, &body);
            let (answer, reply) = match choice {
                Choice::Scripted(reply) => (Answer::Scripted(log.next_scripted()), reply),
                Choice::Aside(reply) => (Answer::Aside, reply),
                Choice::Otherwise(reply) => (Answer::Otherwise, reply),
                Choice::Refused(why) => (Answer::Refused, Reply::fails(400).with_message(why)),
            };
            let number = log.add(http, Arc::new(body), Some(conversation), answer)?;
            Some(Chosen { number, reply })
        })
    }

    /// Logs a request that no script answers.
    pub(crate) fn note(&self, http: &HttpRequest, body: Value, answer: Answer) -> Option<usize> {
        self.log.change(|log| log.add(http, Arc::new(body), None, answer))
    }

    pub(crate) fn delivered(&self, number: usize, delivery: Delivery) {
        self.log.change(|log| log.delivered(number, delivery));
    }
}

pub(crate) async fn serve(mut stream: TcpStream, stage: Arc<Stage>) {
    // Without it each small event would wait for the acknowledgement of the last.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut buffer = Vec::new();
    loop {
        match http::read_request(&mut stream, &mut buffer).await {
            Ok(Some(request)) if request.wants_websocket() => {
                websocket::serve(stream, buffer, request, stage).await;
                return;
            }
            Ok(Some(request)) => {
                if answer(&mut stream, &request, &stage).await != Delivery::Sent {
                    return;
                }
            }
            Ok(None) | Err(Unreadable::Gone) => return,
            Err(Unreadable::Bad(status, why)) => {
                let refusal = http::response(status, &[], &json!({"error": why}));
                // Closing says the same to a peer that does not take the answer.
                let _ = stream.write_all(&refusal).await;
                return;
            }
        }
    }
}

async fn answer(stream: &mut TcpStream, http: &HttpRequest, stage: &Stage) -> Delivery {
    if http.method == "CONNECT" || http.target.starts_with("http://") {
        let refusal = http::response(403, &[], &json!({"error": "loopback only"}));
        return answer_plainly(stream, http, stage, Answer::Outbound, &refusal).await;
    }
    if http.header("content-encoding").is_some_and(|encoding| encoding != "identity") {
        let refusal = http::response(415, &[], &json!({"error": "send the body as it is"}));
        return answer_plainly(stream, http, stage, Answer::NotFound, &refusal).await;
    }
    let path = http.path();
    if let Some(wire) = wire_of(&http.method, path) {
        return answer_as_model(stream, http, stage, wire).await;
    }
    let tokens = (http.body.len() / 4).max(1);
    let (answer, status, body) = if path.ends_with("/count_tokens") {
        (Answer::Service, 200, json!({"input_tokens": tokens}))
    } else if path.ends_with(":countTokens") {
        (Answer::Service, 200, json!({"totalTokens": tokens}))
    } else {
        (
            Answer::NotFound,
            404,
            json!({"error": {"message": "not found", "type": "not_found_error"}}),
        )
    };
    answer_plainly(stream, http, stage, answer, &http::response(status, &[], &body)).await
}

fn wire_of(method: &str, path: &str) -> Option<Wire> {
    let is_gemini = path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent");
    match method {
        "POST" if path.ends_with("/v1/messages") => Some(Wire::AnthropicMessages),
        "POST" if path.ends_with("/responses") => Some(Wire::OpenAiResponses),
        "POST" if path.ends_with("/chat/completions") => Some(Wire::OpenAiChat),
        "POST" if is_gemini => Some(Wire::Gemini),
        _ => None,
    }
}

async fn answer_plainly(
    stream: &mut TcpStream,
    http: &HttpRequest,
    stage: &Stage,
    answer: Answer,
    response: &[u8],
) -> Delivery {
    let number = stage.note(http, http.json(), answer);
    let delivery = written(stream, response).await;
    if let Some(number) = number {
        stage.delivered(number, delivery);
    }
    delivery
}

async fn answer_as_model(
    stream: &mut TcpStream,
    http: &HttpRequest,
    stage: &Stage,
    wire: Wire,
) -> Delivery {
    let body = http.json();
    let conversation = wire.read(http.path(), &body);
    let (model, streams) = (conversation.model.clone(), conversation.streams);
    let Some(Chosen { number, reply }) = stage.choose(http, body, conversation) else {
        let full = wire.refuse(503, "the testbed has had too many requests");
        return written(stream, &http::response(503, &[], &full)).await;
    };
    let draft = Draft { number, model: &model, reply: &reply };
    let delivery = deliver(stream, wire, streams, draft).await;
    stage.delivered(number, delivery);
    delivery
}

async fn deliver(stream: &mut TcpStream, wire: Wire, streams: bool, draft: Draft<'_>) -> Delivery {
    let reply = draft.reply;
    if let Some(gate) = &reply.pace.before_start
        && held(stream, gate).await == Delivery::ClientGone
    {
        return Delivery::ClientGone;
    }
    let mut headers = vec![("request-id", format!("req_{:04}", draft.number))];
    if let Some(failure) = &reply.failure {
        if let Some(seconds) = failure.retry_after_s {
            headers.push(("retry-after", seconds.to_string()));
        }
        headers.extend(failure.headers.iter().cloned());
        let body = wire.refuse(failure.status, &failure.message);
        return written(stream, &http::response(failure.status, &headers, &body)).await;
    }
    if !streams {
        return written(stream, &http::response(200, &headers, &wire.whole(draft))).await;
    }
    deliver_stream(stream, &http::stream_head(&headers), &wire.stream(draft), reply).await
}

async fn deliver_stream(
    stream: &mut TcpStream,
    head: &[u8],
    events: &[StreamEvent],
    reply: &Reply,
) -> Delivery {
    let mut out = head.to_vec();
    for (index, event) in events.iter().enumerate() {
        if reply.cut_after.is_some_and(|limit| index >= limit) {
            // What was promised up to here is sent; then the connection closes unfinished.
            let _ = written(stream, &out).await;
            return Delivery::Cut;
        }
        if let Some(gate) = &reply.pace.before_end
            && index + 1 == events.len()
        {
            if written(stream, &out).await == Delivery::ClientGone {
                return Delivery::ClientGone;
            }
            out.clear();
            if held(stream, gate).await == Delivery::ClientGone {
                return Delivery::ClientGone;
            }
        }
        if let Some((before, gate)) = &reply.pace.before_event
            && *before == index
        {
            if written(stream, &out).await == Delivery::ClientGone
                || held(stream, gate).await == Delivery::ClientGone
            {
                return Delivery::ClientGone;
            }
            out.clear();
        }
        let sent = server_sent(event);
        if reply.cut_within == Some(index) {
            // The middle may be within a character; bytes have none.
            let half = &sent.as_bytes()[..sent.len() / 2];
            out.extend(format!("{:x}\r\n", half.len()).into_bytes());
            out.extend(half);
            out.extend(b"\r\n");
            let _ = written(stream, &out).await;
            return Delivery::Cut;
        }
        if reply.garbled_at == Some(index) {
            out.extend(http::chunk("data: {\"type\": \"content_block_\u{fffd}\n\n"));
        }
        out.extend(http::chunk(&sent));
        if written(stream, &out).await == Delivery::ClientGone {
            return Delivery::ClientGone;
        }
        out.clear();
        if paused(stream, reply.pace.between_events).await == Delivery::ClientGone {
            return Delivery::ClientGone;
        }
    }
    written(stream, LAST_CHUNK).await
}

fn server_sent(event: &StreamEvent) -> String {
    match event.name {
        Some(name) => format!("event: {name}\ndata: {}\n\n", event.data),
        None => format!("data: {}\n\n", event.data),
    }
}

async fn written(stream: &mut TcpStream, bytes: &[u8]) -> Delivery {
    match stream.write_all(bytes).await {
        Ok(()) => Delivery::Sent,
        Err(_) => Delivery::ClientGone,
    }
}

async fn held(stream: &TcpStream, gate: &Gate) -> Delivery {
    tokio::select! {
        () = gate.opened() => Delivery::UnderWay,
        () = closed(stream) => Delivery::ClientGone,
    }
}

async fn paused(stream: &TcpStream, pause: Duration) -> Delivery {
    if pause.is_zero() {
        return Delivery::UnderWay;
    }
    tokio::select! {
        () = tokio::time::sleep(pause) => Delivery::UnderWay,
        () = closed(stream) => Delivery::ClientGone,
    }
}

/// Ends when the peer has closed. One that sends more instead is alive: then it never ends.
async fn closed(stream: &TcpStream) {
    match stream.peek(&mut [0]).await {
        Ok(0) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}
