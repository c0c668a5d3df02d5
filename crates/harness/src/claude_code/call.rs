//! Tool calls of all agents of a session: open ones, and ended ones while late news may come.

use std::sync::Arc;

use qd_session::id::{AgentId, CallId};
use qd_session::moment::Timestamp;
use serde_json::Value;

use crate::excerpt::{self, ABOUT_BYTES_MAX, head};

/// Most calls remembered in one session. A batch seldom has a dozen; ended ones go first.
const CALLS_MAX: usize = 128;

/// Hook processes overtake each other: news of a call this soon after its end is old news.
const LATE_NEWS_MS: u64 = 1_000;

#[derive(Debug)]
pub struct Call {
    pub id: CallId,
    pub agent: AgentId,
    pub tool: Arc<str>,
    input: Option<Arc<str>>,
    started_at: Timestamp,
    /// When it ended, or when what it waited for was answered: nobody is asked for it again.
    settled_at: Option<Timestamp>,
    ended: bool,
}

#[derive(Debug, Default)]
pub struct Calls {
    list: Vec<Call>,
}

/// Which call a request belongs to.
#[derive(Debug, PartialEq, Eq)]
pub enum Match {
    Open(CallId),
    /// It is over: the request was overtaken by its own result.
    Settled,
    Unknown,
}

impl Calls {
    /// Notes a start. False if the call is known to have ended.
    pub fn start(
        &mut self,
        at: Timestamp,
        agent: &AgentId,
        id: &str,
        tool: &str,
        input: Option<&Value>,
    ) -> bool {
        if let Some(known) = self.list.iter_mut().find(|call| call.id.as_str() == id) {
            known.input = input.map(input_text).or(known.input.take());
            return !known.ended;
        }
        self.push(Call {
            id: id.into(),
            agent: agent.clone(),
            tool: tool.into(),
            input: input.map(input_text),
            started_at: at,
            settled_at: None,
            ended: false,
        });
        true
    }

    /// Notes an end. `None` if it had ended before, else whose call it was.
    pub fn end(&mut self, now: Timestamp, agent: &AgentId, id: &str) -> Option<AgentId> {
        if let Some(known) = self.list.iter_mut().find(|call| call.id.as_str() == id) {
            known.settled_at = Some(now);
            let news = !known.ended;
            known.ended = true;
            return news.then(|| known.agent.clone());
        }
        self.push(Call {
            id: id.into(),
            agent: agent.clone(),
            tool: "".into(),
            input: None,
            started_at: now,
            settled_at: Some(now),
            ended: true,
        });
        Some(agent.clone())
    }

    /// What it waited for was answered; it may run for long yet.
    pub fn answered(&mut self, now: Timestamp, id: &CallId) {
        if let Some(known) = self.list.iter_mut().find(|call| call.id == *id) {
            known.settled_at = Some(now);
        }
    }

    /// The call a request without a call's name is about: same agent, tool and input. Where the
    /// client has filled in the input since, the tool alone must do.
    pub fn matching(
        &self,
        now: Timestamp,
        agent: &AgentId,
        tool: &str,
        input: Option<&Value>,
    ) -> Match {
        let input = input.map(input_text);
        let of_tool = || {
            let same = |call: &&Call| call.agent == *agent && *call.tool == *tool;
            self.list.iter().rev().filter(same)
        };
        let same_input = |call: &&Call| call.input == input;
        let open = |call: &&Call| call.settled_at.is_none();
        let just_settled = |call: &&Call| {
            let recent = call.settled_at.is_some_and(|at| now.ms_since(at) <= LATE_NEWS_MS);
            recent || (call.settled_at.is_some() && !call.ended)
        };
        if let Some(call) = of_tool().filter(same_input).find(open) {
            return Match::Open(call.id.clone());
        }
        if of_tool().filter(same_input).any(|call| just_settled(&call)) {
            return Match::Settled;
        }
        match of_tool().find(open) {
            Some(call) => Match::Open(call.id.clone()),
            None => Match::Unknown,
        }
    }

