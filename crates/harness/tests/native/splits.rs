//! However bytes are cut, whatever they are: the same pieces, one end, no panic.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use qd_harness::native::{Piece, Provider, ServerSentEvent, SseDecoder, StreamReader};

use crate::streams::{ANTHROPIC, OPENAI};
use crate::{pieces, stream};

fn cut(provider: Provider, bytes: &[u8], cuts: &[Index]) -> Vec<Piece> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut reader = StreamReader::new(provider, "turn_1".into(), Some("req_1".into()));
    let mut from = 0;
    let mut pieces = Vec::new();
    for end in ends {
        pieces.extend(reader.take(&bytes[from..end]));
        from = end;
    }
    pieces.extend(reader.end());
    pieces
}

fn check_one_end(pieces: &[Piece]) {
    let (last, before) = pieces.split_last().expect("there is always an end");
    assert!(last.is_last() && !before.iter().any(Piece::is_last), "{pieces:?}");
}

fn events(bytes: &[u8]) -> Vec<(String, String)> {
    let (mut decoder, mut events) = (SseDecoder::default(), Vec::new());
    decoder.take(bytes, &mut events).expect("short");
    events.extend(decoder.finish());
    events.into_iter().map(|ServerSentEvent { name, data }| (name, data)).collect()
}

#[test]
fn events_are_read_as_the_standard_says() {
    let check = |text: &str, expected: &[(&str, &str)]| {
        let expected: Vec<(String, String)> =
            expected.iter().map(|(name, data)| ((*name).into(), (*data).into())).collect();
        for ends in ["\n", "\r\n", "\r"] {
            assert_eq!(events(text.replace('\n', ends).as_bytes()), expected, "{text:?}");
        }
    };
    check("data: a\n\n", &[("", "a")]);
    check("data:a\ndata:  b\ndata\n\n", &[("", "a\n b\n")]);
    check(": note\nevent: x\nid: 7\nretry: 3\ndata: a\n\n", &[("x", "a")]);
    check("event: x\n\ndata: a\n\n", &[("", "a")]);
    check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &[("", "a")]);
    check("data: a\n\n\n\ndata: b", &[("", "a"), ("", "b")]);
    check("", &[]);
    assert_eq!(events(b"data: \xff\n\n"), [(String::new(), "\u{fffd}".to_owned())]);
}

/// Bytes of a stream: of a real one, with something done to it.
fn damaged() -> impl Strategy<Value = (Provider, Vec<u8>)> {
    let part = prop_oneof![
        4 => select([ANTHROPIC, OPENAI].concat()).prop_map(|data| stream(&[data])),
        1 => select(vec![
            "\r\n", "\n", "data:", "data: {}\n\n", ": ping\n\n", "event: error\n", "data: [DONE]\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{}]}}]}\n\n",
            "data: {\"type\":\"content_block_start\",\"content_block\":{}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n", "data: [1]\n\n", "\u{feff}",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ];
    let bytes = prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat().into_bytes());
    let provider = select(Provider::ALL.to_vec());
    (provider, bytes, prop::collection::vec((any::<Index>(), any::<u8>()), 0..4)).prop_map(
        |(provider, mut bytes, changes)| {
            for (at, byte) in changes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            (provider, bytes)
        },
    )
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_pieces(cuts in prop::collection::vec(any::<Index>(), 0..40)) {
        for (provider, data) in [(Provider::Anthropic, ANTHROPIC), (Provider::OpenAi, OPENAI)] {
            for ends in ["\n", "\r\n", "\r"] {
                let text = stream(data).replace('\n', ends);
                let whole = pieces(provider, text.as_bytes());
                let is_whole = matches!(whole.last(), Some(Piece::End { .. }));
                prop_assert!(is_whole);
                prop_assert_eq!(cut(provider, text.as_bytes(), &cuts), whole);
            }
        }
    }

    #[test]
    fn whatever_comes_has_one_end((provider, bytes) in damaged(), cuts in prop::collection::vec(any::<Index>(), 0..8)) {
        let whole = pieces(provider, &bytes);
        check_one_end(&whole);
        prop_assert_eq!(cut(provider, &bytes, &cuts), whole);
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_fails_or_is_whole() {
    for (provider, data) in [(Provider::Anthropic, ANTHROPIC), (Provider::OpenAi, OPENAI)] {
        let text = stream(data);
        let whole = pieces(provider, text.as_bytes());
        for end in 0..text.len() {
            let cut = pieces(provider, &text.as_bytes()[..end]);
            check_one_end(&cut);
            match cut.last() {
                Some(Piece::End { message, .. }) => {
                    let Some(Piece::End { message: all, .. }) = whole.last() else { panic!() };
                    assert_eq!(message, all, "cut at {end}");
                }
                Some(Piece::Failed(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}
