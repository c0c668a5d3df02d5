//! What is written on: how wide it is, and whether it has colours.

use std::io::{self, IsTerminal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paper {
    /// None where lines may have any length: in a file or a pipe.
    pub width: Option<usize>,
    has_colours: bool,
}

impl Paper {
    pub const PLAIN: Self = Self { width: None, has_colours: false };

    /// Standard output, as it is.
    pub fn of_stdout() -> Self {
        if !io::stdout().is_terminal() {
            return Self::PLAIN;
        }
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let size = ratatui::crossterm::terminal::size().ok();
        let width = size.map(|(columns, _)| usize::from(columns)).filter(|width| *width > 0);
        Self { width, has_colours: !no_color }
    }

    pub fn bold(self, text: &str) -> String {
        self.painted("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.painted("2", text)
    }

    /// Something to look at.
    pub fn marked(self, text: &str) -> String {
        self.painted("1;33", text)
    }

    pub fn has_colours(self) -> bool {
        self.has_colours
    }

    fn painted(self, code: &str, text: &str) -> String {
        if self.has_colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    #[cfg(test)]
    pub fn terminal(width: usize) -> Self {
        Self { width: Some(width), has_colours: true }
    }
}
