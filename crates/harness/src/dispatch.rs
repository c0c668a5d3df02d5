//! Which folder answers for a product: the one place that knows all of them.
//!
//! Pure. What the folders share (`driver`, `conversation`, `said`, `usage`, …) lies below them and
//! knows no product by its folder; here each question is handed to the folder that it is about.
//! Invariant: nothing in this crate imports from here, so no two modules need each other.

use serde::de::DeserializeOwned;

use crate::conversation::Form;
use crate::driver::{Driver, Launch, Protocol};
use crate::said::LineReader;
use crate::signal::Handler;
use crate::threshold::Threshold;
use crate::usage::{FileReader, remembered};
use crate::version::Tested;
use crate::{Harness, acp, claude_code, codex, gemini_cli, kilo_cline, native, opencode};

impl Harness {
    /// The versions of it that were tried.
    pub fn tested(self) -> Tested {
        match self {
            Self::ClaudeCode => claude_code::TESTED,
            Self::Codex => codex::TESTED,
            Self::GeminiCli => gemini_cli::TESTED,
            Self::KiloCode => kilo_cline::KILO_TESTED,
            Self::Cline => kilo_cline::CLINE_TESTED,
            Self::Opencode => opencode::TESTED,
            // Any agent may speak ACP, and ours is of this release.
            Self::Acp | Self::Native => Tested(&[]),
        }
    }

    /// A fresh translator for it.
    pub fn handler(self) -> Box<dyn Handler + Send> {
        match self {
            Self::ClaudeCode => Box::new(Threshold::of(claude_code::Handler::default())),
            Self::Codex => Box::new(Threshold::of(codex::Handler::default())),
            Self::GeminiCli => Box::new(Threshold::of(gemini_cli::Handler::default())),
            Self::KiloCode | Self::Cline => Box::new(Threshold::of(kilo_cline::Handler::default())),
            Self::Opencode => Box::new(Threshold::of(opencode::Handler::default())),
            Self::Acp => Box::new(Threshold::of(acp::Handler::default())),
            Self::Native => Box::new(native::Handler),
        }
    }

    /// How its transcripts are read; none for a client that writes no file of its own.
    pub fn transcript_form(self) -> Option<Form> {
        match self {
            Self::ClaudeCode => Some(Form::Lines(claude_code::conversation)),
            Self::Codex => Some(Form::Lines(codex::conversation)),
            Self::GeminiCli => Some(Form::Whole),
            Self::Opencode => Some(Form::Rows),
            Self::KiloCode | Self::Cline | Self::Acp | Self::Native => None,
        }
    }

    /// What finds the prompts and answers in its session files; none for a client whose files
    /// cannot be searched.
    pub fn said_reader(self) -> Option<LineReader> {
        match self {
            Self::ClaudeCode => Some(claude_code::said_in),
            Self::Codex => Some(codex::said_in),
            Self::GeminiCli => Some(gemini_cli::said_in),
            Self::KiloCode | Self::Cline | Self::Opencode | Self::Acp | Self::Native => None,
        }
    }

    /// What counts the tokens in its session files: for a file from its beginning, or from where a
    /// reader with this memory stopped. None for a client whose files do not tell.
    pub fn usage_reader(self, memory: Option<&str>) -> Option<Box<dyn FileReader>> {
        match self {
            Self::ClaudeCode => Some(resumed::<claude_code::usage::Transcript>(memory)),
            Self::Codex => Some(resumed::<codex::usage::Rollout>(memory)),
            Self::GeminiCli => Some(resumed::<gemini_cli::usage::ChatFile>(memory)),
            Self::KiloCode | Self::Cline | Self::Opencode | Self::Acp | Self::Native => None,
        }
    }
}

fn resumed<T>(memory: Option<&str>) -> Box<dyn FileReader>
where
    T: FileReader + Default + DeserializeOwned + 'static,
{
    Box::new(remembered::<T>(memory))
}

impl Protocol {
    /// A fresh driver for one session.
    pub fn driver(self, launch: Launch) -> Box<dyn Driver> {
        match self {
            Self::ClaudeCode => Box::new(claude_code::Driver::new(launch)),
            Self::AppServer => Box::new(codex::Driver::new(launch)),
            Self::Acp => Box::new(acp::Driver::new(launch)),
            Self::Kilo => Box::new(kilo_cline::KiloDriver::new(launch)),
            Self::Cline => Box::new(kilo_cline::ClineDriver::new(launch)),
        }
    }

    /// Variables that make a product ask whatever its own settings let pass: a rule can hold only
    /// where it is asked.
    pub fn variables(self, harness: Harness) -> Vec<(&'static str, String)> {
        match (self, harness) {
            (Self::Acp, Harness::Opencode) => opencode::asking(opencode::Product::Opencode),
            (Self::Acp, Harness::KiloCode) => opencode::asking(opencode::Product::Kilo),
            (Self::ClaudeCode | Self::AppServer | Self::Acp | Self::Kilo | Self::Cline, _) => {
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use qd_session::moment::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::driver::{Output, Report};

    /// What a driver does when its agent has answered the first thing that was asked of it.
    fn greeted(
        protocol: Protocol,
        harness: Harness,
        answer: impl Fn(&Value) -> Value,
    ) -> Vec<Output> {
        let tested = Some((harness.display_name(), harness.tested()));
        let mut driver = protocol.driver(Launch { tested, ..Launch::default() });
        let asked = driver.start().into_iter().find_map(|output| match output {
            Output::Write(line) => serde_json::from_str::<Value>(&line).ok(),
            Output::Start(_)
            | Output::CloseInput
            | Output::Terminate
            | Output::Report(_)
            | Output::GiveUp(_) => None,
        });
        let answer = answer(&asked.expect("a greeting"));
        driver.handle_line(Timestamp(0), answer.to_string().as_bytes())
    }

    fn check(protocol: Protocol, harness: Harness, answer: impl Fn(&Value, &str) -> Value) {
        let (_, newest) = *harness.tested().0.last().expect("a range");
        let out = greeted(protocol, harness, |asked| answer(asked, newest));
        let told = Output::Report(Report::Version { version: newest.into() });
        assert!(out.contains(&told), "{harness:?}: {out:?}");
        let out = greeted(protocol, harness, |asked| answer(asked, "77.0.0"));
        let why = harness.tested().refusal(harness.display_name(), "77.0.0").expect("a refusal");
        assert_eq!(out, [Output::GiveUp(why.into())], "{harness:?}");
    }

    #[test]
    fn an_unknown_major_version_is_not_driven() {
        check(Protocol::AppServer, Harness::Codex, |asked, version| {
            let agent = format!("quarterdeck/{version} (Debian 12.0.0; x86_64) xterm");
            json!({ "id": asked["id"], "result": { "userAgent": agent } })
        });
        check(Protocol::Acp, Harness::GeminiCli, |asked, version| {
            let info = json!({ "name": "gemini-cli", "version": version });
            json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "agentInfo": info } })
        });
        check(Protocol::ClaudeCode, Harness::ClaudeCode, |asked, version| {
            let response = json!({ "subtype": "success", "request_id": asked["request_id"],
                "response": { "claude_code_version": version } });
            json!({ "type": "control_response", "response": response })
        });
    }
}
