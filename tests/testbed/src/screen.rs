//! What a terminal shows, and what it answers when a program asks about it.
//!
//! Programs ask where the cursor is and what the terminal can do, and some wait for the answer
//! before they draw.

use std::collections::VecDeque;
use std::num::NonZeroU16;

use crate::limits::TERMINAL_OUTPUT_BYTES_MAX;

pub(crate) struct Screen {
    parser: vt100::Parser<Asked>,
    output: VecDeque<u8>,
}

#[derive(Default)]
struct Asked {
    answers: Vec<u8>,
    title: String,
}

impl Screen {
    pub(crate) fn new(rows: NonZeroU16, columns: NonZeroU16) -> Self {
        let parser = vt100::Parser::new_with_callbacks(rows, columns, 0, Asked::default());
        Self { parser, output: VecDeque::new() }
    }

    /// Shows what the program wrote and returns what the terminal answers.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.output.extend(bytes);
        let surplus = self.output.len().saturating_sub(TERMINAL_OUTPUT_BYTES_MAX);
        self.output.drain(..surplus);
        self.parser.process(bytes);
        std::mem::take(&mut self.parser.callbacks_mut().answers)
    }

    pub(crate) fn resize(&mut self, rows: NonZeroU16, columns: NonZeroU16) {
        self.parser.set_size(rows, columns);
    }

    /// The rows as text, without what is right of the last character.
    pub(crate) fn text(&self) -> String {
        self.parser.screen().contents()
    }

    pub(crate) fn title(&self) -> &str {
        &self.parser.callbacks().title
    }

    /// The last bytes the program wrote, as they came.
    pub(crate) fn output(&self) -> Vec<u8> {
        self.output.iter().copied().collect()
    }
}

impl vt100::Callbacks for Asked {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = String::from_utf8_lossy(title).into_owned();
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _second: Option<u8>,
        parameters: &[&[u16]],
        letter: char,
    ) {
        let parameter = parameters.first().and_then(|values| values.first()).copied();
        match (first, letter, parameter) {
            (None, 'n', Some(5)) => self.answers.extend(b"\x1b[0n"),
            (None, 'n', Some(6)) => {
                let (row, column) = screen.cursor_position();
                self.answers.extend(format!("\x1b[{};{}R", row + 1, column + 1).bytes());
            }
            // A VT220 with colours. What asks for more hears this answer first and goes on.
            (None, 'c', _) => self.answers.extend(b"\x1b[?62;22c"),
            (Some(b'>'), 'c', _) => self.answers.extend(b"\x1b[>0;10;1c"),
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        match parameters {
            [b"10", b"?", ..] => self.answers.extend(b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
            [b"11", b"?", ..] => self.answers.extend(b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
            _ => {}
        }
    }
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Screen({:?})", self.text())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::Screen;
    use crate::limits::TERMINAL_OUTPUT_BYTES_MAX;

    fn screen() -> Screen {
        Screen::new(NonZeroU16::new(4).unwrap(), NonZeroU16::new(20).unwrap())
    }

    #[test]
    fn text_and_title_are_shown() {
        let mut screen = screen();
        assert_eq!(screen.write(b"\x1b]0;acme\x07one\r\n\x1b[3Gtwo"), b"");
        assert_eq!((screen.text().as_str(), screen.title()), ("one\n  two", "acme"));
    }

    #[test]
    fn a_program_hears_where_its_cursor_is() {
        assert_eq!(screen().write(b"ab\r\ncd\x1b[6n"), b"\x1b[2;3R");
    }

    #[test]
    fn a_program_hears_what_the_terminal_is() {
        assert_eq!(screen().write(b"\x1b[?u\x1b[c"), b"\x1b[?62;22c");
        assert_eq!(screen().write(b"\x1b]11;?\x07"), b"\x1b]11;rgb:0000/0000/0000\x1b\\");
    }

    #[test]
    fn output_is_bounded() {
        let mut screen = screen();
        for _ in 0..3 {
            screen.write(&vec![b'x'; TERMINAL_OUTPUT_BYTES_MAX]);
        }
        assert_eq!(screen.output().len(), TERMINAL_OUTPUT_BYTES_MAX);
    }
}