    /// It has begun, and what it may wait for is not answered.
    pub fn awaits(&self, id: &str) -> bool {
        self.list.iter().any(|call| call.id.as_str() == id && call.settled_at.is_none())
    }

    /// The time of an agent's end that is told for `at`: after the ends of calls which that one
    /// overtook, being told by a hook that the client waits for, or by a quicker process.
    pub fn after_ends(&self, agent: &AgentId, at: Timestamp) -> Timestamp {
        let ends = self.list.iter().filter(|call| call.agent == *agent && call.ended);
        let overtaken = ends
            .filter(|call| call.started_at <= at)
            .filter_map(|call| call.settled_at)
            .filter(|end| *end >= at && end.ms_since(at) <= LATE_NEWS_MS);
        overtaken.map(|end| end.plus_ms(1)).max().unwrap_or(at)
    }

    pub fn has_ended(&self, id: &str) -> bool {
        self.list.iter().any(|call| call.id.as_str() == id && call.ended)
    }

    pub fn starts_agent(&self, id: &str) -> bool {
        self.list.iter().any(|call| call.id.as_str() == id && starts_agent(&call.tool))
    }

    pub fn any_open(&self, agent: &AgentId) -> bool {
        self.list.iter().any(|call| call.agent == *agent && !call.ended)
    }

    /// The newest call that had begun by then and is not settled: what a dialog is about. A call
    /// that starts a subagent is not asked for; while it is open the dialog is the subagent's.
    pub fn newest_open(&self, by: Timestamp) -> Option<&Call> {
        let waits = |call: &&Call| call.settled_at.is_none() && call.started_at <= by;
        self.list.iter().rev().filter(waits).find(|call| !starts_agent(&call.tool))
    }

    /// A turn of that agent ended: what was open is not any more.
    pub fn close_all(&mut self, now: Timestamp, agent: &AgentId) {
        self.close_until(now, agent, Timestamp(u64::MAX));
    }

    /// A turn of that agent began at `at`. Its first call may be known already: news overtake
    /// each other on a busy machine.
    pub fn close_until(&mut self, now: Timestamp, agent: &AgentId, at: Timestamp) {
        let open = |call: &&mut Call| call.agent == *agent && !call.ended && call.started_at <= at;
        for call in self.list.iter_mut().filter(open) {
            call.settled_at = Some(now);
            call.ended = true;
        }
    }

    pub fn clear(&mut self) {
        self.list.clear();
    }

    fn push(&mut self, call: Call) {
        if self.list.len() == CALLS_MAX {
            let oldest = self.list.iter().position(|call| call.ended).unwrap_or(0);
            self.list.remove(oldest);
        }
        self.list.push(call);
    }
}

/// As it is called since 2.1, and as it was before.
pub fn starts_agent(tool: &str) -> bool {
    matches!(tool, "Agent" | "Task")
}

impl Call {
    pub fn input(&self) -> Option<Arc<str>> {
        self.input.clone()
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub ok: bool,
    pub exit_code: Option<i32>,
}

impl End {
    pub const OK: Self = Self { ok: true, exit_code: None };
    pub const FAILED: Self = Self { ok: false, exit_code: None };

    /// By its result. A command that went on in the background has returned nothing yet.
    pub fn by_result(result: Option<&Value>) -> Self {
        let has_returned = result.is_some_and(|result| {
            result.get("stdout").is_some()
                && result.get("backgroundTaskId").is_none()
                && result.get("interrupted").and_then(Value::as_bool) != Some(true)
        });
        Self { ok: true, exit_code: has_returned.then_some(0) }
    }

