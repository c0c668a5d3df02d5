//! Hooks: what the client does, told before it does it.
//!
//! The client waits for its hooks, so they come in order; telemetry repeats them, and two that were
//! swapped on their way are put right by the client's own time.

use qd_session::id::ToolName;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Place};
use serde_json::Value;

use super::agenda::{Item, What};
use super::calls::{Described, Teller, fingerprint};
use super::dialog::Dialog;
use super::session::Session;
use super::wire::Hook;
use crate::outbox::Outbox;
use crate::{excerpt, rfc3339};

/// Most hooks remembered, to know a repetition by.
const FIRED_MAX: usize = 64;

/// How long the end of the loop waits to be confirmed where a stream is seen: its `result` follows
/// the hook at an end, and work where another hook sends the agent on. That was seen to take 0.9 s.
const RESULT_MS: u64 = 2_000;

/// Where there is no stream: what follows a hook that sends the agent on comes sooner as a rule. A
/// real end has nothing that confirms it, so no longer than an operator would notice.
const UNCONFIRMED_MS: u64 = 450;

/// Where a hook has sent the agent on before: its next model request follows at once.
const SENT_ON_MS: u64 = 500;

/// A plan that policy approves is approved by then.
const PLAN_APPROVED_MS: u64 = 1_000;

/// A compaction is over by then, even if nobody told.
const COMPACTION_MS_MAX: u64 = 120_000;

/// Asks the operator something whenever it runs.
const ASK_USER: &str = "ask_user";
/// Asks for the plan's approval, unless policy gives it.
const EXIT_PLAN_MODE: &str = "exit_plan_mode";

/// A hook that fired. What telemetry has cut off is unknown and equals anything.
#[derive(Debug, Clone, PartialEq)]
pub struct Fired {
    event: String,
    own: Timestamp,
    tool: Option<String>,
    input: Option<u64>,
}

impl Fired {
    fn of(hook: &Hook) -> Option<Self> {
        Some(Self {
            event: hook.hook_event_name.clone()?,
            own: rfc3339::timestamp(hook.timestamp.as_deref()?)?,
            tool: hook.tool_name.clone(),
            input: hook.tool_input.as_ref().map(fingerprint),
        })
    }

    fn repeats(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
            one.zip(other).is_none_or(|(one, other)| one == other)
        }
        self.event == other.event
            && self.own == other.own
            && same(self.tool.as_ref(), other.tool.as_ref())
            && same(self.input.as_ref(), other.input.as_ref())
    }
}

impl Session {
    /// Takes a hook in. False if nobody knows it.
    pub fn hook(&mut self, hook: &Hook, out: &mut Outbox) -> bool {
        let own = hook.timestamp.as_deref().and_then(rfc3339::timestamp);
        if self.is_repeated(hook) {
            return true;
        }
        self.live_in(
            Place {
                cwd: hook.cwd.as_deref().map(Into::into),
                transcript: hook.transcript_path.as_deref().map(Into::into),
                ..Place::default()
            },
            out,
        );
        let name = hook.hook_event_name.as_deref().unwrap_or_default();
        self.end_is_told |= name != "Notification";
        // It fired before the turn ended and was overtaken on its way.
        let stale = own.zip(self.ended_own).is_some_and(|(own, ended)| own < ended);
        match name {
            "SessionStart" => out.tell(Fact::SessionStarted { process: None }),
            "SessionEnd" => self.end(None, None, out),
            "BeforeAgent" => self.begin_turn(hook.prompt.as_deref(), out),
            "AfterAgent" => {
                self.ended_own = own;
                let ending = self.completed(hook.prompt_response.as_deref());
                self.sent_on |= hook.stop_hook_active == Some(true);
                let patience_ms = match (self.streams, self.sent_on) {
                    (true, _) => RESULT_MS,
                    (false, true) => SENT_ON_MS,
                    (false, false) => UNCONFIRMED_MS,
                };
                self.end_turn_later(ending, patience_ms, out);
            }
            "AfterTool" => self.after_tool(hook, out),
            "PreCompress" if hook.trigger.as_deref() == Some("manual") => {
                self.begin_compaction(COMPACTION_MS_MAX, out);
            }
            "BeforeTool"
            | "Notification"
            | "PreCompress"
            | "BeforeModel"
            | "AfterModel"
            | "BeforeToolSelection"
                if stale => {}
            "BeforeTool" => self.before_tool(hook, out),
            "Notification" => return self.notified(hook, out),
            // It fires before every model request, compression or not.
            "PreCompress" => {
                self.batch_over(out);
                self.think(out);
            }
            "BeforeModel" | "AfterModel" | "BeforeToolSelection" => self.think(out),
            _ => return false,
        }
        true
    }

