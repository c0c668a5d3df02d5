//! Errors that an agent says in words, in the place of an answer, and then ends its turn as usual.
//!
//! Copilot does so: `Error: Authentication failed with provider at … (HTTP 401).` and `end_turn`.
//! Recognised by their shape: a chunk that begins as such a notice does, short, with an HTTP status
//! or the words of a failed service in its first line. A model that talks about errors begins its
//! chunks elsewhere, goes on, or shows code.

use qd_session::monitor::{Failure, FailureKind};

use crate::{excerpt, failure_sign};

/// Longest notice, in bytes and in lines. An answer of a model that begins alike is longer.
const NOTICE_BYTES_MAX: usize = 1_000;
const NOTICE_LINES_MAX: usize = 8;

/// How a client begins what it says in its own name.
const ERRORS: [&str; 6] =
    ["error:", "api error:", "fatal error:", "request failed:", "provider error:", "llm error:"];
const REMARKS: [&str; 4] = ["info:", "warning:", "warn:", "note:"];

/// Words for a service that cannot be reached, in an error notice.
const NETWORK: [&str; 8] = [
    "econnrefused",
    "econnreset",
    "enotfound",
    "etimedout",
    "fetch failed",
    "connection error",
    "connection refused",
    "timed out",
];

/// The last error notice of a turn, as it comes in chunks.
#[derive(Debug, Default)]
pub struct ErrorNotice {
    text: Option<String>,
    /// The model has said something of its own since its last call.
    model_spoke: bool,
    /// The last chunk broke off in the middle of a sentence.
    mid_sentence: bool,
}

impl ErrorNotice {
    /// A chunk of what the agent says.
    pub fn hear(&mut self, chunk: &str) {
        let is_beginning = !std::mem::replace(&mut self.mid_sentence, is_broken_off(chunk));
        if is_beginning && begins_as(chunk, &ERRORS) {
            self.text = Some(String::new());
        } else if begins_as(chunk, &REMARKS) {
            self.text = None;
            return;
        }
        match &mut self.text {
            Some(text) if text.len() <= NOTICE_BYTES_MAX => text.push_str(chunk),
            Some(_) => {}
            None => self.model_spoke |= !chunk.trim().is_empty(),
        }
    }

    /// The agent does something else: what it said was not its last word.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Why the turn failed, if its last words are such a notice.
    pub fn failure(&self) -> Option<Failure> {
        let text = self.text.as_deref()?.trim();
        if text.len() > NOTICE_BYTES_MAX
            || text.lines().count() > NOTICE_LINES_MAX
            || text.contains("```")
        {
            return None;
        }
        let first = text.lines().next()?;
        let kind = match status_of(first) {
            Some(status) => {
                failure_sign::of_status(status).unwrap_or_else(|| failure_sign::in_text(first))
            }
            // Without a status only where nobody else has spoken.
            None if self.model_spoke => return None,
            None => kind_in_words(first)?,
        };
        Some(Failure { kind, message: excerpt::last_message(text), resets_at: None })
    }
}

fn is_broken_off(chunk: &str) -> bool {
    let last = chunk.trim_end_matches(' ').chars().next_back();
    last.is_some_and(|letter| letter.is_alphanumeric() || ",;-".contains(letter))
}

/// Behind marks that make it stand out: `[API Error: …]`, `⚠ Error: …`, `**Error:** …`.
fn begins_as(chunk: &str, beginnings: &[&str]) -> bool {
    let chunk = chunk.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    beginnings.iter().any(|wanted| {
        chunk.get(..wanted.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(wanted))
    })
}

/// A status right behind the beginning (`Error: 400 Bad thing`), or named as one (`HTTP 401`).
fn status_of(line: &str) -> Option<i64> {
    let status = failure_sign::status_in(line)?;
    let (before, _) = line.split_once(&status.to_string())?;
    let before = before.trim_end_matches(|letter: char| !letter.is_alphanumeric() && letter != ':');
    let last = before.rsplit(|letter: char| letter.is_whitespace() || letter == '(').next()?;
    let is_named = ["http", "status", "status:", "code", "code:", "error:"]
        .iter()
        .any(|name| last.eq_ignore_ascii_case(name));
    (is_named || before.ends_with(':')).then_some(status)
}

fn kind_in_words(line: &str) -> Option<FailureKind> {
    let lower = line.to_ascii_lowercase();
    if NETWORK.iter().any(|word| lower.contains(word)) {
        return Some(FailureKind::Server);
    }
    failure_sign::in_words(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(chunks: &[&str], expected: Option<FailureKind>) {
        let mut notice = ErrorNotice::default();
        chunks.iter().for_each(|chunk| notice.hear(chunk));
        assert_eq!(notice.failure().map(|failure| failure.kind), expected, "{chunks:?}");
    }

    #[test]
    fn an_error_in_the_place_of_an_answer_is_one() {
        check(
            &[
                "Info: Request failed due to a transient API error. Retrying...",
                "Error: Authentication failed with provider at http://127.0.0.1/v1 (HTTP 401).\n  Check your key.",
            ],
            Some(FailureKind::Auth),
        );
        check(&["Error: 400 Bad thing"], Some(FailureKind::Other));
        check(&["[API Error: 529 Overloaded]"], Some(FailureKind::Server));
        check(&["Error: You have hit your rate limit."], Some(FailureKind::UsageLimit));
        check(&["⚠ Error: connect ECONNREFUSED 127.0.0.1:9"], Some(FailureKind::Server));
        check(&["I read the file.", "Error: status 503"], Some(FailureKind::Server));
    }

    #[test]
    fn a_model_that_talks_about_errors_is_answering() {
        check(&["The server said ", "error: 401, so the key is wrong."], None);
        check(&["Error handling is done: 404 pages are there."], None);
        check(&["I looked. ", "Error: authentication is missing in main.rs"], None);
        check(&["Error: 404 comes from this:\n```\nGET /\n```"], None);
        check(&["Error: the build has 401 warnings"], None);
        check(&["Error: 400 Bad thing", "Info: tried again", "Here it is."], None);
        check(&["Error: in the sense of the word, not a bug"], None);
        check(&[], None);
    }

    #[test]
    fn a_long_text_is_no_notice() {
        let long = format!("Error: 500 {}", "and so on ".repeat(200));
        check(&[&long], None);
    }
}
