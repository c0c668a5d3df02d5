//! A recording played once more: what an agent names once has a new name.
//!
//! Pure. Handlers know a turn or a call by its id and hear of it only once, so a repeated one
//! would be passed over. Sessions keep their names: they go on.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// A payload as of the given round; the first is the recording itself.
pub fn renamed(text: &str, round: u32, sessions: &[String]) -> String {
    if round == 0 {
        return text.to_owned();
    }
    let rename = |found: &Captures<'_>| {
        let id = &found[0];
        if sessions.iter().any(|session| session.contains(id)) {
            return id.to_owned();
        }
        match id.rsplit_once('-') {
            // The end of a UUID: its beginning may tell the order.
            Some((front, end)) => match u64::from_str_radix(end, 16) {
                Ok(number) => format!("{front}-{:012x}", number ^ u64::from(round)),
                Err(_) => id.to_owned(),
            },
            None => format!("{id}r{round}"),
        }
    };
    ID.replace_all(text, rename).into_owned()
}

static ID: LazyLock<Regex> = LazyLock::new(|| {
    let uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    let prefixed = "(?:call|toolu|msg|req|resp|prt|per|que)_[A-Za-z0-9_]+";
    Regex::new(&format!(r"\b(?:{uuid}|{prefixed})\b")).expect("a pattern of ours")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_new_names_and_sessions_keep_theirs() {
        let session = "01a1e08f-df6a-75a2-8f72-0c241f336f4a".to_owned();
        let text = format!("{session} 01a1e08f-df6a-75a2-8f72-0c241f336f4b call_x1 recall_x");
        let again = format!("{session} 01a1e08f-df6a-75a2-8f72-0c241f336f49 call_x1r2 recall_x");
        assert_eq!(renamed(&text, 2, std::slice::from_ref(&session)), again);
        assert_eq!(renamed(&text, 0, &[session]), text);
    }
}
