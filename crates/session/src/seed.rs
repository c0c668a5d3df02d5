//! Where new ids come from: a number that came in with the event.
//!
//! Whoever hands an event to the machine draws one random [`Seed`] and journals it with the event,
//! so folding the journal spells the same ids again.

use serde::{Deserialize, Serialize};

use crate::id::{ChangeId, DecisionId, HookRunId, RunId, SessionId, TurnId};

/// Fresh randomness for one event. Equal seeds spell equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    pub fn turn(self) -> TurnId {
        TurnId::new(self.spell("turn", 0))
    }

    pub fn run(self, nth: usize) -> RunId {
        RunId::new(self.spell("toolrun", nth))
    }

    pub fn hook_run(self, nth: usize) -> HookRunId {
        HookRunId::new(self.spell("hookrun", nth))
    }

    pub fn change(self, nth: usize) -> ChangeId {
        ChangeId::new(self.spell("evt", nth))
    }

    pub fn session(self) -> SessionId {
        SessionId::new(self.spell("sess", 0))
    }

    pub fn decision(self) -> DecisionId {
        DecisionId::new(self.spell("dec", 0))
    }

    /// A UUID (version 8: "made by the application's own rule") behind a prefix.
    fn spell(self, prefix: &str, nth: usize) -> String {
        let salt = prefix.bytes().fold(nth as u64, |salt, byte| mixed(salt ^ u64::from(byte)));
        let high = mixed(self.0 ^ salt);
        let low = mixed(high ^ self.0.rotate_left(32));
        format!(
            "{prefix}_{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff,
        )
    }
}

/// SplitMix64's finaliser: every bit of the input moves about half of the output's.
fn mixed(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_of_one_seed_differ_and_those_of_two_seeds_too() {
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            assert!(seen.insert(Seed(seed).turn().to_string()));
            for nth in 0..4 {
                assert!(seen.insert(Seed(seed).run(nth).to_string()));
                assert!(seen.insert(Seed(seed).hook_run(nth).to_string()));
                assert!(seen.insert(Seed(seed).change(nth).to_string()));
            }
        }
    }

    #[test]
    fn an_id_is_a_uuid_behind_its_prefix() {
        let turn = Seed(7).turn();
        let uuid = turn.as_str().strip_prefix("turn_").expect("the prefix");
        let widths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(widths, [8, 4, 4, 4, 12]);
        assert!(uuid.chars().all(|c| c == '-' || c.is_ascii_hexdigit()));
        assert_eq!(&uuid[14..15], "8", "the version");
        assert!("89ab".contains(&uuid[19..20]), "the variant");
    }

    #[test]
    fn the_same_seed_spells_the_same_id() {
        assert_eq!(Seed(9).turn().as_str(), "turn_c291cae6-db5f-87c2-b880-339880ce6c9c");
    }
}
