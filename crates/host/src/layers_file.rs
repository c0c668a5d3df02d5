//! `layers.toml`: the operator's own domain layers.
//!
//! Never an error: what cannot be used is a trouble to be told, and the core's labels show.

use std::io::ErrorKind;
use std::path::Path;

use qd_session::operator::layer::{Layers, Trouble};

use crate::bounded_file::{Links, read_regular_text};

/// Longest file of an operator's layers: a hundred rules with room for comments.
const LAYERS_FILE_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, Default)]
pub struct LayersFile {
    pub layers: Layers,
    pub troubles: Vec<Trouble>,
}

impl LayersFile {
    /// Without a file there are the built-in layers. `home` stands for `~` in its paths.
    pub fn read(path: &Path, home: &Path) -> Self {
        match read_regular_text(path, LAYERS_FILE_BYTES_MAX, Links::Followed) {
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
}
