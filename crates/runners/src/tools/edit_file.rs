//! `edit_file` and `write_file`.

use memchr::memmem;
use serde::Deserialize;

use super::answer::{Answer, Trouble};
use super::limits::EDIT_BYTES_MAX;
use super::workspace::Workspace;
use super::writing::{Existing, Place};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    path: String,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    path: String,
    content: String,
}

impl EditFile {
    pub fn run(&self, workspace: &Workspace) -> Answer {
        if self.old_text.is_empty() {
            return Err(Trouble::mistake("old_text is empty; write_file makes a new file"));
        }
        if self.old_text == self.new_text {
            return Err(Trouble::mistake("old_text and new_text are the same"));
        }
        let Existing { place, bytes } = Existing::read(workspace, &self.path)?;
        let (old, new, places) = self.found(&bytes);
        let path = &self.path;
        match places.len() {
            0 => Err(Trouble::mistake(format!(
                "old_text does not occur in {path}; read the file and copy it exactly, without line numbers"
            ))),
            many @ 2.. if !self.replace_all => Err(Trouble::mistake(format!(
                "old_text occurs {many} times in {path} (lines {}); add lines around it, or set replace_all",
                line_numbers(&bytes, &places)
            ))),
            many => {
                let edited = replaced(&bytes, &places, old.len(), new.as_bytes());
                if edited.len() as u64 > EDIT_BYTES_MAX {
                    return Err(Trouble::mistake("the file would become too long"));
                }
                place.put(&edited)?;
                let lines = line_numbers(&bytes, &places);
                Ok(format!("{path}: {many} replaced, at lines {lines}\n"))
            }
        }
    }

    /// Where the old text stands. A file whose lines end in CRLF is asked with such ends, too: models
    /// write none.
    fn found(&self, bytes: &[u8]) -> (String, String, Vec<usize>) {
        let places = |old: &str| memmem::find_iter(bytes, old.as_bytes()).collect::<Vec<_>>();
        let plain = places(&self.old_text);
        if plain.is_empty() && memmem::find(bytes, b"\r\n").is_some() {
            let (old, new) = (with_crlf(&self.old_text), with_crlf(&self.new_text));
            let found = places(&old);
            return (old, new, found);
        }
        (self.old_text.clone(), self.new_text.clone(), plain)
    }
}

impl WriteFile {
    pub fn run(&self, workspace: &Workspace) -> Answer {
        if self.content.len() as u64 > EDIT_BYTES_MAX {
            return Err(Trouble::mistake(format!("content has more than {EDIT_BYTES_MAX} bytes")));
        }
        let place = Place::of(workspace, &self.path)?;
        let what = if place.exists() { "replaced" } else { "made" };
        place.put(self.content.as_bytes())?;
        Ok(format!("{}: {what}, {} bytes\n", self.path, self.content.len()))
    }
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn replaced(bytes: &[u8], places: &[usize], old_len: usize, new: &[u8]) -> Vec<u8> {
    let mut edited = Vec::with_capacity(bytes.len() + places.len() * new.len());
    let mut from = 0;
    for place in places {
        edited.extend(&bytes[from..*place]);
        edited.extend(new);
        from = place + old_len;
    }
    edited.extend(&bytes[from..]);
    edited
}

/// The first few of them.
fn line_numbers(bytes: &[u8], places: &[usize]) -> String {
    let number = |place: &usize| 1 + memchr::memchr_iter(b'\n', &bytes[..*place]).count();
    let shown: Vec<String> = places.iter().take(8).map(|place| number(place).to_string()).collect();
    let more = if places.len() > shown.len() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
