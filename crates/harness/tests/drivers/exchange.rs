//! One recording and one driver, line by line.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use qd_harness::Direction;
use qd_harness::capture::Recorded;
use qd_harness::driver::{Command, Driver, Launch, Output, Protocol, Report};
use qd_session::decision::{Decision, Scope};
use qd_session::id::CallId;
use qd_session::moment::Timestamp;
use serde_json::Value;

pub struct Exchange {
    driver: Box<dyn Driver>,
    now: Timestamp,
    /// Written by the driver and not yet seen in the recording.
    written: VecDeque<Value>,
    /// Ids of the recording's requests, and ours.
    ids: BTreeMap<String, Value>,
    /// What the agent has asked, by the id of its request.
    pub asked: BTreeMap<String, Asked>,
    /// The story, one word or line for each report that matters.
    pub told: Vec<String>,
    /// What came out of calls, in the order of their ends.
    came_out: Vec<String>,
    pub last_asked: Option<(CallId, bool)>,
}

/// A request of the agent.
pub struct Asked {
    pub call: CallId,
    pub tool: String,
    pub params: Value,
}

/// What a recorded line to the agent was: the operator's will, or the protocol's own course.
pub enum Meant {
    Command(Vec<Command>),
    Course,
    /// Nothing that a driver of ours ever does.
    Skipped,
}

pub fn allow() -> Decision {
    Decision::Allow { input: None, scope: Scope::Once }
}

impl Exchange {
    pub fn start(protocol: Protocol, launch: Launch) -> Self {
        let mut driver = protocol.driver(launch);
        let begin = driver.start();
        let mut exchange = Self {
            driver,
            now: Timestamp::ZERO,
            written: VecDeque::new(),
            ids: BTreeMap::new(),
            asked: BTreeMap::new(),
            told: Vec::new(),
            came_out: Vec::new(),
            last_asked: None,
        };
        exchange.take(begin);
        exchange
    }

    /// Plays a recording; `meaning` says what its own lines meant.
    pub fn play(
        &mut self,
        scenario: &str,
        source: &str,
        meaning: impl Fn(&Value, &Self) -> Meant,
        learn: impl Fn(&Value) -> Option<(String, Asked)>,
    ) {
        self.play_from(scenario, source, meaning, learn, |_| {});
    }

    /// The same, with something to do after each line of the agent.
    pub fn play_from(
        &mut self,
        scenario: &str,
        source: &str,
        meaning: impl Fn(&Value, &Self) -> Meant,
        learn: impl Fn(&Value) -> Option<(String, Asked)>,
        after: impl Fn(&mut Self),
    ) {
        for (at, direction, line) in lines(scenario, source) {
            self.pass_time(at);
            match direction {
                Direction::FromAgent => {
                    if let Some((id, asked)) = learn(&line) {
                        self.asked.insert(id, asked);
                    }
                    let line = self.with_our_id(line);
                    let out = self.driver.handle_line(at, line.to_string().as_bytes());
                    self.take(out);
                    after(self);
                }
                Direction::ToAgent => match meaning(&line, self) {
                    Meant::Skipped => {}
                    Meant::Course => self.compare(scenario, &line),
                    Meant::Command(commands) => {
                        for command in commands {
                            self.command(scenario, &command);
                        }
                        self.compare(scenario, &line);
                    }
                },
            }
        }
    }

    pub fn command(&mut self, scenario: &str, command: &Command) {
        let out = self.driver.command(self.now, command);
        let out = out.unwrap_or_else(|cannot| {
            panic!("{scenario}: {command:?} gives {cannot:?}; {:#?}", self.told)
        });
        self.take(out);
    }

    /// Lets timers fire that are due before `at`.
    pub fn pass_time(&mut self, at: Timestamp) {
        // A timer that is due is gone once it has fired.
        while let Some(due) = self.driver.next_timeout().filter(|due| *due <= at) {
            let out = self.driver.handle_timeout(due);
            self.take(out);
        }
        self.now = at;
    }

    /// Forgets what was written for another way of saying it, such as a command line.
    pub fn forget_written(&mut self) {
        self.written.clear();
    }

    #[track_caller]
    pub fn check(&self, expected: &[&str]) {
        assert_eq!(self.told, expected, "{:#?}", self.told);
        assert!(self.written.is_empty(), "written, and not in the recording: {:?}", self.written);
    }

    #[track_caller]
    pub fn check_came_out(&self, expected: &[&str]) {
        assert_eq!(self.came_out, expected, "{:#?}", self.came_out);
    }

