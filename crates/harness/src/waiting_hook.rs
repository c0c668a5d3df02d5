//! A hook that stays for an answer: what it waits for, and how the answer is spelled.
//!
//! Pure. The handler hears the same payload and tells of the request; here it is only matched
//! with that request, so that whoever answers reaches the process that asked.

use std::sync::Arc;

use qd_session::decision::{Decision, Scope};
use qd_session::id::{AgentId, ToolName};
use serde_json::Value;

use crate::{Harness, claude_code, codex, excerpt, gemini_cli};

#[derive(Debug, Clone, PartialEq)]
pub struct WaitingHook {
    /// The agent's own id for the session.
    pub session: Arc<str>,
    pub wants: Wants,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Wants {
    Answer(Asked),
    /// The agent goes on by itself, or asks in its terminal: only a rule that denies is of use.
    Verdict(Asked),
    /// The turn is over: whatever the operator wants to say next.
    Prompt,
}

/// What the hook of a permission asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    harness: Harness,
    pub agent: AgentId,
    pub tool: ToolName,
    /// As the request has it.
    pub input: Arc<str>,
    /// Something of what the tool is to be given was too long, and nobody here has seen it.
    pub is_cut: bool,
    whole: Value,
    suggestions: Option<Value>,
}

/// What a waiting hook said.
#[derive(Debug, Clone, Copy)]
pub struct Heard<'a> {
    /// As the handler heard it, perhaps abridged: it finds the request.
    pub payload: &'a [u8],
    /// As much of it as there is, for whoever judges it.
    pub judged: &'a [u8],
    /// That is not all.
    pub is_cut: bool,
}

impl<'a> Heard<'a> {
    /// A payload that is whole.
    pub fn all(payload: &'a [u8]) -> Self {
        Self { payload, judged: payload, is_cut: false }
    }
}

/// The session that a hook's payload names, in its agent's words.
pub fn session_named(payload: &[u8]) -> Option<Arc<str>> {
    #[derive(serde::Deserialize)]
    struct Named {
        session_id: String,
    }
    crate::payload::read::<Named>(payload).map(|named| named.session_id.into())
}

impl WaitingHook {
    /// None where the payload is none that is waited for.
    pub fn read(harness: Harness, heard: Heard<'_>) -> Option<Self> {
        match harness {
            Harness::ClaudeCode => claude_code_hook(heard),
            Harness::Codex => codex_hook(heard),
            Harness::GeminiCli => gemini_cli_hook(heard),
            // They have none.
            Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp
            | Harness::Native => None,
        }
    }
}

impl Asked {
    /// What the hook prints. None if the decision cannot be given this way.
    pub fn reply(&self, decision: &Decision) -> Option<String> {
        // An answer that sends the input back would let the abridged one run.
        if self.is_cut && self.sends_input(decision) {
            return None;
        }
        match self.harness {
            Harness::ClaudeCode => {
                let asked = claude_code::reply::Asked {
                    tool: self.tool.as_str(),
                    input: &self.whole,
                    suggestions: self.suggestions.as_ref(),
                };
                Some(claude_code::reply::permission_hook(&asked, decision))
            }
            Harness::Codex => codex::reply::permission_hook(decision),
            Harness::GeminiCli => {
                gemini_cli::reply::before_tool(decision).map(|reply| reply.to_string())
            }
            Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp
            | Harness::Native => None,
        }
    }

    fn sends_input(&self, decision: &Decision) -> bool {
        match decision {
            Decision::Allow { input, .. } => {
                input.is_some() || claude_code::reply::needs_a_person(self.tool.as_str())
            }
            Decision::Answer { .. } | Decision::ApprovePlan { .. } => true,
            Decision::Deny { .. } | Decision::RejectPlan { .. } => false,
        }
    }

    /// All of what the tool is to be given, where the hook told all of it.
    pub fn whole_input(&self) -> Arc<str> {
        if self.whole.is_null() { self.input.clone() } else { self.whole.to_string().into() }
    }

