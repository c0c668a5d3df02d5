//! What is kept of a program's words.

use qd_runners::warden::Captured;

fn check(pieces: &[&[u8]], text: &str) {
    let mut captured = Captured::new(4, 6);
    pieces.iter().for_each(|piece| captured.take(piece));
    assert_eq!(captured.text(), text, "{pieces:?}");
}

#[test]
fn the_beginning_and_the_end_are_kept() {
    check(&[], "");
    check(&[b"ab", b"cd", b"efg"], "abcdefg");
    check(&[b"abcdefghij"], "abcdefghij");
    check(&[b"abcdefghijk"], "abcd\n[… 1 bytes left out …]\nfghijk");
    check(&[b"abcdef", b"ghijklmnop", b"qrst"], "abcd\n[… 10 bytes left out …]\nopqrst");
}

#[test]
fn no_letter_is_cut_in_two() {
    check(&["abcéfghijklmno".as_bytes()], "abc\n[… 6 bytes left out …]\njklmno");
    check(&["abcdefghiéjklmn".as_bytes()], "abcd\n[… 7 bytes left out …]\njklmn");
    check(&[b"abc\xc3", b"\xa9"], "abcé");
}

#[test]
fn what_is_no_text_or_steers_a_terminal_is_marked() {
    check(&[b"\x1b[m\0"], "\u{fffd}[m\u{fffd}");
    check(&[b"\xff\n\t"], "\u{fffd}\n\t");
}
