//! What the client says: nobody is asked for anything.

use std::sync::Arc;

use qd_session::id::{CallId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;

use super::seen::Sight;
use super::stream::{
    Facts, Phase, RESULT_GRACE_MS, SUBTASK_RESULT_GRACE_MS, Stream, is_news, main,
};
use super::wire::{Client, Message};
use crate::excerpt::{brief, ending};

impl Stream {
    pub(super) fn say(
        &mut self,
        at: Timestamp,
        word: &str,
        message: &Message,
        sight: Sight,
        facts: &mut Facts,
    ) {
        match word {
            "api_req_started" => self.request(message, sight, facts),
            "api_req_retry_delayed" | "api_req_rate_limit_wait" | "error_retry" => {
                self.retry(message, sight, facts);
            }
            "api_req_retried" if is_news(sight) => {
                self.progress(message.stamp, facts);
                self.thinks(facts);
            }
            "task" | "text" | "reasoning" => self.talk(word, message, sight, facts),
            "user_feedback" | "user_feedback_diff" if is_news(sight) => {
                self.feedback(message, facts);
            }
            "completion_result" => self.result(at, message, sight, facts),
            "tool"
            | "command"
            | "use_mcp_server"
            | "mcp_server_request_started"
            | "browser_action_launch"
            | "browser_action"
                if is_news(sight) && !message.partial =>
            {
                self.use_tool(word, message, facts);
            }
            "command_output"
            | "browser_action_result"
            | "mcp_server_response"
            | "codebase_search_result"
            | "diff_error"
            | "rooignore_error"
            | "clineignore_error"
                if is_news(sight) =>
            {
                self.progress(message.stamp, facts);
            }
            "subtask_result" if is_news(sight) => {
                self.progress(message.stamp, facts);
                self.end_subtask(facts);
                self.thinks(facts);
            }
            "condense_context" if is_news(sight) => {
                let began = message.partial;
                facts.push(main(if began {
                    Fact::CompactionStarted
                } else {
                    Fact::CompactionEnded
                }));
            }
            "condense_context_error" => facts.push(main(Fact::CompactionEnded)),
            // Shown to a person, and no sign of either work or waiting: checkpoints, images,
            // warnings, progress lists, finished and deleted requests, `error` (a failure that
            // needs somebody is asked about).
            _ => {}
        }
    }

    /// A request to the model; its second copy brings the tokens. After a failure the copy alone
    /// tells that the model has answered, and where the first was lost it is the first.
    fn request(&mut self, message: &Message, sight: Sight, facts: &mut Facts) {
        let request = message.request();
        if request.has_usage() {
            facts.push(main(self.usage(request.context_tokens())));
        }
        let healed = request.answered() && self.phase == Phase::Failed;
        let new = sight == Sight::First && self.progress(message.stamp, facts);
        if (new && request.cancel_reason.is_none()) || healed {
            self.thinks(facts);
        } else if request.answered() && self.phase == Phase::Working && self.running.is_none() {
            // It also ends a countdown.
            facts.push(main(Fact::LlmStarted));
        }
    }

    fn retry(&mut self, message: &Message, sight: Sight, facts: &mut Facts) {
        if message.partial && sight == Sight::First {
            self.progress(message.stamp, facts);
            self.phase = Phase::Working;
            let said = message.text.as_deref().map(|text| brief(text, 200));
            facts.push(main(Fact::LlmRetrying { message: said }));
        } else if !message.partial && is_news(sight) && self.phase == Phase::Working {
            facts.push(main(Fact::LlmStarted));
        }
    }

    /// The model's words; or the prompt, which both clients print first.
    fn talk(&mut self, word: &str, message: &Message, sight: Sight, facts: &mut Facts) {
        if sight == Sight::Again {
            return;
        }
        let text = message.text.as_deref().unwrap_or_default();
        let is_prompt = word == "task" || (self.phase == Phase::Fresh && !message.partial);
        if word != "reasoning" && is_prompt {
            self.progress(message.stamp, facts);
            return self.begin(Some(text), facts);
        }
        if self.echo.is_some() && self.echo == Some(ending(text)) {
            self.echo = None;
            return;
        }
        let new = self.progress(message.stamp, facts);
        if new && sight == Sight::First {
            self.thinks(facts);
        }
        if word == "text" && !message.partial {
            self.said = Some(ending(text));
        }
    }

    /// A person's words: the answer to an ask, or the next prompt.
    fn feedback(&mut self, message: &Message, facts: &mut Facts) {
        self.progress(message.stamp, facts);
        match self.phase {
            Phase::Completed | Phase::Paused | Phase::Fresh => {
                self.begin(message.text.as_deref(), facts);
            }
            Phase::Failed => self.thinks(facts),
            Phase::Working => {
                let text = message.text.as_deref().map(|text| brief(text, 2_000));
                facts.push(main(Fact::UserPrompt { text }));
            }
        }
    }

    /// The result. Kilo hands it over with an ask, and a subtask's with another; Cline's stands
    /// for itself.
    fn result(&mut self, at: Timestamp, message: &Message, sight: Sight, facts: &mut Facts) {
        if sight == Sight::Again {
            return;
        }
        self.progress(message.stamp, facts);
        if message.partial {
            if self.phase != Phase::Completed {
                self.thinks(facts);
            }
            return;
        }
        self.said = message.text.as_deref().map(ending);
        let handed_over = self.phase == Phase::Completed;
        if handed_over || message.client == Client::Cline {
            self.complete(facts);
        } else {
            self.end_running(true, facts);
            let patience = match self.subtask {
                Some(_) => SUBTASK_RESULT_GRACE_MS,
                None => RESULT_GRACE_MS,
            };
            self.result_due = Some(at.plus_ms(patience));
        }
    }

    /// A tool that nobody was asked about.
    fn use_tool(&mut self, word: &str, message: &Message, facts: &mut Facts) {
        if !self.progress(message.stamp, facts) {
            return;
        }
        if self.phase != Phase::Working {
            self.thinks(facts);
        }
        let details = message.details();
        let tool = details.tool.as_deref().unwrap_or(word);
        let about = [&details.path, &details.tool_name, &details.server_name, &details.url]
            .into_iter()
            .find_map(Option::as_deref)
            .or(message.text.as_deref().filter(|_| message.data.is_none()))
            .map(|about| -> Arc<str> { brief(about, 200) });
        let call = CallId::new(message.stamp.to_string());
        facts.extend(self.run(call, ToolName::new(tool), about));
    }
}