    fn is_repeated(&mut self, hook: &Hook) -> bool {
        let Some(fired) = Fired::of(hook) else { return false };
        if self.fired.iter().any(|known| known.repeats(&fired)) {
            return true;
        }
        self.fired.push_back(fired);
        if self.fired.len() > FIRED_MAX {
            self.fired.pop_front();
        }
        false
    }

    fn before_tool(&mut self, hook: &Hook, out: &mut Outbox) {
        let Some(told) = described(hook) else { return };
        let stamp = hook.timestamp.clone().unwrap_or_else(|| out.at().0.to_string());
        let call = self.calls.begin(told, || format!("{}@{stamp}", told.tool));
        if call.ended {
            return;
        }
        let (id, started) = (call.id.clone(), call.started());
        out.tell(started);
        self.act(out.at());
        match told.tool {
            ASK_USER => {
                let ask = Ask {
                    call: Some(id.clone()),
                    tool: Some(ToolName::new(told.tool)),
                    text: told.input.and_then(question),
                    input: told.input.map(|input| excerpt::input(&input.to_string())),
                };
                self.ask(Dialog::Question, Some(&id), ask, out);
            }
            EXIT_PLAN_MODE => {
                let due = out.at().plus_ms(PLAN_APPROVED_MS);
                let source = out.source();
                self.agenda.add(Item { due, at: due, source, what: What::PlanWaits(id) });
            }
            _ => {}
        }
    }

    fn after_tool(&mut self, hook: &Hook, out: &mut Outbox) {
        let failed = hook.tool_response.as_ref().and_then(|response| response.error.as_ref());
        let ok = failed.is_none_or(Value::is_null);
        let told = described(hook);
        let ended = match told {
            Some(told) => self.calls.end(told).map(|call| (call.completed(ok), call.delegates())),
            None => None,
        };
        self.resolve_loose(out);
        if let Some((completed, delegated)) = ended {
            out.tell(completed);
            self.call_ended(delegated, out);
        }
    }

    /// The dialog is on the screen: a person is needed.
    fn notified(&mut self, hook: &Hook, out: &mut Outbox) -> bool {
        if hook.notification_type.as_deref() != Some("ToolPermission") {
            return false;
        }
        let details = hook.details.clone().unwrap_or_default();
        let dialog = match details.get("type").and_then(Value::as_str) {
            Some("ask_user") => Dialog::Question,
            Some("exit_plan_mode") => Dialog::Plan,
            Some(_) | None => Dialog::Permission,
        };
        let call = self.calls.held_up(&details);
        // The question was shown, in full, when its tool began.
        if call.as_ref().is_some_and(|call| call.tool == ASK_USER && call.is_begun_by(Teller::Hook))
        {
            return true;
        }
        let call = call.map(|call| (call.id.clone(), call.tool.clone()));
        let id = call.as_ref().map(|(id, _)| id.clone());
        let shown = ["command", "filePath", "prompt", "title"];
        let shown = shown.iter().find_map(|name| details.get(name)?.as_str());
        let ask = Ask {
            call: id.clone(),
            tool: call.map(|(_, tool)| ToolName::new(tool)),
            text: shown.or(hook.message.as_deref()).and_then(excerpt::last_message),
            input: Some(excerpt::input(&details.to_string())),
        };
        self.ask(dialog, id.as_ref(), ask, out);
        true
    }
}

fn described(hook: &Hook) -> Option<Described<'_>> {
    Some(Described {
        teller: Teller::Hook,
        vendor: None,
        tool: hook.tool_name.as_deref()?,
        input: hook.tool_input.as_ref(),
    })
}

