//! Sentences: prose cut at its full stops, in a form in which phrases are easy to find.
//!
//! Pure. A phrase is a short notation for a few words; see [`Sentence::says`].

use super::masking::{PLACEHOLDER, mask};
use super::words;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Question,
    Stop,
    Ellipsis,
    Colon,
    Absent,
}

#[derive(Debug)]
pub struct Sentence {
    /// Lower-case words, placeholders and clause marks.
    words: Vec<String>,
    joined: String,
    pub mark: Mark,
}

impl Sentence {
    fn new(text: &[char], mark: Mark) -> Self {
        let words = words_of(text);
        let joined = words.join(" ");
        Self { words, joined, mark }
    }

    /// Whether the phrase occurs. `a .. b` is a followed later by b, `^a` is a at the start of a
    /// clause, `a*b` is any word that begins and ends so, `*b` one with something before b. Scripts without word spaces
    /// match anywhere.
    pub fn says(&self, phrase: &str) -> bool {
        let mut from = Place::default();
        phrase.split(" .. ").all(|part| match self.find(part, from) {
            Some(end) => {
                from = end;
                true
            }
            None => false,
        })
    }

    pub fn says_any(&self, phrases: &[&str]) -> bool {
        // Most messages are plain English, and most phrases are not.
        let plain = self.joined.is_ascii();
        phrases.iter().any(|phrase| (!plain || phrase.is_ascii()) && self.says(phrase))
    }

    /// Whether the sentence begins with one of the phrases.
    pub fn opens_with(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| match is_unspaced(phrase) {
            true => self.joined.starts_with(phrase),
            false => self.matches_at(0, phrase).is_some(),
        })
    }

    /// The first two words of each clause.
    pub fn clause_openings(&self) -> impl Iterator<Item = (&str, &str)> {
        let pair = |at: usize| (self.words[at].as_str(), self.words[at + 1].as_str());
        (0..self.words.len().saturating_sub(1))
            .filter(|at| starts_clause(&self.words[..*at]))
            .map(pair)
    }

    /// Whether both begin with the same two letters.
    pub fn opens_like(&self, other: &Self) -> bool {
        let opening = |said: &Self| said.joined.chars().take(2).collect::<String>();
        opening(self) == opening(other)
    }

    pub fn word_count(&self) -> usize {
        self.words.iter().filter(|word| is_spoken(word)).count()
    }

    pub fn is_unspaced(&self) -> bool {
        is_unspaced(&self.joined) || self.words.iter().any(|word| is_unspaced(word))
    }

    pub fn last_word(&self) -> &str {
        self.words.last().map_or("", String::as_str)
    }

    /// The parts between semicolons, colons and dashes, as sentences of their own.
    pub fn clauses(&self) -> Vec<Self> {
        let parts = self.words.split(|word| matches!(word.as_str(), ";" | ":" | "—"));
        let clause = |words: &[String]| Self {
            words: words.to_vec(),
            joined: words.join(" "),
            mark: self.mark,
        };
        parts.map(clause).collect()
    }

    /// The rest after the words of this kind that it opens with.
    pub fn without_opening(&self, words: &[&str]) -> Self {
        let opening = self.words.iter().take_while(|word| words.contains(&word.as_str())).count();
        let rest = self.words[opening..].to_vec();
        Self { joined: rest.join(" "), words: rest, mark: self.mark }
    }

    /// Where the part of a phrase ends, when it occurs at or after a place.
    fn find(&self, part: &str, from: Place) -> Option<Place> {
        let (clause_start, part) = match part.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, part),
        };
        if is_unspaced(part) {
            if clause_start {
                let at =
                    (from.word..self.words.len()).find(|at| self.words[*at].starts_with(part))?;
                let before: usize = self.words[..at].iter().map(|word| word.len() + 1).sum();
                return Some(Place { word: at + 1, byte: before + part.len() });
            }
            let at = self.joined[from.byte..].find(part)?;
            return Some(Place { byte: from.byte + at + part.len(), ..from });
        }
        if !part.contains('*') && !self.joined.contains(part) {
            return None;
        }
        (from.word..self.words.len())
            .filter(|at| !clause_start || starts_clause(&self.words[..*at]))
            .find_map(|at| self.matches_at(at, part))
            .map(|word| Place { word, ..from })
    }

    /// The place after the phrase, when it stands exactly here.
    fn matches_at(&self, at: usize, phrase: &str) -> Option<usize> {
        let mut next = at;
        for expected in phrase.split(' ') {
            let word = self.words.get(next)?;
            let same = match expected.split_once('*') {
                Some((start, end)) => {
                    // An ending alone is a word of its own: "de" is no verb in "-de".
                    word.len() >= start.len() + end.len()
                        && word != end
                        && word.starts_with(start)
                        && word.ends_with(end)
                }
                None => word == expected,
            };
            if !same {
                return None;
            }
            next += 1;
        }
        Some(next)
    }
}

