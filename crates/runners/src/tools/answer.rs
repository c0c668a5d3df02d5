//! What a tool answers, and how that becomes an outcome.

use qd_session::machine::ToolOutcome;

use super::limits::ANSWER_BYTES_MAX;

/// What the model is given, or why it is not.
pub(crate) type Answer = Result<String, Trouble>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The model can do something about it: it is a result.
    Mistake(String),
    /// There is no result: refused by the sandbox, could not start, lost.
    NoResult(String),
}

impl Trouble {
    pub fn mistake(what: impl Into<String>) -> Self {
        Self::Mistake(what.into())
    }

    pub fn refused(what: impl Into<String>) -> Self {
        Self::NoResult(format!("refused: {}", what.into()))
    }

    pub fn lost(what: impl Into<String>) -> Self {
        Self::NoResult(what.into())
    }
}

pub(super) fn outcome(answer: Answer) -> ToolOutcome {
    match answer {
        Ok(text) => ToolOutcome::Succeeded { output: text.into(), is_error: false },
        Err(Trouble::Mistake(text)) => {
            ToolOutcome::Succeeded { output: text.into(), is_error: true }
        }
        Err(Trouble::NoResult(why)) => ToolOutcome::Failed { error: why.into() },
    }
}

/// Lines that are taken until there is no room; what is left out is counted.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
    left_out: usize,
}

impl Lines {
    /// False once there is no room.
    pub fn push(&mut self, line: &str) -> bool {
        let has_room = self.left_out == 0 && self.text.len() + line.len() < ANSWER_BYTES_MAX;
        match has_room {
            true => {
                self.text.push_str(line);
                self.text.push('\n');
            }
            false => self.left_out += 1,
        }
        has_room
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.left_out == 0
    }

    /// With a note, and nothing said of what did not fit: the note does.
    pub fn shown(mut self, note: String) -> String {
        self.left_out = 0;
        self.finish(Some(note))
    }

    pub fn finish(mut self, note: Option<String>) -> String {
        if self.left_out > 0 {
            self.text.push_str(&format!("[{} more lines left out]\n", self.left_out));
        }
        if let Some(note) = note {
            self.text.push_str(&format!("[{note}]\n"));
        }
        self.text
    }
}