fn question(input: &Value) -> Option<std::sync::Arc<str>> {
    let questions = input.get("questions")?.as_array()?;
    let texts: Vec<&str> =
        questions.iter().filter_map(|asked| asked.get("question")?.as_str()).collect();
    excerpt::last_message(&texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Harness;
    use crate::signal::Channel;
    use crate::story::Story;

    /// A hook that fired at that second and millisecond.
    fn fired(at: u64, name: &str, more: Value) -> Value {
        let (second, millis) = (at / 1_000, at % 1_000);
        let mut payload = json!({"session_id": "s", "hook_event_name": name, "cwd": "/w",
            "transcript_path": "/c/session-x.jsonl",
            "timestamp": format!("1970-01-01T00:00:{second:02}.{millis:03}Z")});
        let fields = payload.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        payload
    }

    /// It arrived a little later.
    fn hook(story: &mut Story, at: u64, name: &str, more: Value) {
        story.hear(at + 20, Channel::Hook, &fired(at, name, more));
    }

    fn prompted() -> Story {
        let mut story = Story::of(Harness::GeminiCli);
        hook(&mut story, 0, "SessionStart", json!({"source": "startup"}));
        assert_eq!(story.state(), "needs_you/idle");
        hook(&mut story, 1_000, "BeforeAgent", json!({"prompt": "make a file"}));
        story
    }

    fn shell() -> Value {
        json!({"tool_name": "run_shell_command", "tool_input": {"command": "touch x"}})
    }

    fn dialog() -> Value {
        json!({"notification_type": "ToolPermission", "message": "Tool Confirm requires execution",
            "details": {"type": "exec", "title": "Confirm", "command": "touch x"}})
    }

    fn after_agent() -> Value {
        json!({"prompt": "make a file", "prompt_response": "The file is in place.",
            "stop_hook_active": false})
    }

    #[test]
    fn a_notification_needs_a_person_until_the_tool_has_run() {
        let mut story = prompted();
        hook(&mut story, 2_000, "BeforeTool", shell());
        assert_eq!(story.state(), "autonomous/acting");
        hook(&mut story, 2_100, "Notification", dialog());
        story.wait(50_000);
        assert_eq!(story.state(), "needs_you/needs_permission");
        hook(&mut story, 51_000, "AfterTool", shell());
        assert_eq!(story.state(), "autonomous/thinking");
        hook(&mut story, 52_000, "AfterAgent", after_agent());
        story.wait(53_000);
        assert_eq!(story.state(), "delivered/task_complete");
    }

    #[test]
    fn a_notification_that_overtakes_its_tool_still_waits_and_still_ends() {
        let mut story = prompted();
        hook(&mut story, 2_100, "Notification", dialog());
        hook(&mut story, 2_000, "BeforeTool", shell());
        assert_eq!(story.state(), "needs_you/needs_permission");
        hook(&mut story, 9_000, "AfterTool", shell());
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn a_hook_that_is_told_again_after_its_answer_opens_nothing() {
        let mut story = prompted();
        hook(&mut story, 2_100, "Notification", dialog());
        hook(&mut story, 9_000, "AfterTool", shell());
        story.hear(9_500, Channel::Hook, &fired(2_100, "Notification", dialog()));
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn a_question_opens_with_its_tool_and_closes_with_it() {
        let mut story = prompted();
        let tool = json!({"tool_name": "ask_user",
            "tool_input": {"questions": [{"question": "Which greeting?", "type": "text"}]}});
        hook(&mut story, 2_000, "BeforeTool", tool.clone());
        assert_eq!(story.state(), "needs_you/awaiting_input");
        let shown = json!({"notification_type": "ToolPermission",
            "details": {"type": "ask_user", "title": "Ask User"}});
        hook(&mut story, 2_100, "Notification", shown);
        assert_eq!(story.state(), "needs_you/awaiting_input");
        hook(&mut story, 9_000, "AfterTool", tool);
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn a_plan_that_policy_approves_flashes_no_card_and_another_waits() {
        let tool = json!({"tool_name": "exit_plan_mode", "tool_input": {"plan_filename": "p.md"}});
        let mut story = prompted();
        hook(&mut story, 2_000, "BeforeTool", tool.clone());
        hook(&mut story, 2_300, "AfterTool", tool.clone());
        story.wait(9_000);
        assert!(!story.shown.contains(&"needs_you/awaiting_approval".to_owned()));
        hook(&mut story, 10_000, "BeforeTool", tool);
        let shown = json!({"notification_type": "ToolPermission",
            "details": {"type": "exit_plan_mode", "title": "Plan Approval"}});
        hook(&mut story, 10_100, "Notification", shown);
        assert_eq!(story.state(), "needs_you/awaiting_approval");
    }

    #[test]
    fn the_next_model_request_ends_a_batch_whose_ends_were_lost() {
        let mut story = prompted();
        hook(&mut story, 2_000, "BeforeTool", shell());
        hook(&mut story, 2_100, "Notification", dialog());
        hook(&mut story, 9_000, "PreCompress", json!({"trigger": "auto"}));
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn a_subagents_model_request_closes_nobodys_permission() {
        let mut story = prompted();
        let agent = json!({"tool_name": "invoke_agent", "tool_input": {"agent_name": "a"}});
        hook(&mut story, 2_000, "BeforeTool", agent);
        hook(&mut story, 2_100, "BeforeTool", shell());
        hook(&mut story, 2_200, "Notification", dialog());
        hook(&mut story, 3_000, "PreCompress", json!({"trigger": "auto"}));
        assert_eq!(story.state(), "needs_you/needs_permission");
    }

    #[test]
    fn an_agent_that_a_hook_sends_on_has_not_stopped() {
        let mut story = prompted();
        hook(&mut story, 2_000, "AfterAgent", json!({"stop_hook_active": true}));
        hook(&mut story, 2_200, "PreCompress", json!({"trigger": "auto"}));
        story.wait(9_000);
        assert_eq!(story.shown, ["needs_you/idle", "autonomous/thinking"]);
    }

    #[test]
    fn an_agent_that_another_hook_sends_on_the_first_time_has_not_stopped() {
        let mut story = prompted();
        hook(&mut story, 2_000, "AfterAgent", json!({"stop_hook_active": false}));
        hook(&mut story, 2_400, "PreCompress", json!({"trigger": "auto"}));
        story.wait(9_000);
        assert_eq!(story.shown, ["needs_you/idle", "autonomous/thinking"]);
    }

    #[test]
    fn a_stream_tells_whether_the_agent_was_sent_on() {
        let mut story = prompted();
        story.hear(1_100, Channel::Stream, &json!({"type": "init", "session_id": "s"}));
        hook(&mut story, 2_000, "AfterAgent", json!({"stop_hook_active": false}));
        let said =
            json!({"type": "message", "role": "assistant", "content": "More.", "delta": true});
        story.hear(2_892, Channel::Stream, &said);
        assert_eq!(story.shown, ["needs_you/idle", "autonomous/thinking"]);
    }

    #[test]
    fn a_hook_that_was_overtaken_by_the_end_does_not_reopen_the_turn() {
        let mut story = prompted();
        hook(&mut story, 2_100, "AfterAgent", after_agent());
        hook(&mut story, 2_050, "AfterModel", json!({}));
        story.wait(3_000);
        assert_eq!(story.state(), "delivered/task_complete");
    }

    #[test]
    fn only_a_compression_that_was_asked_for_is_one() {
        let mut story = prompted();
        hook(&mut story, 1_500, "PreCompress", json!({"trigger": "auto"}));
        assert_eq!(story.state(), "autonomous/thinking");
        hook(&mut story, 2_000, "AfterAgent", after_agent());
        story.wait(3_000);
        hook(&mut story, 4_000, "PreCompress", json!({"trigger": "manual"}));
        assert_eq!(story.state(), "autonomous/compacting");
        story.wait(200_000);
        assert_eq!(story.state(), "delivered/task_complete");
    }

    #[test]
    fn the_same_hook_twice_is_one() {
        let mut story = prompted();
        hook(&mut story, 2_000, "BeforeTool", shell());
        hook(&mut story, 2_000, "BeforeTool", shell());
        hook(&mut story, 3_000, "AfterTool", shell());
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn a_goodbye_ends_the_session() {
        let mut story = prompted();
        hook(&mut story, 2_000, "SessionEnd", json!({"reason": "exit"}));
        story.wait(20_000);
        assert_eq!(story.state(), "delivered/session_ended");
    }
}
