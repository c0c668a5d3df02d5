//! The chain of records: whatever is done to it is found.

use qd_session::decision::{Book, Broken, Chain, Flaw, Hash, Link, Record, Shown, verify};
use qd_session::limits::SHOWN_INPUT_BYTES_MAX;
use qd_session::monitor::RequestKind;

use super::sample::{NOW, offer, request};

/// Two requests answered, delivered and confirmed: six records.
fn lines() -> (Vec<(u64, String)>, Link) {
    let mut book = Book::default();
    let mut records: Vec<Record> = Vec::new();
    for nth in 1..=2 {
        let offer = offer(nth, request(nth), "phone");
        let decision = offer.decision.clone();
        book.opened(&request(nth));
        match book.give(NOW, offer).expect("it is open") {
            qd_session::decision::Given::Fresh { record } => records.push(*record),
            given => panic!("{given:?}"),
        }
        records.extend(book.delivered(NOW, &decision, "hook".into()));
        records.extend(book.closed(NOW, &request(nth)));
    }
    (records.iter().map(|record| (record.seq, record.line())).collect(), book.last())
}

fn found(lines: &[(u64, String)], last: Link) -> Result<u64, Broken> {
    let lines = lines.iter().map(|(seq, line)| (*seq, line.as_str()));
    verify(Link::default(), lines, last).map(|verified| verified.records())
}

#[test]
fn a_record_is_a_line_that_other_tools_can_check() {
    let (lines, _) = lines();
    let told = r#""record":"given","decision":"dec_61bb003e-0687-81a5-9456-590e54d3ca1e","request":"req_c5f35698183989a5","session":"sess_1","by":{"who":"ann","device":"phone"},"shown":{"kind":"permission","tool":"Bash","text":"Remove","input":"{\"command\":\"rm -rf build\"}"},"answer":{"type":"deny","message":"no","interrupt":false}"#;
    let prev = "0".repeat(64);
    // As `sha256sum` has it for the line without its last member.
    let hash = "f7f78bb24168af44f1cfaadf1e6f838239659603d60a928db84c720491b92a7f";
    let expected = format!(r#"{{"v":1,"seq":1,"at":1000,"prev":"{prev}",{told},"hash":"{hash}"}}"#);
    assert_eq!(lines[0].1, expected);
}

#[test]
fn a_whole_chain_is_verified() {
    let (lines, last) = lines();
    assert_eq!(found(&lines, last), Ok(6));
}

#[test]
fn a_line_is_read_back_as_it_was() {
    let (lines, _) = lines();
    for (_, line) in lines {
        let (record, claimed) = Record::read(&line).expect("a record");
        assert_eq!((record.hash, record.line()), (claimed, line));
    }
}

#[test]
fn every_changed_byte_is_found() {
    let (lines, last) = lines();
    for nth in 0..lines.len() {
        for at in 0..lines[nth].1.len() {
            let mut changed = lines.clone();
            let mut bytes = changed[nth].1.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(text) = String::from_utf8(bytes) else { continue };
            changed[nth].1 = text;
            let broken = found(&changed, last).expect_err("it was changed");
            assert_eq!(broken.seq, lines[nth].0, "{}", changed[nth].1);
        }
    }
}

#[test]
fn a_record_that_is_gone_or_moved_or_made_up_is_found() {
    let (lines, last) = lines();
    for nth in 0..lines.len() {
        let mut fewer = lines.clone();
        fewer.remove(nth);
        assert!(found(&fewer, last).is_err(), "without {nth}");
    }
    let mut swapped = lines.clone();
    swapped.swap(2, 3);
    assert!(found(&swapped, last).is_err());
    let (line, numbers) = (lines[3].1.clone(), [2, 3]);
    for nth in numbers {
        let mut doubled = lines.clone();
        doubled[nth - 1].1 = line.clone();
        let broken = found(&doubled, last).expect_err("it is a copy");
        assert_eq!(broken, Broken { seq: nth as u64, why: Flaw::Misnumbered });
    }
    // Whoever makes up a record with a hash of its own breaks the next one, or the end.
    for nth in 1..=6_u64 {
        let (old, _) = Record::read(&lines[nth as usize - 1].1).expect("a record");
        let before = Link { seq: nth - 1, hash: old.prev };
        let made_up = Record::after(before, NOW, Record::read(&lines[0].1).expect("one").0.body);
        let mut changed = lines.clone();
        changed[nth as usize - 1].1 = made_up.line();
        let why = if nth == 6 { Flaw::Replaced } else { Flaw::Detached };
        if nth > 1 {
            assert_eq!(found(&changed, last), Err(Broken { seq: (nth + 1).min(6), why }));
        }
    }
}

#[test]
fn a_chain_goes_on_from_where_retention_left_it() {
    let (lines, last) = lines();
    let (kept, _) = Record::read(&lines[2].1).expect("a record");
    let rest = || lines[3..].iter().map(|(seq, line)| (*seq, line.as_str()));
    let verified = verify(kept.link(), rest(), last).expect("whole");
    assert_eq!((verified.records(), verified.begin.seq), (3, 3));
    let wrong = Link { hash: Hash::of("something else"), ..kept.link() };
    assert_eq!(verify(wrong, rest(), last), Err(Broken { seq: 4, why: Flaw::Detached }));
}

#[test]
fn after_a_flaw_the_rest_is_followed() {
    let (mut lines, last) = lines();
    lines[1].1 = "{".to_owned();
    let mut chain = Chain::after(Link::default());
    let flaws: Vec<u64> = lines
        .iter()
        .filter_map(|(seq, line)| chain.take(*seq, line).err())
        .map(|b| b.seq)
        .collect();
    assert_eq!(flaws, [2]);
    chain.end(last).expect("the end is there");
}

#[test]
fn a_long_input_is_cut_and_its_hash_kept() {
    let long = "ä".repeat(SHOWN_INPUT_BYTES_MAX);
    let shown = Shown::new(RequestKind::Permission, None, None, Some(&long));
    assert_eq!(shown.input.as_deref(), Some(&long[..SHOWN_INPUT_BYTES_MAX]));
    assert_eq!(shown.input_hash, Some(Hash::of(&long)));
}
