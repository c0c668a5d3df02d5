//! The tool calls of one session, put together from sources that name them differently.
//!
//! The stream and the chat file have the model's call id, hooks and telemetry only the tool and its
//! input. A call keeps the id under which it was first heard of.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use qd_session::id::{CallId, ToolName};
use qd_session::monitor::Fact;
use serde_json::Value;

use crate::excerpt;

/// Most calls remembered, ended ones included: the chat file repeats old ones when it is
/// rewritten. The oldest goes first.
const CALLS_MAX: usize = 128;

/// Tools that hand the work to a subagent, whose own calls come under the same session id.
const DELEGATING: [&str; 6] = [
    "invoke_agent",
    "delegate_to_agent",
    "codebase_investigator",
    "browser_agent",
    "generalist",
    "cli_help",
];

/// Who tells of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Teller {
    Hook,
    Stream,
    Chat,
    Telemetry,
}

/// A call as one source describes it.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    pub teller: Teller,
    /// The model's own id of the call.
    pub vendor: Option<&'a str>,
    pub tool: &'a str,
    pub input: Option<&'a Value>,
}

#[derive(Debug)]
pub struct Call {
    pub id: CallId,
    vendor: Option<String>,
    pub tool: String,
    input: Option<u64>,
    /// The command or the path it is about.
    subject: Option<Arc<str>>,
    begun_by: [bool; 4],
    ended_by: [bool; 4],
    pub ended: bool,
    /// Its result went to the model.
    pub delivered: bool,
}

#[derive(Debug, Default)]
pub struct Calls {
    list: Vec<Call>,
}

impl Calls {
    /// A call begins, or another source tells of it. `id` names it where the vendor does not.
    pub fn begin(&mut self, told: Described<'_>, id: impl FnOnce() -> String) -> &mut Call {
        let at = self.begun(told).unwrap_or_else(|| {
            if self.list.len() == CALLS_MAX {
                self.list.remove(0);
            }
            let id = told.vendor.map_or_else(id, str::to_owned);
            self.list.push(Call::new(CallId::new(id), told.tool));
            self.list.len() - 1
        });
        let call = &mut self.list[at];
        call.learn(told);
        call.begun_by[told.teller as usize] = true;
        call
    }

    fn begun(&self, told: Described<'_>) -> Option<usize> {
        let news = |call: &Call| !call.begun_by[told.teller as usize];
        self.by_vendor(told)
            .or_else(|| self.matching(told, |call| news(call) && !call.ended))
            // A hook that was overtaken by the stream tells of a call that is over by now.
            .or_else(|| {
                let streamed = |call: &Call| call.is_begun_by(Teller::Stream);
                self.matching(told, |call| news(call) && streamed(call) && told.input.is_some())
            })
    }

    /// A call is over. None if nobody has heard of it.
    pub fn end(&mut self, told: Described<'_>) -> Option<&mut Call> {
        let teller = told.teller as usize;
        let at = self
            .by_vendor(told)
            .or_else(|| self.matching(told, |call| !call.ended && !call.ended_by[teller]))
            .or_else(|| self.matching(told, |call| !call.ended_by[teller]))?;
        let call = &mut self.list[at];
        call.learn(told);
        call.ended = true;
        call.ended_by[teller] = true;
        Some(call)
    }

    fn by_vendor(&self, told: Described<'_>) -> Option<usize> {
        let vendor = told.vendor?;
        self.list.iter().position(|call| call.is_named(vendor))
    }

    /// The oldest with the same tool and input, as far as the input is known.
    fn matching(&self, told: Described<'_>, may: impl Fn(&Call) -> bool) -> Option<usize> {
        let free = |call: &Call| {
            let named_otherwise = call.vendor.is_some() && told.vendor.is_some();
            call.tool == told.tool && !named_otherwise && may(call)
        };
        let input = told.input.map(fingerprint);
        let candidates: Vec<usize> =
            (0..self.list.len()).filter(|at| free(&self.list[*at])).collect();
        match (candidates.as_slice(), input) {
            (_, None) => candidates.first().copied(),
            ([only], Some(_)) if self.list[*only].input.is_none() => Some(*only),
            (_, Some(_)) => candidates.into_iter().find(|at| self.list[*at].input == input),
        }
    }

