//! What inside a sentence is not the agent's own voice: inline code, quoted words, addresses.
//!
//! Pure. Each becomes one placeholder, because nothing inside it speaks to the reader.

/// Stands for inline code, quoted words and addresses.
pub const PLACEHOLDER: char = '□';

/// Puts the placeholder where code, quotations and addresses stand, and drops emphasis.
pub fn mask(raw: &str) -> String {
    let text: Vec<char> = raw.chars().collect();
    let mut out = String::with_capacity(raw.len());
    let mut at = 0;
    while at < text.len() {
        let c = text[at];
        if let Some(end) = masked_until(&text, at) {
            out.push(' ');
            out.push(PLACEHOLDER);
            // A quotation that brings its own full stop may end the sentence around it.
            if ends_sentence(&text, end) {
                out.push('.');
            }
            at = end;
            // Without the space a full stop after code would still be seen as one.
            if text.get(at).is_some_and(|c| c.is_alphanumeric()) {
                out.push(' ');
            }
            continue;
        }
        if c != '*' && c != '`' {
            out.push(c);
        }
        at += 1;
    }
    out
}

/// Where the part that starts here and is not prose ends.
fn masked_until(text: &[char], at: usize) -> Option<usize> {
    let at_word_start = at == 0 || !text[at - 1].is_alphanumeric();
    match text[at] {
        '`' => {
            let run = text[at..].iter().take_while(|c| **c == '`').count();
            let close = text[at + run..].windows(run).position(|w| w.iter().all(|c| *c == '`'))?;
            Some(at + run + close + run)
        }
        '"' if at_word_start => closing(text, at, &['"']),
        '“' => closing(text, at, &['”', '“']),
        '„' => closing(text, at, &['“', '”', '"']),
        '«' => closing(text, at, &['»']),
        '「' => closing(text, at, &['」']),
        '『' => closing(text, at, &['』']),
        '\'' | '‘' if at_word_start => closing_apostrophe(text, at),
        ']' if text.get(at + 1) == Some(&'(') => closing(text, at + 1, &[')']),
        'h' if at_word_start && text[at..].starts_with(&['h', 't', 't', 'p']) => {
            address_end(text, at)
        }
        _ => None,
    }
}

fn closing(text: &[char], open: usize, closers: &[char]) -> Option<usize> {
    let len = text[open + 1..].iter().position(|c| closers.contains(c))?;
    Some(open + 1 + len + 1)
}

/// A single quotation mark is mostly an apostrophe; it closes only before a word's end.
fn closing_apostrophe(text: &[char], open: usize) -> Option<usize> {
    let closes = |at: &usize| {
        matches!(text[*at], '\'' | '’')
            && !text[*at - 1].is_whitespace()
            && text.get(*at + 1).is_none_or(|c| !c.is_alphanumeric())
    };
    (open + 2..text.len().min(open + 200)).find(closes).map(|at| at + 1)
}

fn address_end(text: &[char], at: usize) -> Option<usize> {
    let len = text[at..]
        .iter()
        .take_while(|c| !c.is_whitespace() && !matches!(c, ')' | '>' | '，' | '。'))
        .count();
    let is_address = text[at..at + len].windows(3).any(|w| w == [':', '/', '/']);
    let mut end = at + len;
    while end > at && matches!(text[end - 1], '.' | ',' | '?' | '!' | ':' | ';') {
        end -= 1;
    }
    is_address.then_some(end)
}

fn ends_sentence(text: &[char], end: usize) -> bool {
    let inner = end >= 2 && matches!(text[end - 2], '.' | '!' | '?' | '…' | '。' | '？');
    let quoted = text[end - 1] != '`' && text[end - 1] != ')';
    let mut rest = text[end..].iter().skip_while(|c| matches!(c, '*' | ' '));
    inner && quoted && rest.next().is_none_or(|c| c.is_uppercase())
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[track_caller]
    fn check(messages: &[(&str, &str)]) {
        for (raw, expected) in messages {
            let masked = mask(raw);
            assert_eq!(masked.split_whitespace().collect::<Vec<_>>().join(" "), *expected);
        }
    }

    #[test]
    fn code_and_emphasis() {
        check(&[
            ("Use `a.b?` now.", "Use □ now."),
            ("``a`b`` is it", "□ is it"),
            ("`a`b", "□ b"),
            ("it is `b", "it is b"),
            ("**All** of *it*", "All of it"),
            // A full stop in code ends no sentence.
            ("Use `a.` Then go.", "Use □ Then go."),
        ]);
    }

    #[test]
    fn quoted_words() {
        check(&[
            ("\"Which one?\" he asked", "□ he asked"),
            ("He said \"Stop.\" Then he left.", "He said □. Then he left."),
            ("He said \"Stop.\"** Then he left.", "He said □. Then he left."),
            ("He said \"Stop.\"", "He said □."),
            ("He said \"Stop\"", "He said □"),
            ("a 5\" disk and a 3\" disk", "a 5\" disk and a 3\" disk"),
            ("“so” it is", "□ it is"),
            ("„so“ it is", "□ it is"),
            ("„so” it is", "□ it is"),
            ("«so» it is", "□ it is"),
            ("「so」it is", "□ it is"),
            ("『so』it is", "□ it is"),
        ]);
    }

    #[test]
    fn a_single_mark_is_mostly_an_apostrophe() {
        check(&[
            ("it says 'so it is' here", "it says □ here"),
            ("it says ‘so it is’ here", "it says □ here"),
            ("it says 'so it is'", "it says □"),
            ("it doesn't and won't", "it doesn't and won't"),
            ("it doesn't for the boys' sake", "it doesn't for the boys' sake"),
            ("rock 'n roll isn't", "rock 'n roll isn't"),
            ("the '90s and the boys ' here", "the '90s and the boys ' here"),
            ("'a' is it", "□ is it"),
        ]);
        // Two marks far apart are not a pair.
        let far = format!("'a{}' here", " b".repeat(120));
        assert_eq!(mask(&far), far);
        let near = format!("'a{}' here", " b".repeat(80));
        assert_eq!(mask(&near), " □ here");
    }

    #[test]
    fn addresses() {
        check(&[
            ("see [the docs](http://a.b/c) now", "see [the docs □ now"),
            ("see [it](a.) Then go", "see [it □ Then go"),
            ("a[0] and (b)", "a[0] and (b)"),
            ("http://a.b/c?d=e. Next", "□. Next"),
            ("open https://a.b/c, then", "open □, then"),
            ("is it http://a.b/c?", "is it □?"),
            ("so http://a.b/c! And http://a.b/c; or http://a.b/c: this", "so □! And □; or □: this"),
            ("(http://a.b) is it", "( □) is it"),
            ("<http://a.b> is it", "< □> is it"),
            ("见 http://a.b，然后", "见 □，然后"),
            ("见 http://a.b。", "见 □。"),
            ("http is it", "http is it"),
            ("hdfs://a is it", "hdfs://a is it"),
            ("xhttp://a is it", "xhttp://a is it"),
        ]);
    }
}
