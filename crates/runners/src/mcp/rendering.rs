//! What a server offers and answers, as a model is told of it.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool};
use serde_json::Value;

use super::limits::{MCP_DESCRIPTION_BYTES_MAX, MCP_SCHEMA_BYTES_MAX, MCP_TOOL_NAME_BYTES_MAX};
use crate::tools::ToolDefinition;

/// A tool as the model sees it. None if its name or schema is nothing that a model can be told.
pub fn definition(server: &str, tool: &Tool) -> Option<ToolDefinition> {
    let name = format!("mcp__{server}__{}", tool.name);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.len() > MCP_TOOL_NAME_BYTES_MAX || !name.bytes().all(is_letter) {
        return None;
    }
    let text = tool.description.as_deref().unwrap_or("");
    let description = text[..text.floor_char_boundary(MCP_DESCRIPTION_BYTES_MAX)].to_owned();
    let input_schema = Value::Object((*tool.input_schema).clone());
    let is_usable = input_schema.get("type").and_then(Value::as_str) == Some("object")
        && input_schema.to_string().len() <= MCP_SCHEMA_BYTES_MAX;
    let hint = tool.annotations.as_ref().and_then(|notes| notes.read_only_hint);
    let mutating = hint != Some(true);
    is_usable.then_some(ToolDefinition { name, description, input_schema, mutating })
}

/// What a tool answered, as text; and whether it calls that an error.
pub fn answer(result: &CallToolResult) -> (String, bool) {
    let mut lines: Vec<String> = result.content.iter().map(part).collect();
    if lines.is_empty() {
        lines.extend(result.structured_content.as_ref().map(Value::to_string));
    }
    (lines.join("\n"), result.is_error == Some(true))
}

fn part(part: &ContentBlock) -> String {
    match part {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => encoded(&image.mime_type, &image.data),
        ContentBlock::Audio(audio) => encoded(&audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        ContentBlock::Resource(inner) => match &inner.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, .. } => format!("[{uri}]"),
            _ => UNKNOWN.to_owned(),
        },
        _ => UNKNOWN.to_owned(),
    }
}

const UNKNOWN: &str = "[something that is no text]";

fn encoded(kind: &str, data: &str) -> String {
    format!("[{kind}, {} bytes of base64]", data.len())
}