    pub fn by_id(&mut self, id: &CallId) -> Option<&mut Call> {
        self.list.iter_mut().find(|call| call.id == *id)
    }

    /// The model has the results of these calls, by its own ids; true if that is news of any.
    pub fn deliver(&mut self, vendors: &[&str]) -> bool {
        let mut news = false;
        for vendor in vendors {
            let call = self.list.iter_mut().find(|call| call.is_named(vendor));
            news |= call.is_none_or(|call| !std::mem::replace(&mut call.delivered, true));
        }
        news
    }

    /// The call that a permission dialog holds up: by what it shows, else the newest open one.
    pub fn held_up(&mut self, details: &Value) -> Option<&mut Call> {
        let shown = ["command", "filePath", "toolName"];
        let shown: Vec<&str> =
            shown.iter().filter_map(|name| details.get(name)?.as_str()).collect();
        let about = |call: &Call| {
            shown.iter().any(|text| call.subject.as_deref() == Some(*text) || call.tool == *text)
        };
        let at = self.list.iter().rposition(|call| !call.ended && about(call));
        let at = at.or_else(|| self.list.iter().rposition(|call| !call.ended))?;
        Some(&mut self.list[at])
    }

    pub fn open(&self) -> impl Iterator<Item = &Call> {
        self.list.iter().filter(|call| !call.ended)
    }

    pub fn delegates(&self) -> bool {
        self.open().any(Call::delegates)
    }

    /// Nothing runs any more.
    pub fn settle(&mut self) {
        self.list.iter_mut().for_each(|call| call.ended = true);
    }
}

impl Call {
    fn new(id: CallId, tool: &str) -> Self {
        Self {
            id,
            vendor: None,
            tool: tool.to_owned(),
            input: None,
            subject: None,
            begun_by: [false; 4],
            ended_by: [false; 4],
            ended: false,
            delivered: false,
        }
    }

    fn learn(&mut self, told: Described<'_>) {
        if let Some(vendor) = told.vendor {
            self.vendor = Some(vendor.to_owned());
        }
        if let Some(input) = told.input {
            self.input.get_or_insert_with(|| fingerprint(input));
            self.subject = self.subject.take().or_else(|| subject(input));
        }
    }

    fn is_named(&self, vendor: &str) -> bool {
        self.vendor.as_deref() == Some(vendor) || self.id.as_str() == vendor
    }

    pub fn is_begun_by(&self, teller: Teller) -> bool {
        self.begun_by[teller as usize]
    }

    pub fn delegates(&self) -> bool {
        DELEGATING.contains(&self.tool.as_str())
    }

    pub fn started(&self) -> Fact {
        Fact::ToolStarted {
            call: self.id.clone(),
            tool: ToolName::new(self.tool.as_str()),
            about: self.subject.as_deref().and_then(excerpt::about),
        }
    }

    pub fn completed(&self, ok: bool) -> Fact {
        Fact::ToolCompleted { call: self.id.clone(), ok, exit_code: None }
    }
}

/// Objects are kept in the order of their keys, so the same input gives the same number.
pub fn fingerprint(input: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    input.to_string().hash(&mut hasher);
    hasher.finish()
}

fn subject(input: &Value) -> Option<Arc<str>> {
    let told = [
        "command",
        "file_path",
        "absolute_path",
        "dir_path",
        "path",
        "url",
        "query",
        "pattern",
        "prompt",
        "plan_filename",
        "agent_name",
    ];
    let text = told.iter().find_map(|name| input.get(name)?.as_str())?;
    Some(excerpt::input(text))
}
