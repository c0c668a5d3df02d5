//! Text that is kept long and read seldom, deflated against what texts of its kind have in common.
//!
//! What is packed never leaves the process, so a dictionary may change with every version.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// A packed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    deflated: Box<[u8]>,
    len: usize,
}

/// Packs texts of one kind. It takes a quarter of a megabyte: one is made for many texts and let go.
#[derive(Debug)]
pub struct Press {
    dictionary: &'static [u8],
    deflate: Compress,
    buffer: Vec<u8>,
}

impl Press {
    /// `dictionary` is a text of that kind; what stands at its end is the cheapest to repeat.
    pub fn new(dictionary: &'static str) -> Self {
        let deflate = Compress::new(Compression::default(), false);
        Self { dictionary: dictionary.as_bytes(), deflate, buffer: Vec::new() }
    }

    pub fn pack(&mut self, text: &[u8]) -> Packed {
        self.deflate.reset();
        self.deflate.set_dictionary(self.dictionary).expect("nothing was deflated yet");
        self.buffer.clear();
        loop {
            self.buffer.reserve(text.len() / 2 + 256);
            let read = usize::try_from(self.deflate.total_in()).expect("it is in memory");
            let rest = &text[read..];
            let status = self.deflate.compress_vec(rest, &mut self.buffer, FlushCompress::Finish);
            if status.expect("deflating does not fail") == Status::StreamEnd {
                break;
            }
        }
        Packed { deflated: self.buffer.as_slice().into(), len: text.len() }
    }
}

impl Packed {
    /// The text, as it was given to a [`Press`] with the same dictionary.
    pub fn unpack(&self, dictionary: &'static str) -> Vec<u8> {
        let mut inflate = Decompress::new(false);
        inflate.set_dictionary(dictionary.as_bytes()).expect("nothing was inflated yet");
        let mut text = Vec::with_capacity(self.len);
        let status = inflate.decompress_vec(&self.deflated, &mut text, FlushDecompress::Finish);
        status.expect("we deflated it");
        text
    }

    /// How many bytes it takes.
    pub fn packed_len(&self) -> usize {
        self.deflated.len()
    }

    /// How long the text is.
    pub fn text_len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DICTIONARY: &str =
        r#"{"sessionId":"sess_","title":"","agentState":{"group":"delivered"}}"#;

    #[test]
    fn a_text_comes_back_as_it_was() {
        let mut press = Press::new(DICTIONARY);
        let noise: Vec<u8> =
            (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let long = "a line that repeats\n".repeat(10_000).into_bytes();
        let texts: [&[u8]; 5] = [b"", b"x", DICTIONARY.as_bytes(), &noise, &long];
        for text in texts {
            assert_eq!(press.pack(text).unpack(DICTIONARY), text);
        }
    }

    #[test]
    fn what_the_dictionary_holds_costs_little() {
        let packed = Press::new(DICTIONARY).pack(DICTIONARY.as_bytes());
        assert!(packed.packed_len() < DICTIONARY.len() / 4, "{} bytes", packed.packed_len());
    }
}
