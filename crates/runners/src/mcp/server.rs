//! A server of `mcp.json` over the life of a session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rmcp::model::{CallToolResult, ListToolsResult};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Silence};
use super::file::McpServerConfig;
use super::limits::{MCP_PAGES_MAX, MCP_START_WAIT, MCP_STARTS_MAX, MCP_TOOLS_MAX};
use super::rendering::{self, definition};
use crate::environment::of_program;
use crate::tools::ToolDefinition;
use crate::tools::answer::{Answer, Trouble};
use crate::tools::limits::{OUTPUT_HEAD_BYTES_MAX, OUTPUT_TAIL_BYTES_MAX};
use crate::warden::{Captured, Input, Job, Said, Warden};

#[derive(Debug)]
pub(crate) struct McpServer {
    config: McpServerConfig,
    warden: Warden,
    job: Job,
    /// Calls of one server wait for each other.
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    connection: Option<Connection>,
    /// Since the last answer.
    starts: u8,
}

impl McpServer {
    pub fn new(
        config: McpServerConfig,
        warden: Warden,
        workspace: PathBuf,
        ours: &BTreeMap<String, String>,
    ) -> Self {
        let job = Job {
            argv: config.command.clone(),
            folder: workspace,
            environment: of_program(ours, &config.env_allow),
            input: Input::Following,
            said: Said::OutputOnly,
            timeout_ms: None,
            confinement: None,
        };
        Self { config, warden, job, line: Mutex::default() }
    }

    /// Whose tool this is, and what it is called there.
    pub fn tool_of<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix("mcp__")?.strip_prefix(&self.config.name)?.strip_prefix("__")
    }

    /// Its tools; or why there are none.
    pub async fn tools(&self) -> Result<Vec<ToolDefinition>, String> {
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MCP_PAGES_MAX {
            let page = self.page(cursor).await.map_err(|silence| match silence {
                Silence::Refused(why) | Silence::Late(why) | Silence::Broken(why) => why,
            })?;
            let name = &self.config.name;
            tools.extend(page.tools.iter().filter_map(|tool| definition(name, tool)));
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() >= MCP_TOOLS_MAX {
                break;
            }
        }
        tools.truncate(MCP_TOOLS_MAX);
        Ok(tools)
    }

    pub async fn call(&self, tool: &str, arguments: &Value, cancel: &CancellationToken) -> Answer {
        let arguments = match arguments {
            Value::Object(arguments) => arguments.clone(),
            Value::Null => Map::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(Trouble::mistake("the arguments: an object is needed"));
            }
        };
        let answer = tokio::select! {
            answer = self.ask(tool, arguments) => answer,
            () = cancel.cancelled() => {
                self.close().await;
                return Err(Trouble::lost("canceled"));
            }
        };
        match answer {
            Ok(result) => {
                let (text, is_error) = rendering::answer(&result);
                let mut kept = Captured::new(OUTPUT_HEAD_BYTES_MAX, OUTPUT_TAIL_BYTES_MAX);
                kept.take(text.as_bytes());
                if is_error { Err(Trouble::mistake(kept.text())) } else { Ok(kept.text()) }
            }
            Err(Silence::Refused(words)) => Err(Trouble::mistake(words)),
            Err(Silence::Late(why)) => Err(Trouble::mistake(self.told(&why))),
            Err(Silence::Broken(why)) => Err(Trouble::lost(self.told(&why))),
        }
    }

    fn told(&self, why: &str) -> String {
        format!("the MCP server {}: {why}", self.config.name)
    }

    async fn page(&self, cursor: Option<String>) -> Result<ListToolsResult, Silence> {
        let mut line = self.line.lock().await;
        let asking = self.connected(&mut line).await?.page(cursor);
        let answer = within(MCP_START_WAIT, asking).await;
        line.settle(&answer).await;
        answer
    }

    async fn ask(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallToolResult, Silence> {
        let mut line = self.line.lock().await;
        let asking = self.connected(&mut line).await?.call(tool, arguments);
        let limit = Duration::from_millis(self.config.timeout_ms);
        let late = |_| Err(Silence::Late(silent(limit)));
        let answer = timeout(limit, asking).await.unwrap_or_else(late);
        line.settle(&answer).await;
        answer
    }

    /// A server that runs; or it is started.
    async fn connected<'a>(&self, line: &'a mut Line) -> Result<&'a Connection, Silence> {
        if line.connection.is_none() {
            if line.starts >= MCP_STARTS_MAX {
                let why = format!("given up after {MCP_STARTS_MAX} starts");
                return Err(Silence::Broken(why));
            }
            line.starts += 1;
            let opening = Connection::open(&self.warden, &self.job);
            line.connection = Some(within(MCP_START_WAIT, opening).await?);
        }
        line.connection.as_ref().ok_or_else(|| Silence::Broken("it is not there".to_owned()))
    }

    /// Ends it; the next use starts it anew. A call that was canceled leaves half a message.
    async fn close(&self) {
        if let Some(connection) = self.line.lock().await.connection.take() {
            connection.close().await;
        }
    }
}

impl Line {
    /// A server that is broken is ended and forgotten.
    async fn settle<T>(&mut self, answer: &Result<T, Silence>) {
        match answer {
            Ok(_) | Err(Silence::Refused(_)) => self.starts = 0,
            Err(Silence::Late(_) | Silence::Broken(_)) => {
                if let Some(connection) = self.connection.take() {
                    connection.close().await;
                }
            }
        }
    }
}

async fn within<T>(
    limit: Duration,
    asking: impl Future<Output = Result<T, Silence>>,
) -> Result<T, Silence> {
    timeout(limit, asking).await.unwrap_or_else(|_| Err(Silence::Broken(silent(limit))))
}

fn silent(limit: Duration) -> String {
    format!("no answer within {} ms", limit.as_millis())
}
