//! Patterns of an operator: bounded when they are written, linear when they are used.

use regex::{Regex, RegexBuilder};

use crate::limits::{LAYER_PATTERN_BYTES_MAX, LAYER_PATTERN_COMPILED_BYTES_MAX};

/// A path, with `*` for a part of a name, `**` for any folders and `?` for a letter. It has all
/// that lies below it, too.
#[derive(Debug, Clone)]
pub struct Glob(Regex);

impl Glob {
    /// `home` stands for `~` at the beginning.
    pub fn new(path: &str, home: &str) -> Result<Self, String> {
        let full =
            match path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                Some(rest) => format!("{}{rest}", home.trim_end_matches('/')),
                None => path.to_owned(),
            };
        if !full.starts_with(['/', '*']) {
            return Err(format!("`{path}` is no path: begin with /, ~/ or **/"));
        }
        let mut pattern = String::from("(?s)^");
        let mut rest = full.trim_end_matches('/');
        while let Some(letter) = rest.chars().next() {
            let (part, len) = match letter {
                '*' if rest.starts_with("**/") => ("(?:.*/)?".to_owned(), 3),
                '*' if rest.starts_with("**") => (".*".to_owned(), 2),
                '*' => ("[^/]*".to_owned(), 1),
                '?' => ("[^/]".to_owned(), 1),
                other => (regex::escape(&other.to_string()), other.len_utf8()),
            };
            pattern.push_str(&part);
            rest = &rest[len..];
        }
        pattern.push_str("(?:/.*)?$");
        bounded(path).and_then(|_| compiled(&pattern)).map(Self)
    }

    pub fn has(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// A regular expression that is looked for anywhere in a text.
pub fn regex(pattern: &str) -> Result<Regex, String> {
    bounded(pattern).and_then(compiled)
}

pub(crate) fn bounded(pattern: &str) -> Result<&str, String> {
    match pattern.len() <= LAYER_PATTERN_BYTES_MAX {
        true => Ok(pattern),
        false => Err(format!("a pattern is longer than {LAYER_PATTERN_BYTES_MAX} bytes")),
    }
}

pub(crate) fn compiled(pattern: &str) -> Result<Regex, String> {
    let limit = LAYER_PATTERN_COMPILED_BYTES_MAX;
    let built = RegexBuilder::new(pattern).size_limit(limit).dfa_size_limit(limit).build();
    // What it says takes several lines, the last of which is the reason.
    built.map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("the pattern `{pattern}`: {reason}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_what_lies_below_it() {
        for (path, at, has) in [
            ("/w/novel", "/w/novel", true),
            ("/w/novel/", "/w/novel/part-1", true),
            ("/w/novel", "/w/novels", false),
            ("~/work/*", "/home/u/work/acme/api", true),
            ("~/work/*", "/home/u/work", false),
            ("~", "/home/u/x", true),
            ("**/acme", "/a/b/acme/c", true),
            ("/w/**/api", "/w/a/b/api", true),
            ("/w/**/api", "/w/api", true),
            ("/w/?.x", "/w/a.x", true),
            ("/w/?.x", "/w/abx", false),
        ] {
            assert_eq!(Glob::new(path, "/home/u").unwrap().has(at), has, "{path} {at}");
        }
        assert!(Glob::new("novel", "/home/u").is_err());
    }

    #[test]
    fn a_pattern_is_bounded() {
        assert!(regex("a+b").is_ok());
        assert!(regex("(").unwrap_err().contains("unclosed group"));
        assert!(regex(&"a".repeat(LAYER_PATTERN_BYTES_MAX + 1)).is_err());
        assert!(regex("((a{100}){100}){100}").is_err());
    }
}
