//! Where one agent departs from the others, found by the name it gives itself.

/// What to mind with one agent. An agent nobody knows has none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks {
    /// The replay of a loaded session goes on after the response to `session/load`.
    pub replays_after_load: bool,
    /// Reports a mode change as a message that begins so.
    pub mode_message: Option<&'static str>,
}

/// By a part of the agent's name, in the order they are tried.
const KNOWN: [(&str, Quirks); 1] =
    [("gemini", Quirks { replays_after_load: true, mode_message: Some("[MODE_UPDATE]") })];

impl Quirks {
    pub fn of(agent_name: &str) -> Self {
        let name = agent_name.to_ascii_lowercase();
        KNOWN
            .iter()
            .find(|(part, _)| name.contains(part))
            .map_or_else(Self::default, |(_, quirks)| *quirks)
    }

    /// The mode that a message announces.
    pub fn mode_in(self, text: &str) -> Option<&str> {
        let mode = text.strip_prefix(self.mode_message?)?.trim();
        (!mode.is_empty()).then_some(mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gemini_is_known_by_its_name_and_a_stranger_has_no_quirks() {
        assert!(Quirks::of("gemini-cli").replays_after_load);
        assert_eq!(Quirks::of("@agentclientprotocol/claude-agent-acp"), Quirks::default());
        assert_eq!(Quirks::of("somebody-new"), Quirks::default());
    }

    #[test]
    fn only_an_agent_that_writes_modes_into_messages_is_read_so() {
        assert_eq!(Quirks::of("gemini-cli").mode_in("[MODE_UPDATE] yolo"), Some("yolo"));
        assert_eq!(Quirks::of("gemini-cli").mode_in("The yolo mode"), None);
        assert_eq!(Quirks::default().mode_in("[MODE_UPDATE] yolo"), None);
    }
}
