//! Numbers and texts as bytes, small numbers in few of them, with a checksum at the end.

use qd_session::fnv::{BASIS, fnv};

#[derive(Debug, Default)]
pub struct Packed {
    out: Vec<u8>,
}

impl Packed {
    pub fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Seven bits a byte, the lowest first; the eighth says that more follow.
    pub fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub fn sealed(mut self) -> Vec<u8> {
        let seal = fnv(BASIS ^ FORMAT, &self.out);
        self.bytes(&seal.to_le_bytes());
        self.out
    }
}

#[derive(Debug)]
pub struct Unpacked<'a> {
    rest: &'a [u8],
}

impl<'a> Unpacked<'a> {
    /// None where a byte is not what it was, or the format another.
    pub fn sealed(bytes: &'a [u8]) -> Option<Self> {
        let (rest, seal) = bytes.split_last_chunk()?;
        (fnv(BASIS ^ FORMAT, rest) == u64::from_le_bytes(*seal)).then_some(Self { rest })
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    pub fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub fn text(&mut self) -> Option<&'a str> {
        let len = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        std::str::from_utf8(text).ok()
    }

    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Of what is packed. Another format has another number: what an older program kept is read from
/// the session files again.
const FORMAT: u64 = 1;
