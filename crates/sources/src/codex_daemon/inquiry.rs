//! What to ask the daemon, one question at a time: who it is, which threads it has loaded, and
//! what each of them is.
//!
//! Pure. A thread that speaks without having been introduced is asked about too: one that was
//! loaded again, or a subagent's. Every question only reads.

use std::collections::{BTreeSet, VecDeque};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::live::Trouble;

/// Threads of the daemon that are remembered. It unloads those that nobody looks at after half
/// an hour.
const DAEMON_THREADS_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub struct Inquiry {
    last_id: u64,
    asked: Option<Question>,
    to_read: VecDeque<String>,
    /// Threads that were described, or will be.
    known: BTreeSet<String>,
    loaded: BTreeSet<String>,
    /// Those of them that are known to be somebody's.
    sessions: BTreeSet<String>,
    /// Threads that the client uses for itself, as to make up a title.
    asides: BTreeSet<String>,
    /// The last message was the answer to a question.
    was_answer: bool,
    /// The daemon has told all it has loaded.
    is_listed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Initialize,
    Loaded,
    Read,
}

/// The fields we use.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    id: Option<Value>,
    method: Option<String>,
    params: Option<Params>,
    result: Option<Outcome>,
    error: Option<Refusal>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Params {
    thread_id: Option<String>,
    thread: Option<Thread>,
    status: Option<Status>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Thread {
    id: Option<String>,
    ephemeral: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    r#type: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Outcome {
    data: Option<Vec<Value>>,
    next_cursor: Option<String>,
    thread: Option<Thread>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Refusal {
    message: Option<String>,
}

impl Inquiry {
    /// The first message.
    pub fn begin(&mut self) -> Vec<String> {
        let version = env!("CARGO_PKG_VERSION");
        let info = json!({ "name": "quarterdeck", "title": "Quarterdeck", "version": version });
        vec![self.ask(Question::Initialize, "initialize", &json!({ "clientInfo": info }))]
    }

    /// What to send after this message. What is not understood changes nothing.
    pub fn handle(&mut self, payload: &[u8]) -> Result<Vec<String>, Trouble> {
        self.was_answer = false;
        let Ok(told) = serde_json::from_slice::<Told>(payload) else { return Ok(Vec::new()) };
        match &told.method {
            Some(method) => self.hear(method, told.params.unwrap_or_default()),
            None => {
                let awaited = told.id == Some(Value::from(self.last_id));
                if let Some(question) = self.asked.take_if(|_| awaited) {
                    self.was_answer = true;
                    return self.answered(question, told);
                }
            }
        }
        Ok(self.next())
    }

    pub fn is_waiting(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether the last message was the answer to our question: then it tells how things stood
    /// at some time since we asked.
    pub fn was_answer(&self) -> bool {
        self.was_answer
    }

    /// All that was there before us has been described.
    pub fn is_settled(&self) -> bool {
        self.is_listed && self.asked.is_none() && self.to_read.is_empty()
    }

    /// The threads that were heard of and are loaded.
    pub fn loaded(&self) -> &BTreeSet<String> {
        &self.loaded
    }

    /// The threads that are loaded, once that is known.
    pub fn listed(&self) -> Option<&BTreeSet<String>> {
        self.is_listed.then_some(&self.loaded)
    }

    /// The loaded threads that are known to be somebody's, and not the client's own.
    pub fn sessions(&self) -> &BTreeSet<String> {
        &self.sessions
    }

    fn answered(&mut self, question: Question, told: Told) -> Result<Vec<String>, Trouble> {
        let refusal = told.error.map(|error| error.message.unwrap_or_default());
        match (question, refusal) {
            (Question::Initialize | Question::Loaded, Some(why)) => {
                return Err(Trouble::Refused { why });
            }
            (Question::Initialize, None) => {
                let initialized = json!({ "method": "initialized" }).to_string();
                return Ok(vec![initialized, self.ask_loaded(None)]);
            }
            (Question::Loaded, None) => {
                let listing = told.result.unwrap_or_default();
                for id in listing.data.iter().flatten().filter_map(Value::as_str) {
                    self.is_loaded(id);
                    self.wonder(id);
                }
                match listing.next_cursor {
                    Some(cursor) if self.loaded.len() < DAEMON_THREADS_MAX => {
                        return Ok(vec![self.ask_loaded(Some(&cursor))]);
                    }
                    Some(_) | None => self.is_listed = true,
                }
            }
            // A thread that is gone again is no trouble.
            (Question::Read, _) => {
                if let Some(thread) = told.result.and_then(|result| result.thread) {
                    self.introduced(thread);
                }
            }
        }
        Ok(self.next())
    }

    fn hear(&mut self, method: &str, params: Params) {
        if let Some(thread) = params.thread {
            return self.introduced(thread);
        }
        let Some(id) = params.thread_id else { return };
        let unloaded =
            params.status.and_then(|status| status.r#type).as_deref() == Some("notLoaded");
        if unloaded || method == "thread/closed" {
            self.loaded.remove(&id);
            self.sessions.remove(&id);
            self.known.remove(&id);
            self.asides.remove(&id);
        } else if method == "thread/status/changed" {
            self.is_loaded(&id);
            self.wonder(&id);
        }
    }

    fn introduced(&mut self, thread: Thread) {
        let Some(id) = thread.id else { return };
        self.meet(&id);
        if thread.ephemeral == Some(true) {
            self.loaded.remove(&id);
            if self.asides.len() >= DAEMON_THREADS_MAX {
                self.asides.pop_first();
            }
            self.asides.insert(id);
        } else {
            self.is_loaded(&id);
            if self.sessions.len() >= DAEMON_THREADS_MAX {
                self.sessions.pop_first();
            }
            self.sessions.insert(id);
        }
    }

    fn is_loaded(&mut self, id: &str) {
        if self.asides.contains(id) {
            return;
        }
        if self.loaded.len() >= DAEMON_THREADS_MAX && !self.loaded.contains(id) {
            // Ids grow with time.
            self.loaded.pop_first();
        }
        self.loaded.insert(id.to_owned());
    }

    /// True if it was not known.
    fn meet(&mut self, id: &str) -> bool {
        if self.known.len() >= DAEMON_THREADS_MAX && !self.known.contains(id) {
            self.known.pop_first();
        }
        self.known.insert(id.to_owned())
    }

    fn wonder(&mut self, id: &str) {
        if self.to_read.len() < DAEMON_THREADS_MAX && self.meet(id) {
            self.to_read.push_back(id.to_owned());
        }
    }

    fn next(&mut self) -> Vec<String> {
        if self.asked.is_some() || !self.is_listed {
            return Vec::new();
        }
        let thread = self.to_read.pop_front();
        let read = thread.map(|thread| {
            let params = json!({ "threadId": thread, "includeTurns": false });
            self.ask(Question::Read, "thread/read", &params)
        });
        read.into_iter().collect()
    }

    fn ask_loaded(&mut self, cursor: Option<&str>) -> String {
        let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        self.ask(Question::Loaded, "thread/loaded/list", &params)
    }

    fn ask(&mut self, question: Question, method: &str, params: &Value) -> String {
        self.last_id += 1;
        self.asked = Some(question);
        json!({ "id": self.last_id, "method": method, "params": params }).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The methods, and the threads they name, that are sent after each message.
    fn sent(inquiry: &mut Inquiry, message: Value) -> Vec<String> {
        let messages = inquiry.handle(message.to_string().as_bytes()).expect("no trouble");
        let brief = |text: &String| {
            let value: Value = serde_json::from_str(text).unwrap();
            let about = value["params"]["threadId"].as_str().or(value["params"]["cursor"].as_str());
            let method = value["method"].as_str().unwrap();
            about.map_or(method.to_owned(), |about| format!("{method} {about}"))
        };
        messages.iter().map(brief).collect()
    }

    fn begun() -> Inquiry {
        let mut inquiry = Inquiry::default();
        assert_eq!(inquiry.begin().len(), 1);
        let first = sent(&mut inquiry, json!({ "id": 1, "result": { "userAgent": "codex" } }));
        assert_eq!(first, ["initialized", "thread/loaded/list"]);
        inquiry
    }

    fn status(thread: &str, kind: &str) -> Value {
        let params = json!({ "threadId": thread, "status": { "type": kind } });
        json!({ "method": "thread/status/changed", "params": params })
    }

    #[test]
    fn all_that_is_loaded_is_read_page_by_page_and_one_by_one() {
        let mut inquiry = begun();
        let page = json!({ "id": 2, "result": { "data": ["a", "b"], "nextCursor": "p2" } });
        assert_eq!(sent(&mut inquiry, page), ["thread/loaded/list p2"]);
        assert_eq!(inquiry.listed(), None);
        let page = json!({ "id": 3, "result": { "data": ["c"], "nextCursor": null } });
        assert_eq!(sent(&mut inquiry, page), ["thread/read a"]);
        assert_eq!(inquiry.listed().unwrap().len(), 3);
        assert_eq!(sent(&mut inquiry, json!({ "id": 4, "result": {} })), ["thread/read b"]);
        let gone = json!({ "id": 5, "error": { "code": -1, "message": "no such thread" } });
        assert_eq!(sent(&mut inquiry, gone), ["thread/read c"]);
        assert!(!inquiry.is_settled());
        assert_eq!(sent(&mut inquiry, json!({ "id": 6, "result": {} })), [""; 0]);
        assert!(inquiry.is_settled());
    }

    #[test]
    fn a_thread_that_nobody_introduced_is_asked_about_once() {
        let mut inquiry = begun();
        sent(&mut inquiry, json!({ "id": 2, "result": { "data": [] } }));
        assert_eq!(sent(&mut inquiry, status("x", "active")), ["thread/read x"]);
        assert_eq!(sent(&mut inquiry, status("x", "idle")), [""; 0]);
        let started = json!({ "method": "thread/started", "params": { "thread": { "id": "y" } } });
        assert_eq!(sent(&mut inquiry, started), [""; 0]);
        assert_eq!(sent(&mut inquiry, status("y", "active")), [""; 0]);
        assert_eq!(sent(&mut inquiry, json!({ "id": 3, "result": {} })), [""; 0]);
        assert_eq!(sent(&mut inquiry, status("x", "notLoaded")), [""; 0]);
        assert_eq!(inquiry.listed().unwrap().iter().collect::<Vec<_>>(), ["y"]);
        assert_eq!(sent(&mut inquiry, status("x", "idle")), ["thread/read x"]);
    }

    #[test]
    fn a_thread_that_the_client_uses_for_itself_is_nobodys_session() {
        let mut inquiry = begun();
        let page = json!({ "id": 2, "result": { "data": ["a", "t"] } });
        assert_eq!(sent(&mut inquiry, page), ["thread/read a"]);
        assert!(inquiry.was_answer());
        let read = |id: u8, thread: &str, ephemeral: bool| json!({ "id": id, "result": { "thread": { "id": thread, "ephemeral": ephemeral } } });
        assert_eq!(sent(&mut inquiry, read(3, "a", false)), ["thread/read t"]);
        sent(&mut inquiry, read(4, "t", true));
        sent(&mut inquiry, status("t", "idle"));
        assert!(!inquiry.was_answer());
        let thread = json!({ "id": "u", "ephemeral": true });
        sent(&mut inquiry, json!({ "method": "thread/started", "params": { "thread": thread } }));
        assert_eq!(inquiry.listed().unwrap().iter().collect::<Vec<_>>(), ["a"]);
        sent(&mut inquiry, status("b", "active"));
        assert_eq!(inquiry.sessions().iter().collect::<Vec<_>>(), ["a"], "b may be anything yet");
    }

    #[test]
    fn no_request_is_ever_answered() {
        let mut inquiry = begun();
        sent(&mut inquiry, json!({ "id": 2, "result": { "data": [] } }));
        for id in [json!(0), json!(2), json!("2"), Value::Null] {
            let params = json!({ "threadId": "x", "turnId": "u", "itemId": "c" });
            let method = "item/commandExecution/requestApproval";
            let asked = json!({ "id": id, "method": method, "params": params });
            assert_eq!(sent(&mut inquiry, asked), [""; 0]);
        }
    }

    #[test]
    fn a_refused_greeting_is_trouble_and_garbage_is_not() {
        let mut inquiry = Inquiry::default();
        inquiry.begin();
        for garbage in [&b"\xff"[..], b"", b"[]", b"{\"id\":7,\"result\":{}}", b"{\"id\":\"1\"}"] {
            assert_eq!(inquiry.handle(garbage), Ok(Vec::new()));
            assert!(inquiry.is_waiting());
        }
        let refused = br#"{"id":1,"error":{"code":-32600,"message":"too old"}}"#;
        assert_eq!(inquiry.handle(refused), Err(Trouble::Refused { why: "too old".to_owned() }));
    }

    #[test]
    fn only_so_many_threads_are_remembered() {
        let mut inquiry = begun();
        sent(&mut inquiry, json!({ "id": 2, "result": { "data": [] } }));
        for number in 0..3 * DAEMON_THREADS_MAX {
            sent(&mut inquiry, status(&format!("{number:06}"), "active"));
        }
        assert_eq!(inquiry.listed().unwrap().len(), DAEMON_THREADS_MAX);
        assert_eq!(inquiry.known.len(), DAEMON_THREADS_MAX);
        assert_eq!(inquiry.to_read.len(), DAEMON_THREADS_MAX);
    }
}