    /// By what the model is told of a failure: "Exit code 3" and what was printed.
    pub fn by_error(error: Option<&str>) -> Self {
        let code = error.and_then(|error| error.strip_prefix("Exit code "));
        let code = code.and_then(|code| code.split_whitespace().next()?.parse().ok());
        Self { ok: false, exit_code: code }
    }
}

/// The input as JSON text.
pub fn input_text(input: &Value) -> Arc<str> {
    excerpt::input(&input.to_string())
}

/// What a call is about: the command, the path, the pattern.
pub fn about(input: &Value) -> Option<Arc<str>> {
    const TELLING: [&str; 10] = [
        "command",
        "file_path",
        "notebook_path",
        "path",
        "pattern",
        "url",
        "query",
        "skill",
        "description",
        "subject",
    ];
    TELLING
        .iter()
        .find_map(|key| input.get(key).and_then(Value::as_str))
        .map(|text| head(text, ABOUT_BYTES_MAX).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp(5_000);

    fn calls() -> Calls {
        let mut calls = Calls::default();
        let main = AgentId::MAIN;
        calls.start(NOW, &main, "one", "Bash", Some(&json!({"command": "a"})));
        calls.start(NOW, &main, "two", "Bash", Some(&json!({"command": "b"})));
        calls
    }

    fn check(calls: &Calls, input: &Value, expected: Match) {
        assert_eq!(calls.matching(NOW, &AgentId::MAIN, "Bash", Some(input)), expected);
    }

    #[test]
    fn a_request_belongs_to_the_call_with_its_input() {
        check(&calls(), &json!({"command": "a"}), Match::Open("one".into()));
        check(&calls(), &json!({"command": "b"}), Match::Open("two".into()));
        check(&calls(), &json!({"command": "filled in"}), Match::Open("two".into()));
    }

    #[test]
    fn a_request_overtaken_by_its_result_is_settled() {
        let mut calls = calls();
        calls.end(NOW, &AgentId::MAIN, "one");
        check(&calls, &json!({"command": "a"}), Match::Settled);
    }

    #[test]
    fn another_agents_call_is_not_meant() {
        let other = AgentId::sub("a1");
        assert_eq!(calls().matching(NOW, &other, "Bash", None), Match::Unknown);
    }

    #[test]
    fn a_start_after_the_end_opens_nothing() {
        let mut calls = Calls::default();
        calls.end(NOW, &AgentId::MAIN, "one");
        assert!(!calls.start(NOW, &AgentId::MAIN, "one", "Bash", None));
        assert!(!calls.any_open(&AgentId::MAIN));
    }

    #[test]
    fn an_end_is_not_before_the_ends_of_the_calls_it_overtook() {
        let mut calls = calls();
        let main = AgentId::MAIN;
        calls.end(Timestamp(6_000), &main, "one");
        assert_eq!(calls.after_ends(&main, Timestamp(5_900)), Timestamp(6_001));
        assert_eq!(calls.after_ends(&main, Timestamp(6_100)), Timestamp(6_100));
        assert_eq!(calls.after_ends(&AgentId::sub("a1"), Timestamp(5_900)), Timestamp(5_900));
        // The end of an earlier turn, told late.
        assert_eq!(calls.after_ends(&main, Timestamp(4_999)), Timestamp(4_999));
    }

    #[test]
    fn a_late_prompt_closes_the_calls_before_it_and_leaves_its_own() {
        let mut calls = Calls::default();
        let main = AgentId::MAIN;
        calls.start(Timestamp(1_000), &main, "before", "Bash", None);
        calls.start(Timestamp(3_000), &main, "its own", "Bash", None);
        calls.close_until(NOW, &main, Timestamp(2_000));
        assert!(!calls.awaits("before"));
        assert!(calls.awaits("its own"));
    }

    #[test]
    fn calls_are_bounded_and_the_ended_go_first() {
        let mut calls = Calls::default();
        calls.start(NOW, &AgentId::MAIN, "open", "Bash", None);
        for number in 0..2 * CALLS_MAX {
            calls.end(NOW, &AgentId::MAIN, &number.to_string());
        }
        assert_eq!(calls.list.len(), CALLS_MAX);
        assert!(calls.any_open(&AgentId::MAIN));
    }
}
