//! What is open on a server now, asked for after each connect: requests, who works, and what
//! those sessions are.
//!
//! A server answers for one directory at a time, and begins to serve a directory that it is asked
//! about. So only those are asked about in which it has worked since it was started, and their
//! answers are told as one: a handler takes a list for all that the server has.

use std::collections::{BTreeMap, BTreeSet};

use qd_harness::Direction;
use qd_session::moment::Timestamp;
use serde_json::{Map, Value, json};

use super::address::Address;
use super::http::get;
use super::spelled;
use crate::live::{Outlet, SourceNews, Trouble};
use crate::opencode_servers::SERVER_DIRECTORIES_MAX;

/// Sessions whose description is asked for after a connect: those that work or wait.
const SERVER_SESSIONS_MAX: usize = 128;

/// How deep a session's parents are asked for.
const SERVER_PARENTS_MAX: usize = 8;

/// A request and its response, as they are told.
struct Exchange {
    asked_at: Timestamp,
    path: String,
    answered_at: Timestamp,
    body: Value,
}

/// How a server stands.
pub struct Snapshot {
    /// All of it as one batch: a response does not say to what.
    pub news: Vec<SourceNews>,
    /// Sessions that work or wait there.
    pub busy: BTreeSet<String>,
    /// Sessions that were changed since it was started, here or by another server of this home.
    pub listed: BTreeSet<String>,
}

pub async fn snapshot(
    address: &Address,
    outlet: &Outlet,
    since: Timestamp,
    heard: &BTreeSet<String>,
) -> Result<Snapshot, Trouble> {
    let asking = Asking { address, now: outlet.now };
    let (directories, listed) = asking.directories(since, heard).await?;
    let mut lists = Vec::new();
    for path in ["/permission", "/question", "/session/status"] {
        lists.extend(asking.merged(path, &directories).await?);
    }
    let busy = named(&lists);
    let mut exchanges = asking.sessions(&busy).await?;
    exchanges.extend(lists);
    let tell = |exchange: Exchange| {
        let request = json!({ "method": "GET", "path": exchange.path, "body": null });
        let response = json!({ "status": 200, "body": exchange.body });
        let told = |direction, at, value: &Value| {
            outlet.message(direction, at, value.to_string().into_bytes())
        };
        [
            told(Direction::ToAgent, exchange.asked_at, &request),
            told(Direction::FromAgent, exchange.answered_at, &response),
        ]
    };
    let news = exchanges.into_iter().flat_map(tell).collect();
    Ok(Snapshot { news, busy, listed })
}

struct Asking<'a> {
    address: &'a Address,
    now: fn() -> Timestamp,
}

impl Asking<'_> {
    /// Where it has worked: the sessions it changed, and what was heard before. One place that
    /// stands for where it was started, if it cannot say. And those sessions.
    async fn directories(
        &self,
        since: Timestamp,
        heard: &BTreeSet<String>,
    ) -> Result<(Vec<Option<String>>, BTreeSet<String>), Trouble> {
        let path = format!("/experimental/session?start={}&limit={SERVER_SESSIONS_MAX}", since.0);
        let Some(listed) = self.ask(&path).await? else {
            return Ok((vec![None], BTreeSet::new()));
        };
        let sessions = listed.body.as_array().map(Vec::as_slice).unwrap_or_default();
        let of_session = |session: &Value| session["directory"].as_str().map(str::to_owned);
        let mut directories: Vec<Option<String>> = Vec::new();
        for directory in sessions.iter().filter_map(of_session).chain(heard.iter().cloned()) {
            if directories.len() < SERVER_DIRECTORIES_MAX
                && !directories.iter().flatten().any(|known| *known == directory)
            {
                directories.push(Some(directory));
            }
        }
        let ids = sessions.iter().filter_map(|session| session["id"].as_str().map(str::to_owned));
        Ok((directories, ids.collect()))
    }

    /// The lists of all directories in one; none if a directory would not say.
    async fn merged(
        &self,
        path: &str,
        directories: &[Option<String>],
    ) -> Result<Option<Exchange>, Trouble> {
        let asked_at = (self.now)();
        let mut list = Vec::new();
        let mut map = Map::new();
        for directory in directories {
            let query =
                directory.as_ref().map(|directory| format!("?directory={}", spelled(directory)));
            let query = query.unwrap_or_default();
            match self.ask(&format!("{path}{query}")).await?.map(|answer| answer.body) {
                Some(Value::Array(more)) => list.extend(more),
                Some(Value::Object(more)) => map.extend(more),
                Some(_) | None => return Ok(None),
            }
        }
        let body = match path {
            "/session/status" => Value::Object(map),
            _ => Value::Array(list),
        };
        Ok(Some(Exchange { asked_at, path: path.to_owned(), answered_at: (self.now)(), body }))
    }

    /// What these sessions are, parents before children: a subagent's request is its parent's.
    async fn sessions(&self, named: &BTreeSet<String>) -> Result<Vec<Exchange>, Trouble> {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut exchanges = Vec::new();
        for id in named.iter().take(SERVER_SESSIONS_MAX) {
            let mut line = Vec::new();
            let mut next = Some(id.clone());
            while let Some(id) = next.take().filter(|_| line.len() < SERVER_PARENTS_MAX) {
                if known.contains_key(&id) {
                    break;
                }
                known.insert(id.clone(), line.len());
                let Some(answer) = self.ask(&format!("/session/{}", spelled(&id))).await? else {
                    break;
                };
                next = answer.body["parentID"].as_str().map(str::to_owned);
                line.push(answer);
            }
            exchanges.extend(line.into_iter().rev());
        }
        Ok(exchanges)
    }

    /// `None` if it has no such thing to say.
    async fn ask(&self, path: &str) -> Result<Option<Exchange>, Trouble> {
        let asked_at = (self.now)();
        let (status, body) = get(self.address, path).await?;
        let body = serde_json::from_slice(&body).ok().filter(|_| (200..300).contains(&status));
        let answered_at = (self.now)();
        Ok(body.map(|body| Exchange { asked_at, path: path.to_owned(), answered_at, body }))
    }
}

/// The sessions that the lists speak of.
fn named(lists: &[Exchange]) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for list in lists {
        match &list.body {
            Value::Array(requests) => {
                let owners = requests.iter().filter_map(|request| request["sessionID"].as_str());
                named.extend(owners.map(str::to_owned));
            }
            Value::Object(statuses) => named.extend(statuses.keys().cloned()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    named
}
