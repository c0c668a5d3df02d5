//! Which program an agent is.
//!
//! ```toml
//! [agents.claude-code]
//! program = "/opt/claude/bin/claude"     # else the usual name on PATH
//! arguments = ["--debug"]                # before ours
//! env = ["MY_GATEWAY_KEY"]               # variables beside those that every agent gets
//!
//! [agents.kilo-code]
//! protocol = "json-io"                   # Kilo up to 0.26; newer ones speak ACP
//!
//! [acp.goose]                            # any other agent that speaks ACP
//! command = ["goose", "acp"]
//! ```

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use qd_harness::Harness;
use qd_harness::driver::Protocol;
use rustix::fs::{Access, access};
use serde::Deserialize;

/// ACP agents that an operator can name; a person keeps a handful apart.
const AGENT_PROGRAMS_MAX: usize = 100;

/// What `config.toml` says about them.
#[derive(Debug, Clone, Default)]
pub struct AgentPrograms {
    agents: BTreeMap<Harness, AgentTable>,
    acp: BTreeMap<String, AcpTable>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentTable {
    program: Option<PathBuf>,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    protocol: Option<KiloProtocol>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum KiloProtocol {
    #[serde(rename = "json-io")]
    JsonIo,
    #[serde(rename = "acp")]
    Acp,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcpTable {
    command: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
}

/// The parts of `config.toml` that are ours; others read the rest.
#[derive(Debug, Default, Deserialize)]
struct ConfigFile {
    #[serde(default)]
    agents: BTreeMap<String, AgentTable>,
    #[serde(default)]
    acp: BTreeMap<String, AcpTable>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AgentProgramsInvalid(String);

/// A program that is there, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProgram {
    pub path: PathBuf,
    pub arguments: Vec<String>,
    /// Variables of ours that it gets beside those that every agent does.
    pub env: Vec<String>,
    pub protocol: Protocol,
}

impl AgentPrograms {
    /// Of the text of `config.toml`.
    pub fn parsed(text: &str) -> Result<Self, AgentProgramsInvalid> {
        let wrong = |what: String| Err(AgentProgramsInvalid(what));
        let file: ConfigFile = match toml_edit::de::from_str(text) {
            Ok(file) => file,
            Err(error) => return wrong(error.message().to_owned()),
        };
        if file.acp.len() > AGENT_PROGRAMS_MAX {
            return wrong(format!("more than {AGENT_PROGRAMS_MAX} ACP agents"));
        }
        let mut agents = BTreeMap::new();
        for (name, table) in file.agents {
            match Harness::named(&name).filter(|it| Protocol::program(*it).is_some()) {
                Some(harness) => {
                    if table.protocol.is_some() && harness != Harness::KiloCode {
                        return wrong(format!("[agents.{name}]: only kilo-code has a protocol"));
                    }
                    agents.insert(harness, table);
                }
                None => return wrong(format!("[agents.{name}]: no agent is called so")),
            }
        }
        if let Some((name, _)) = file.acp.iter().find(|(_, table)| table.command.is_empty()) {
            return wrong(format!("[acp.{name}]: its command is empty"));
        }
        Ok(Self { agents, acp: file.acp })
    }

    pub fn acp_names(&self) -> Vec<String> {
        self.acp.keys().cloned().collect()
    }

    /// The program of a harness, or why there is none. `name` says which ACP agent is meant; without
    /// it the only one is.
    pub fn find(
        &self,
        harness: Harness,
        name: Option<&str>,
        path: Option<&OsStr>,
    ) -> Result<AgentProgram, String> {
        if harness == Harness::Acp {
            return self.acp_program(name, path);
        }
        let protocol = Protocol::of(harness).ok_or("it is no program")?;
        let usual = Protocol::program(harness).ok_or("it is no program")?;
        let table = self.agents.get(&harness).cloned().unwrap_or_default();
        let program = table.program.unwrap_or_else(|| usual.into());
        let protocol = match table.protocol {
            Some(KiloProtocol::JsonIo) => Protocol::Kilo,
            Some(KiloProtocol::Acp) | None => protocol,
        };
        let speaks: &[&str] = match protocol {
            Protocol::Acp => Protocol::arguments(harness),
            Protocol::ClaudeCode | Protocol::AppServer | Protocol::Kilo | Protocol::Cline => &[],
        };
        let theirs = speaks.iter().map(|argument| (*argument).to_owned());
        let arguments = table.arguments.into_iter().chain(theirs).collect();
        Ok(AgentProgram { path: found(&program, path)?, arguments, env: table.env, protocol })
    }

    fn acp_program(
        &self,
        name: Option<&str>,
        path: Option<&OsStr>,
    ) -> Result<AgentProgram, String> {
        let known = || self.acp_names().join(", ");
        let found_table = match name {
            Some(name) => self.acp.get(name),
            None => self.acp.values().next().filter(|_| self.acp.len() == 1),
        };
        let Some(table) = found_table else {
            return Err(match (name, self.acp.is_empty()) {
                (_, true) => "no ACP agent is set up: write an [acp.NAME] with its command into \
                              config.toml"
                    .to_owned(),
                (Some(name), false) => {
                    format!("no ACP agent is called {name}; there are {}", known())
                }
                (None, false) => format!("say which ACP agent: {}", known()),
            });
        };
        let (program, arguments) = table.command.split_first().ok_or("its command is empty")?;
        let path = found(Path::new(program), path)?;
        let (arguments, env) = (arguments.to_vec(), table.env.clone());
        Ok(AgentProgram { path, arguments, env, protocol: Protocol::Acp })
    }
}

/// Where a shell would find it.
fn found(program: &Path, path: Option<&OsStr>) -> Result<PathBuf, String> {
    let is_program = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if program.components().count() > 1 {
        let program = program.to_owned();
        let shown = program.display().to_string();
        return Some(program).filter(is_program).ok_or(format!("{shown} is no program"));
    }
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    // A relative folder on PATH would be another one in each workspace.
    let mut files =
        folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(program));
    let shown = program.display();
    files.find(is_program).ok_or_else(|| format!("{shown} is not installed: it is not on PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        AgentPrograms::parsed(text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_mistake_is_named() {
        assert_eq!(wrong("[agents.claud]\n"), "[agents.claud]: no agent is called so");
        assert_eq!(wrong("[acp.x]\ncommand = []"), "[acp.x]: its command is empty");
        let said = wrong("[agents.codex]\nprotocol = \"acp\"");
        assert_eq!(said, "[agents.codex]: only kilo-code has a protocol");
        assert!(wrong("[agents.codex]\nprogramm = \"x\"").contains("programm"));
    }

    #[test]
    fn programs_are_found_on_the_path_or_where_they_are_said_to_be() {
        let programs = AgentPrograms::parsed(
            "[agents.codex]\nprogram = \"/bin/sh\"\narguments = [\"-x\"]\n\
             [agents.kilo-code]\nprogram = \"sh\"\nprotocol = \"json-io\"\n\
             [acp.goose]\ncommand = [\"sh\", \"acp\"]",
        );
        let programs = programs.expect("it is right");
        let path = Some(OsStr::new("relative:/bin"));
        let find = |harness, name| programs.find(harness, name, path);
        let codex = find(Harness::Codex, None).expect("there");
        assert_eq!((codex.path, codex.arguments), ("/bin/sh".into(), vec!["-x".to_owned()]));
        let kilo = find(Harness::KiloCode, None).expect("there");
        assert_eq!((kilo.protocol, kilo.arguments), (Protocol::Kilo, Vec::new()));
        let goose = find(Harness::Acp, Some("goose")).expect("there");
        assert_eq!((goose.protocol, goose.arguments), (Protocol::Acp, vec!["acp".to_owned()]));
        let said = find(Harness::Acp, Some("duck")).expect_err("none");
        assert_eq!(said, "no ACP agent is called duck; there are goose");
        assert_eq!(find(Harness::Acp, None), find(Harness::Acp, Some("goose")));
        let said = find(Harness::Opencode, None).expect_err("none");
        assert_eq!(said, "opencode is not installed: it is not on PATH");
    }

    #[test]
    fn of_several_acp_agents_one_must_be_named() {
        let text = "[acp.goose]\ncommand = [\"sh\"]\n[acp.duck]\ncommand = [\"sh\", \"quack\"]";
        let programs = AgentPrograms::parsed(text).expect("it is right");
        let find = |name| programs.find(Harness::Acp, name, Some(OsStr::new("/bin")));
        assert_eq!(find(None), Err("say which ACP agent: duck, goose".to_owned()));
        assert_eq!(find(Some("duck")).map(|duck| duck.arguments), Ok(vec!["quack".to_owned()]));
    }
}
