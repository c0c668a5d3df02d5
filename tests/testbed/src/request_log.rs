//! Every request the model received, in order, and what became of it.

use std::sync::Arc;

use serde_json::Value;

use crate::conversation::Conversation;
use crate::http::HttpRequest;
use crate::limits::{REQUEST_BYTES_MAX, REQUESTS_MAX, SEEN_BYTES_MAX};

#[derive(Debug, Clone)]
pub struct Request {
    /// From 0, in the order of arrival.
    pub number: usize,
    pub method: String,
    /// Without its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The JSON; over a WebSocket, with the input of the responses it continues.
    pub body: Arc<Value>,
    /// `None` for what no model answers.
    pub conversation: Option<Conversation>,
    pub answer: Answer,
    pub delivery: Delivery,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The script's answer with this number, from 0.
    Scripted(usize),
    /// A title or the like, beside the conversation.
    Aside,
    /// The script had ended.
    Otherwise,
    /// Refused in strict mode.
    Refused,
    /// Counted tokens, a warm-up: answered without the script.
    Service,
    /// A path that no model has.
    NotFound,
    /// An attempt to reach another host. It was refused; the path is the host.
    Outbound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    UnderWay,
    Sent,
    /// Cut by the script.
    Cut,
    /// The client closed first.
    ClientGone,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The script answered it: it is no title or the like.
    pub fn is_scripted(&self) -> bool {
        matches!(self.answer, Answer::Scripted(_))
    }

    /// What is new in it contains `text`, from the user or a tool.
    pub fn brings(&self, text: &str) -> bool {
        self.conversation.as_ref().is_some_and(|conversation| {
            conversation.user_news().chain(conversation.tool_news()).any(|new| new.contains(text))
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    requests: Vec<Arc<Request>>,
    bytes: usize,
    scripted: usize,
    turned_away: usize,
}

impl RequestLog {
    /// The number the next answer of the script has.
    pub(crate) fn next_scripted(&mut self) -> usize {
        self.scripted += 1;
        self.scripted - 1
    }

    /// Keeps the request and says its number; `None` when the log is full.
    pub(crate) fn add(
        &mut self,
        http: &HttpRequest,
        body: Arc<Value>,
        conversation: Option<Conversation>,
        answer: Answer,
    ) -> Option<usize> {
        if !self.has_room(http.body.len()) {
            self.turn_away();
            return None;
        }
        self.bytes += http.body.len();
        let number = self.requests.len();
        self.requests.push(Arc::new(Request {
            number,
            method: http.method.clone(),
            path: http.path().to_owned(),
            headers: http.headers.clone(),
            body,
            conversation,
            answer,
            delivery: Delivery::UnderWay,
        }));
        Some(number)
    }

    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.requests.len() < REQUESTS_MAX && self.bytes + bytes <= REQUEST_BYTES_MAX
    }

    pub(crate) fn turn_away(&mut self) {
        self.turned_away += 1;
    }

    pub(crate) fn delivered(&mut self, number: usize, delivery: Delivery) {
        if let Some(request) = self.requests.get_mut(number) {
            Arc::make_mut(request).delivery = delivery;
        }
    }

    pub(crate) fn requests(&self) -> &[Arc<Request>] {
        &self.requests
    }

    /// One line a request, the last ones, for a failed test.
    pub(crate) fn summary(&self) -> String {
        let line = |request: &Arc<Request>| {
            let news: Vec<&str> = request
                .conversation
                .as_ref()
                .map_or_else(Vec::new, |told| told.user_news().chain(told.tool_news()).collect());
            let news: String = news.join(" | ").chars().take(160).collect();
            format!(
                "{:>3} {} {} {:?} {:?} {news:?}",
                request.number, request.method, request.path, request.answer, request.delivery
            )
        };
        let mut lines =
            vec![format!("{} requests, {} turned away", self.requests.len(), self.turned_away)];
        let mut length = 0;
        for request in self.requests.iter().rev() {
            let line = line(request);
            length += line.len();
            if length > SEEN_BYTES_MAX {
                break;
            }
            lines.insert(1, line);
        }
        lines.join("\n")
    }
}
