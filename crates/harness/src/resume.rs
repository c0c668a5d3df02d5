//! The command by which an operator goes on with a session in a terminal.

use crate::Harness;

impl Harness {
    /// None where the product has no such command, or the id could not have come from it: what is
    /// offered for copying must not be able to do anything else.
    pub fn resume_command(self, vendor_id: &str) -> Option<String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if vendor_id.is_empty() || vendor_id.starts_with('-') || !vendor_id.bytes().all(plain) {
            return None;
        }
        let command = match self {
            Self::ClaudeCode => "claude --resume",
            Self::Codex => "codex resume",
            Self::GeminiCli => "gemini --resume",
            Self::Opencode => "opencode --session",
            Self::KiloCode => "kilo --session",
            Self::Cline | Self::Acp | Self::Native => return None,
        };
        Some(format!("{command} {vendor_id}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_product_is_resumed_in_its_own_way() {
        let id = "0199c-a_B";
        let command = |harness: Harness| harness.resume_command(id);
        assert_eq!(command(Harness::ClaudeCode).as_deref(), Some("claude --resume 0199c-a_B"));
        assert_eq!(command(Harness::Codex).as_deref(), Some("codex resume 0199c-a_B"));
        assert_eq!(command(Harness::Acp), None);
    }

    #[test]
    fn an_id_that_is_no_word_is_not_offered() {
        for id in ["", "-x", "a b", "a;b", "$(x)", "a\nb", "../x", "ä"] {
            assert_eq!(Harness::ClaudeCode.resume_command(id), None, "{id:?}");
        }
    }
}