/// How far a phrase has been followed: in words, or in bytes where words are not spaced.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    word: usize,
    byte: usize,
}

fn starts_clause(before: &[String]) -> bool {
    before.last().is_none_or(|word| words::JOINTS.contains(&word.as_str()))
}

fn is_spoken(word: &str) -> bool {
    word.chars().any(|c| c.is_alphanumeric() || c == PLACEHOLDER)
}

/// Chinese, Japanese, Korean and Hindi phrases are matched without regard to spaces.
fn is_unspaced(phrase: &str) -> bool {
    phrase.chars().next().is_some_and(is_unspaced_letter)
}

pub fn is_unspaced_letter(c: char) -> bool {
    matches!(c, '\u{0900}'..='\u{0963}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// Cuts prose into sentences.
pub fn split(raw: &str) -> Vec<Sentence> {
    let masked: Vec<char> = mask(raw).chars().collect();
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < masked.len() {
        match mark_at(&masked, at) {
            Some((mark, end)) => {
                push(&mut sentences, &masked[start..end], mark);
                start = end;
                at = end;
            }
            None => at += 1,
        }
    }
    let rest = &masked[start..];
    let ends_in_colon =
        rest.iter().rev().find(|c| !c.is_whitespace()).is_some_and(|c| matches!(c, ':' | '：'));
    push(&mut sentences, rest, if ends_in_colon { Mark::Colon } else { Mark::Absent });
    sentences
}

fn push(sentences: &mut Vec<Sentence>, text: &[char], mark: Mark) {
    let mut sentence = Sentence::new(text, mark);
    if mark == Mark::Stop
        && words::QUESTION_ENDINGS.iter().any(|ending| sentence.joined.ends_with(ending))
    {
        sentence.mark = Mark::Question;
    }
    if sentence.word_count() > 0 {
        sentences.push(sentence);
    }
}

/// The end mark at a place, and where the sentence ends with it.
fn mark_at(text: &[char], at: usize) -> Option<(Mark, usize)> {
    let is_stop =
        |c: &char| matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '।' | '؟' | '．');
    if !is_stop(&text[at]) {
        return None;
    }
    let run = text[at..].iter().take_while(|c| is_stop(c)).count();
    let marks = &text[at..at + run];
    let closers =
        text[at + run..].iter().take_while(|c| matches!(c, ')' | '）' | '"' | '”' | '」')).count();
    let end = at + run + closers;
    let wide = marks.iter().any(|c| !matches!(c, '.' | '!' | '?'));
    if !wide && text.get(end).is_some_and(|c| !c.is_whitespace()) {
        return None;
    }
    if marks == ['.'] && is_abbreviated(&text[..at]) {
        return None;
    }
    let question = marks.iter().any(|c| matches!(c, '?' | '？' | '؟'));
    let ellipsis = marks.contains(&'…') || marks.starts_with(&['.', '.']);
    let mark = match (question, ellipsis) {
        (true, _) => Mark::Question,
        (false, true) => Mark::Ellipsis,
        (false, false) => Mark::Stop,
    };
    Some((mark, end))
}

fn is_abbreviated(before: &[char]) -> bool {
    const ABBREVIATIONS: &[&str] =
        &["e.g", "i.e", "vs", "z.b", "d.h", "bzw", "ca", "nr", "no", "p.ej", "approx"];
    let word: Vec<char> =
        before.iter().rev().take_while(|c| !c.is_whitespace() && **c != '(').copied().collect();
    let word: String = word.iter().rev().flat_map(|c| c.to_lowercase()).collect();
    // "no." is also the whole answer.
    ABBREVIATIONS.contains(&word.as_str()) && before.len() > word.len() && word != "no"
}

/// The words and clause marks of a sentence, in lower case.
fn words_of(text: &[char]) -> Vec<String> {
    let mut out = String::new();
    for c in text {
        match *c {
            '’' => out.push('\''),
            ',' | '，' | '、' => out.push_str(" , "),
            ';' | '；' => out.push_str(" ; "),
            ':' | '：' => out.push_str(" : "),
            '—' | '–' => out.push_str(" — "),
            '(' | '（' => out.push_str(" ( "),
            ')' | '）' => out.push_str(" ) "),
            PLACEHOLDER => out.push_str(" □ "),
            c if is_word_letter(c) => out.extend(c.to_lowercase()),
            _ => out.push(' '),
        }
    }
    let dash = |word: &str| matches!(word, "-" | "--").then(|| "—".to_string());
    out.split_whitespace().map(|word| dash(word).unwrap_or_else(|| word.to_string())).collect()
}

fn is_word_letter(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\'' | '-' | '_' | '+') || is_unspaced_letter(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(text: &str) -> Sentence {
        let mut sentences = split(text);
        assert_eq!(sentences.len(), 1, "{text}");
        sentences.remove(0)
    }

    /// Sentences as words, each with its mark.
    #[track_caller]
    fn cut(text: &str, expected: &[(&str, Mark)]) {
        let found = split(text);
        let found: Vec<(&str, Mark)> =
            found.iter().map(|said| (said.joined.as_str(), said.mark)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn prose_is_cut_at_its_marks() {
        use Mark::{Absent, Colon, Ellipsis, Question, Stop};
        cut(
            "One. Two! Three? Four",
            &[("one", Stop), ("two", Stop), ("three", Question), ("four", Absent)],
        );
        cut("Really?! Yes...", &[("really", Question), ("yes", Ellipsis)]);
        cut("Wait… no.", &[("wait", Ellipsis), ("no", Stop)]);
        cut("As follows:", &[("as follows :", Colon)]);
        cut("如下：", &[("如下 :", Colon)]);
        cut("As follows:  ", &[("as follows :", Colon)]);
        cut("It is (so.) Next one.", &[("it is ( so )", Stop), ("next one", Stop)]);
        // Neither a version nor a file name ends a sentence.
        cut("Use v1.2 of a.rs here.", &[("use v1 2 of a rs here", Stop)]);
        // Where words are not spaced, marks are not either.
        cut("好的。下一步？完", &[("好的", Stop), ("下一步", Question), ("完", Absent)]);
        cut("ठीक है। आगे", &[("ठीक है", Stop), ("आगे", Absent)]);
        cut(" ... 🎉 ", &[]);
        cut("没问题吗。", &[("没问题吗", Question)]);
    }

    #[test]
    fn abbreviations_do_not_end_a_sentence() {
        use Mark::Stop;
        cut("Some, e.g. this one.", &[("some , e g this one", Stop)]);
        cut("One (e.g. this) two.", &[("one ( e g this ) two", Stop)]);
        cut("Ist es z.B. so.", &[("ist es z b so", Stop)]);
        cut("The answer is no. It is.", &[("the answer is no", Stop), ("it is", Stop)]);
        cut("vs. the other.", &[("vs", Stop), ("the other", Stop)]);
    }

    #[test]
    fn words_keep_their_joints() {
        let joined = |text: &str| sentence(text).joined;
        assert_eq!(
            joined("It’s well-known, a_b+c; so: this — and that"),
            "it's well-known , a_b+c ; so : this — and that"
        );
        assert_eq!(joined("one - two -- three – four"), "one — two — three — four");
        assert_eq!(joined("它，和、它；然后"), "它 , 和 , 它 ; 然后");
        assert_eq!(joined("它（是）"), "它 ( 是 )");
        assert_eq!(joined("use `a b` now"), "use □ now");
    }

    #[test]
    fn phrases_are_found() {
        let said = sentence("I checked it twice, and I'll run the tests once you agree");
        for phrase in [
            "i checked",
            "it .. tests",
            "i'll .. once you",
            "^and i'll",
            "^i'll",
            "^i checked",
            "ch*ed it",
            "i'll ru*",
            "*ing it",
        ] {
            let expected = phrase != "*ing it";
            assert_eq!(said.says(phrase), expected, "{phrase}");
        }
        for phrase in [
            "tests .. it",
            "^it",
            "^run",
            "heck",
            "checked twice",
            "once .. once",
            "agree you",
            "ch*ched it",
            "t*twice",
            "*twice",
            "agree .. you",
            "you agree now",
        ] {
            assert!(!said.says(phrase), "{phrase}");
        }
        assert!(said.opens_with(&["you", "i checked"]));
        assert!(!said.opens_with(&["checked", "i check"]));
        assert!(said.says_any(&["我", "twice"]) && !said.says_any(&["我", "thrice"]));
    }

    #[test]
    fn unspaced_phrases_are_found_anywhere() {
        let said = sentence("我已经检查了, 请告诉我结果");
        for phrase in ["检查", "检查 .. 结果", "^请告诉", "^我已", "^请告诉 .. 结果"]
        {
            assert!(said.says(phrase), "{phrase}");
        }
        for phrase in [
            "结果 .. 检查",
            "^告诉",
            "结果 .. 结果",
            "^请告诉 .. 检查",
            "^请告诉 .. 请",
            "^请 .. ^请",
        ] {
            assert!(!said.says(phrase), "{phrase}");
        }
        assert!(said.opens_with(&["我已经"]) && !said.opens_with(&["检查"]));
        assert!(said.is_unspaced());
        assert!(sentence("see 检查 now").is_unspaced());
        assert!(!sentence("see it now").is_unspaced());
    }

    #[test]
    fn words_are_counted_without_marks() {
        assert_eq!(sentence("one , two — (three) `four`").word_count(), 4);
        assert_eq!(sentence("one two, three").last_word(), "three");
    }

    #[test]
    fn a_sentence_has_clauses_and_an_opening() {
        let said = sentence("now, then run it; and test it");
        let clauses: Vec<String> = said.clauses().into_iter().map(|clause| clause.joined).collect();
        assert_eq!(clauses, ["now , then run it", "and test it"]);
        assert_eq!(said.without_opening(&["now", ",", "then"]).joined, "run it ; and test it");
        assert_eq!(said.without_opening(&["run"]).joined, said.joined);
    }

    #[test]
    fn letters_of_scripts_without_spaces_are_known_by_their_range() {
        for c in [
            '\u{0900}', '\u{0963}', '\u{3040}', '\u{30ff}', '\u{3400}', '\u{9fff}', '\u{ac00}',
            '\u{d7af}',
        ] {
            assert!(is_unspaced_letter(c), "{c}");
        }
        for c in ['a', 'é', 'я', '\u{0964}', '\u{3000}', '\u{a000}'] {
            assert!(!is_unspaced_letter(c), "{c}");
        }
    }
}
