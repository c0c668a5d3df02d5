//! Any order of things. The world itself holds each notice against the rules; here everything that
//! is still open in the end must have been told. A failure prints its seed: `SIM_SEED=42 cargo
//! test …`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use qd_session::operator::notice::{Ground, Phase};

use super::world::{UNWANTED, World};

#[test]
#[expect(clippy::disallowed_methods, reason = "a seed to try again comes from the environment")]
fn whatever_happens_each_matter_is_told_once_in_time_and_taken_back() {
    let one = std::env::var("SIM_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seeds = one.map_or(1_000..1_800, |seed: u64| seed..seed + 1);
    let mut told = 0;
    for seed in seeds {
        let run = catch_unwind(AssertUnwindSafe(|| settled(seed)));
        match run {
            Ok(count) => told += count,
            Err(panic) => {
                eprintln!("SIM_SEED={seed}");
                resume_unwind(panic);
            }
        }
    }
    assert!(told > 0, "nothing was ever told");
}

fn settled(seed: u64) -> usize {
    let mut world = World::new(seed);
    let steps = 20 + world.roll(120);
    (0..steps).for_each(|_| world.step());
    world.calm();
    for (session, matters) in &world.sessions {
        for matter in matters {
            let Some(phase) = world.herald.phase_of(session, &matter.tag) else {
                assert_eq!(matter.ground, Ground::State, "{} is not watched", matter.tag);
                continue;
            };
            let was_told = world.told.contains_key(&matter.tag);
            match phase {
                Phase::Told => assert!(was_told, "{}", matter.tag),
                Phase::Silent => {
                    let is_request = matter.ground != Ground::State;
                    assert!(!is_request || was_told || matter.kind == UNWANTED, "{}", matter.tag);
                }
                Phase::Seen => assert_eq!(matter.ground, Ground::State, "{}", matter.tag),
                Phase::Waiting { .. } | Phase::Held => panic!("{} is {phase:?}", matter.tag),
            }
        }
    }
    world.told.len()
}
