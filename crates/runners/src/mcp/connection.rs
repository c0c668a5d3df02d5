//! One running server, and the client of `rmcp` that talks to it.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    Implementation, ListToolsResult, PaginatedRequestParams,
};
use rmcp::service::{ClientInitializeError, RunningService, ServiceError, serve_client};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleClient, model::JsonObject};

use super::limits::MCP_LINE_BYTES_MAX;
use super::sluice::Sluice;
use crate::warden::{Charge, Job, Warden};

#[derive(Debug)]
pub(super) struct Connection {
    client: RunningService<RoleClient, ClientConfig>,
    sluice: Sluice,
    charge: Charge,
}

/// Why a server did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silence {
    /// It answered, with a refusal. It goes on.
    Refused(String),
    /// The call's time is over. What it did is the model's to find out, as of a command that was
    /// stopped by its limit.
    Late(String),
    /// It is of no use any more.
    Broken(String),
}

impl Connection {
    /// Starts a server and greets it.
    pub async fn open(warden: &Warden, job: &Job) -> Result<Self, Silence> {
        let (mut charge, ends) = warden.charge(job).await.map_err(Silence::Broken)?;
        let (sluice, stream) = Sluice::before(ends);
        let (read, write) = tokio::io::split(stream);
        let transport =
            AsyncRwTransport::new_client(read, write).with_max_line_length(MCP_LINE_BYTES_MAX);
        match sluice.listen(serve_client(ourselves(), transport)).await {
            Ok(client) => Ok(Self { client, sluice, charge }),
            Err(error) => {
                let why = unwelcome(&error, &sluice);
                drop(sluice);
                charge.end().await;
                Err(Silence::Broken(why))
            }
        }
    }

    /// One page of its tools.
    pub async fn page(&self, cursor: Option<String>) -> Result<ListToolsResult, Silence> {
        let asked = PaginatedRequestParams::default().with_cursor(cursor);
        let listed = self.sluice.listen(self.client.list_tools(Some(asked))).await;
        listed.map_err(|error| self.silence(error))
    }

    pub async fn call(&self, tool: &str, arguments: JsonObject) -> Result<CallToolResult, Silence> {
        let asked = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answer = self.sluice.listen(self.client.call_tool_once(asked)).await;
        let answer = answer.map_err(|error| self.silence(error))?;
        // Nobody told it that we could give it more, or wait for it elsewhere.
        let CallToolResponse::Complete(result) = answer else {
            return Err(Silence::Refused("the server wants what was not offered".to_owned()));
        };
        Ok(result)
    }

    /// Ends the server with all that it started, and waits for that.
    pub async fn close(self) {
        let Self { client, sluice, mut charge } = self;
        drop((sluice, client));
        // One that cannot be killed waits for a disk; it ends when that answers.
        charge.end().await;
    }

    fn silence(&self, error: ServiceError) -> Silence {
        if let ServiceError::McpError(error) = error {
            return Silence::Refused(error.message.into_owned());
        }
        if matches!(error, ServiceError::UnexpectedResponse) {
            let why = "the server's answer is none to what it was asked";
            return Silence::Refused(why.to_owned());
        }
        let is_cut =
            matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_));
        Silence::Broken(if is_cut { self.sluice.fault().to_owned() } else { error.to_string() })
    }
}

/// What a server is told of us: nothing is offered to it.
fn ourselves() -> ClientConfig {
    let name = Implementation::new("quarterdeck", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), name)
}

fn unwelcome(error: &ClientInitializeError, sluice: &Sluice) -> String {
    use ClientInitializeError::{ConnectionClosed, JsonRpcError, TransportError};
    if let JsonRpcError(error) = error {
        return error.message.to_string();
    }
    match matches!(error, ConnectionClosed(_) | TransportError { .. }) {
        true => sluice.fault().to_owned(),
        // The others show whatever the server sent.
        false => "it does not answer a greeting as MCP does".to_owned(),
    }
}
