//! `layers.toml`: the operator's own domain layers.
//!
//! Never an error: what cannot be used is a trouble to be told, and the core's labels show.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use qd_session::operator::layer::{Layers, Trouble};
use rustix::fs::OFlags;

use crate::limits::LAYERS_FILE_BYTES_MAX;
use crate::sources::watch::{Root, Tells};

#[derive(Debug, Default)]
pub struct LayersFile {
    pub layers: Layers,
    pub troubles: Vec<Trouble>,
}

impl LayersFile {
    /// Without a file there are the built-in layers. `home` stands for `~` in its paths.
    pub fn read(path: &Path, home: &Path) -> Self {
        match text(path, LAYERS_FILE_BYTES_MAX) {
            Ok(text) => Self::parsed(&text, home),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::default(),
            Err(error) => Self::unusable(error.to_string()),
        }
    }

    pub fn parsed(text: &str, home: &Path) -> Self {
        match toml_edit::de::from_str(text) {
            Ok(file) => {
                let (layers, troubles) = Layers::of_operator(&file, &home.to_string_lossy());
                Self { layers, troubles }
            }
            Err(error) => {
                let line = error.span().map(|span| text[..span.start].lines().count().max(1));
                let place = line.map_or_else(String::new, |line| format!("line {line}: "));
                Self::unusable(format!("{place}{}", error.message()))
            }
        }
    }

    fn unusable(what: String) -> Self {
        let trouble = Trouble { place: "file".to_owned(), what };
        Self { layers: Layers::default(), troubles: vec![trouble] }
    }

    /// Where to look for a change of it: its folder, which need not be there.
    pub(crate) fn root(path: &Path) -> Root {
        Root {
            path: path.parent().unwrap_or(Path::new("/")).to_owned(),
            enters: |_| false,
            tells: Tells::Changes,
            wants: |file| file.file_name().is_some_and(|name| name == "layers.toml"),
        }
    }
}

/// A pipe in its place would never end: only a file is read, and only so much of it.
pub(crate) fn text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text_with(path, bytes_max, OFlags::empty())
}

pub(crate) fn text_with(path: &Path, bytes_max: u64, how: OFlags) -> io::Result<String> {
    let flags = i32::try_from((OFlags::NONBLOCK | how).bits()).expect("it is a small number");
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    let read = file.take(bytes_max + 1).read_to_string(&mut text)?;
    match read as u64 > bytes_max {
        true => Err(io::Error::other(format!("it is longer than {bytes_max} bytes"))),
        false => Ok(text),
    }
}
