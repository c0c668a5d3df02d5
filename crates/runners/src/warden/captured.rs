//! What a program said, bounded: its beginning and its end.

use std::collections::VecDeque;

/// Keeps the first and the last bytes of what is said, however much that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
    left_out: u64,
}

impl Captured {
    pub fn new(head_max: usize, tail_max: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), head_max, tail_max, left_out: 0 }
    }

    pub fn take(&mut self, bytes: &[u8]) {
        let room = self.head_max.saturating_sub(self.head.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend(first);
        // Of a long piece only its end can stay.
        let skipped = rest.len().saturating_sub(self.tail_max);
        self.tail.extend(&rest[skipped..]);
        let over = self.tail.len().saturating_sub(self.tail_max);
        self.tail.drain(..over);
        self.left_out += (skipped + over) as u64;
    }

    /// As text, with a line where something was left out.
    pub fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.left_out == 0 {
            return readable(&[&self.head[..], &tail].concat());
        }
        let (head, tail) = (whole_end(&self.head), whole_start(&tail));
        let lost = (self.head.len() - head.len() + self.tail.len() - tail.len()) as u64;
        format!(
            "{}\n[… {} bytes left out …]\n{}",
            readable(head),
            self.left_out + lost,
            readable(tail)
        )
    }
}

/// Text that anybody can be shown: what is no text, and what would steer a terminal, is marked.
pub(crate) fn readable(bytes: &[u8]) -> String {
    let mark = |letter: char| match letter {
        '\n' | '\t' | '\r' => letter,
        _ if letter.is_control() => char::REPLACEMENT_CHARACTER,
        _ => letter,
    };
    String::from_utf8_lossy(bytes).chars().map(mark).collect()
}

/// Without the letter that was cut in two.
fn whole_end(bytes: &[u8]) -> &[u8] {
    let start = bytes.len().saturating_sub(4);
    match str::from_utf8(&bytes[start..]) {
        Err(error) if error.error_len().is_none() => &bytes[..start + error.valid_up_to()],
        Ok(_) | Err(_) => bytes,
    }
}

fn whole_start(bytes: &[u8]) -> &[u8] {
    let continues = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    &bytes[bytes.iter().take(3).take_while(continues).count()..]
}