    /// The recording's line is the next that the driver wrote, but for what each client chooses.
    fn compare(&mut self, scenario: &str, line: &Value) {
        let ours = self.written.pop_front().unwrap_or_else(|| {
            panic!("{scenario}: nothing was written for {line}; {:#?}", self.told)
        });
        for id in ["id", "request_id"] {
            if let (Some(theirs), Some(our)) = (line.get(id), ours.get(id)) {
                self.ids.insert(theirs.to_string(), our.clone());
            }
        }
        assert_eq!(plain(ours), plain(line.clone()), "{scenario}");
    }

    /// The agent answers the recording's ids; our driver has its own.
    fn with_our_id(&self, mut line: Value) -> Value {
        let answers = line.get("method").is_none();
        if let Some(id) = line.get_mut("id").filter(|_| answers) {
            *id = self.ids.get(&id.to_string()).cloned().unwrap_or(id.take());
        }
        if let Some(id) = line.pointer_mut("/response/request_id") {
            *id = self.ids.get(&id.to_string()).cloned().unwrap_or(id.take());
        }
        line
    }

    fn take(&mut self, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Write(line) => {
                    self.written.push_back(serde_json::from_str(&line).expect("we write JSON"));
                }
                Output::Report(report) => self.note(&report),
                Output::GiveUp(why) => self.told.push(format!("gives up: {why}")),
                Output::CloseInput => self.told.push("closes".to_owned()),
                Output::Terminate => self.told.push("terminates".to_owned()),
                Output::Start(_) => {}
            }
        }
    }

    fn note(&mut self, report: &Report) {
        let told = match report {
            Report::Ready => "ready".to_owned(),
            Report::Woke => "woke".to_owned(),
            Report::Completed { text, .. } => {
                format!("completed: {}", text.as_deref().unwrap_or(""))
            }
            Report::Failed(trouble) => format!("failed: {:?}", trouble.trouble),
            Report::ToolReported(call) => format!("runs {}", call.name),
            Report::ToolEnded { is_error, output, .. } => {
                self.came_out.extend(output.as_deref().map(str::to_owned));
                (if *is_error { "ended badly" } else { "ended" }).to_owned()
            }
            Report::ApprovalAsked(call) => {
                self.last_asked = Some((call.call_id.clone(), false));
                format!("asks for {}", call.name)
            }
            Report::QuestionAsked(call) => {
                self.last_asked = Some((call.call_id.clone(), true));
                format!("asks by {}", call.name)
            }
            Report::RequestWithdrawn { .. } => "withdrawn".to_owned(),
            Report::BatchHeld => "held".to_owned(),
            Report::ModeChanged { mode } => format!("mode {mode}"),
            Report::Refused { what, .. } => format!("refused {what}"),
            Report::Unrecognised { text } => format!("unrecognised {text}"),
            Report::VendorSession { .. } => "named".to_owned(),
            Report::Delta(_) | Report::Alive | Report::Spent(_) | Report::Version { .. } => return,
        };
        self.told.push(told);
    }
}

fn lines(scenario: &str, source: &str) -> Vec<(Timestamp, Direction, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("captured").join(scenario);
    let text = std::fs::read_to_string(folder.join("signals.jsonl")).expect("a recording");
    let recorded = text.lines().map(|line| serde_json::from_str::<Recorded>(line).expect("a line"));
    let of_source = recorded.filter(|line| line.source() == source);
    of_source
        .filter_map(|line| {
            let signal = line.signal()?;
            let value = serde_json::from_slice(signal.payload).ok()?;
            Some((signal.at, signal.direction, value))
        })
        .collect()
}

/// Without what every client chooses for itself: numbers of requests, its own name.
fn plain(mut line: Value) -> Value {
    if let Some(fields) = line.as_object_mut() {
        if fields.contains_key("method") {
            fields.remove("id");
        }
        if fields.get("type").is_some_and(|kind| kind == "control_request") {
            fields.remove("request_id");
        }
    }
    if let Some(params) = line.get_mut("params").and_then(Value::as_object_mut) {
        params.remove("clientInfo");
        params.remove("excludeTurns");
        let ours = params.get_mut("capabilities").and_then(Value::as_object_mut);
        ours.map(|ours| ours.remove("requiredHumanApproval"));
    }
    // What a person noted beside an answer: we have no place for it.
    if let Some(input) = line.pointer_mut("/response/response/updatedInput") {
        input.as_object_mut().map(|input| input.remove("annotations"));
    }
    if let Some(request) = line.get_mut("request").and_then(Value::as_object_mut) {
        request.retain(|name, value| name != "hooks" || !value.is_null());
    }
    line
}
