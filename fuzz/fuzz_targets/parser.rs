//! Every fuzz target in one program: `QD_FUZZ_TARGET` says which parser it feeds.
//!
//! They share all of their code, so one build serves them all. `cargo xtask fuzz` runs each.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use qd_harness::fuzzing::{Parser, TARGETS, run};

static PARSER: LazyLock<Parser> = LazyLock::new(|| {
    let name = std::env::var("QD_FUZZ_TARGET").expect("QD_FUZZ_TARGET names the parser");
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.expect("QD_FUZZ_TARGET is one of qd_harness::fuzzing::TARGETS").1
});

fuzz_target!(|input: &[u8]| run(*PARSER, input));