    /// How far beyond this once the hook can allow it.
    pub fn scopes(&self) -> Vec<Scope> {
        if self.suggestions().is_empty() {
            return Vec::new();
        }
        let list = self.suggestions.as_ref().and_then(Value::as_array);
        let mut suggested = list.into_iter().flatten();
        // Where all is for the session anyway, the two are one.
        match suggested.all(|one| one["destination"] == "session") {
            true => vec![Scope::Always],
            false => vec![Scope::Session, Scope::Always],
        }
    }

    /// What "always" would keep, in words; empty where the client suggests nothing.
    pub fn suggestions(&self) -> Vec<String> {
        let list = self.suggestions.as_ref().and_then(Value::as_array);
        list.into_iter().flatten().filter_map(claude_code::reply::suggestion).collect()
    }
}

/// What the tool is to be given, out of what is judged; the payload's own where that is the same.
fn judged_input(heard: Heard<'_>, own: &Value) -> Value {
    let judged: Option<Value> = match heard.judged == heard.payload {
        true => None,
        false => serde_json::from_slice(heard.judged).ok(),
    };
    judged.map_or_else(|| own.clone(), |mut judged| judged["tool_input"].take())
}

fn claude_code_hook(heard: Heard<'_>) -> Option<WaitingHook> {
    let mut payload: Value = serde_json::from_slice(heard.payload).ok()?;
    let text = |name: &str| payload[name].as_str().map(str::to_owned);
    let session = text("session_id")?.into();
    let wants = match text("hook_event_name")?.as_str() {
        "PermissionRequest" => {
            let agent = text("agent_id").map_or(AgentId::MAIN, AgentId::sub);
            let tool = ToolName::new(text("tool_name")?);
            let own = payload["tool_input"].take();
            let suggestions = payload.get_mut("permission_suggestions").map(Value::take);
            let input = claude_code::input_text(&own);
            let (whole, is_cut) = (judged_input(heard, &own), heard.is_cut);
            let harness = Harness::ClaudeCode;
            Wants::Answer(Asked { harness, agent, tool, input, is_cut, whole, suggestions })
        }
        "Stop" => Wants::Prompt,
        _ => return None,
    };
    Some(WaitingHook { session, wants })
}

fn codex_hook(heard: Heard<'_>) -> Option<WaitingHook> {
    let hook: codex::wire::Hook = serde_json::from_slice(heard.payload).ok()?;
    if hook.hook_event_name.as_deref() != Some("PermissionRequest") {
        return None;
    }
    let own = hook.tool_input.as_ref()?.get();
    let asked = Asked {
        harness: Harness::Codex,
        agent: hook.agent_id.as_deref().map_or(AgentId::MAIN, AgentId::sub),
        tool: ToolName::new(hook.tool_name.as_deref()?),
        input: excerpt::input(own),
        is_cut: heard.is_cut,
        whole: judged_input(heard, &serde_json::from_str(own).ok()?),
        suggestions: None,
    };
    Some(WaitingHook { session: hook.session_id.as_deref()?.into(), wants: Wants::Answer(asked) })
}

fn gemini_cli_hook(heard: Heard<'_>) -> Option<WaitingHook> {
    let mut payload: Value = serde_json::from_slice(heard.payload).ok()?;
    if payload["hook_event_name"] != "BeforeTool" {
        return None;
    }
    let own = payload["tool_input"].take();
    // What broke off may not say which tool it is: then it may be any.
    let tool = payload["tool_name"].as_str().or(heard.is_cut.then_some(""))?;
    let asked = Asked {
        harness: Harness::GeminiCli,
        agent: AgentId::MAIN,
        tool: ToolName::new(tool),
        input: excerpt::input(&own.to_string()),
        is_cut: heard.is_cut,
        whole: judged_input(heard, &own),
        suggestions: None,
    };
    Some(WaitingHook {
        session: payload["session_id"].as_str()?.into(),
        wants: Wants::Verdict(asked),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(harness: Harness, payload: &[u8]) -> Option<WaitingHook> {
        WaitingHook::read(harness, Heard::all(payload))
    }

    #[test]
    fn what_was_cut_is_never_sent_back() {
        let payload = json!({"session_id": "s", "hook_event_name": "PermissionRequest",
            "tool_name": "Write", "tool_input": {"content": "x"}})
        .to_string();
        let heard = Heard { is_cut: true, ..Heard::all(payload.as_bytes()) };
        let hook = WaitingHook::read(Harness::ClaudeCode, heard).expect("it waits");
        let Wants::Answer(asked) = hook.wants else { panic!("it asks") };
        let allow = |input| asked.reply(&Decision::Allow { input, scope: Scope::Once });
        assert_eq!(allow(Some(json!({"content": "y"}))), None);
        assert!(allow(None).is_some_and(|reply| !reply.contains("updatedInput")));
    }

    fn asked(harness: Harness, payload: &Value) -> Asked {
        let hook = read(harness, payload.to_string().as_bytes()).expect("it waits");
        assert_eq!(&*hook.session, "s");
        match hook.wants {
            Wants::Answer(asked) => asked,
            Wants::Verdict(_) | Wants::Prompt => panic!("it asks"),
        }
    }

    #[test]
    fn a_permission_of_claude_code_is_answered_with_what_it_asked() {
        let rule = json!({"type": "addRules", "behavior": "allow", "destination": "localSettings",
            "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}]});
        let asked = asked(
            Harness::ClaudeCode,
            &json!({"session_id": "s", "hook_event_name": "PermissionRequest", "agent_id": "a1",
                "tool_name": "Bash", "tool_input": {"command": "touch x"},
                "permission_suggestions": [rule]}),
        );
        assert_eq!(asked.agent, AgentId::sub("a1"));
        assert_eq!(&*asked.input, r#"{"command":"touch x"}"#);
        assert_eq!(asked.suggestions(), ["Bash(touch:*) in this project, for you"]);
        assert_eq!(asked.scopes(), [Scope::Session, Scope::Always]);
        let allowed = asked.reply(&Decision::Allow { input: None, scope: Scope::Always });
        let allowed: Value = serde_json::from_str(&allowed.expect("text")).expect("JSON");
        let decision = &allowed["hookSpecificOutput"]["decision"];
        assert_eq!(decision["behavior"], "allow");
        assert_eq!(decision["updatedPermissions"], json!([rule]));
    }

    #[test]
    fn a_hook_of_codex_takes_a_plain_yes_or_no() {
        let asked = asked(
            Harness::Codex,
            &json!({"session_id": "s", "hook_event_name": "PermissionRequest",
                "tool_name": "Bash", "tool_input": {"command": "touch x"}}),
        );
        let once = Decision::Allow { input: None, scope: Scope::Once };
        assert!(asked.reply(&once).is_some_and(|text| text.contains("allow")));
        assert_eq!(asked.reply(&Decision::Allow { input: None, scope: Scope::Always }), None);
        assert_eq!(asked.suggestions(), [""; 0]);
        assert_eq!(asked.scopes(), []);
    }

    #[test]
    fn the_end_of_a_turn_waits_for_a_prompt_and_the_rest_for_nothing() {
        let read = |harness, event: &str| {
            let payload = json!({"session_id": "s", "hook_event_name": event}).to_string();
            super::tests::read(harness, payload.as_bytes()).map(|hook| hook.wants)
        };
        assert_eq!(read(Harness::ClaudeCode, "Stop"), Some(Wants::Prompt));
        assert_eq!(read(Harness::ClaudeCode, "PreToolUse"), None);
        assert_eq!(read(Harness::Codex, "Stop"), None);
        assert_eq!(read(Harness::GeminiCli, "AfterTool"), None);
        assert_eq!(super::tests::read(Harness::ClaudeCode, b"no JSON"), None);
    }
}
