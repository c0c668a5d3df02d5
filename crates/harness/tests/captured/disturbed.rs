//! Signals doubled, swapped and lost: what a session ends in must not depend on it.

use qd_harness::capture::Recorded;

use super::capture::captures;
use super::truth::score_of;

/// Neighbours this close may arrive in either order.
const SWAP_WITHIN_MS: u64 = 200;

#[test]
fn doubled_signals_are_as_true_and_end_in_the_same_states() {
    let mut wrong = Vec::new();
    for capture in captures() {
        let doubled: Vec<&Recorded> = capture.signals.iter().flat_map(|one| [one, one]).collect();
        let (ends, expected) = (capture.ends(&doubled), capture.ends(&capture.all()));
        if ends != expected {
            wrong.push(format!("{}: {ends:?}, not {expected:?}", capture.name));
        }
        wrong.extend(score_of(&capture, &doubled).untrue());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn swapped_neighbours_end_in_the_same_states() {
    let mut wrong = Vec::new();
    for capture in captures() {
        let expected = capture.ends(&capture.all());
        for offset in 0..2 {
            let mut swapped = capture.all();
            for pair in swapped[offset.min(capture.signals.len())..].chunks_exact_mut(2) {
                if may_overtake(pair[0], pair[1]) {
                    pair.swap(0, 1);
                }
            }
            let ends = capture.ends(&swapped);
            if ends != expected {
                wrong.push(format!("{} from {offset}: {ends:?}, not {expected:?}", capture.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Parallel hook processes overtake each other, and so do different sources. The lines of one
/// pipe or one file do not.
fn may_overtake(first: &Recorded, second: &Recorded) -> bool {
    let close = second.at_ms - first.at_ms <= SWAP_WITHIN_MS;
    let processes = ["hook", "otel", "notify"];
    let one_pipe = first.source() == second.source() && !processes.contains(&first.source());
    close && !one_pipe
}

/// After a lost signal the next signals of that session heal its state. Where nothing but noise
/// follows the only witness of the last thing that happened, nothing can: those are few.
#[test]
fn a_lost_signal_is_healed_by_what_follows() {
    let (mut tried, mut unhealed) = (0, Vec::new());
    for capture in captures() {
        let ends = capture.ends(&capture.all());
        for lost in 0..capture.signals.len() {
            let mut left = capture.all();
            left.remove(lost);
            tried += 1;
            if capture.ends(&left) != ends {
                unhealed.push(format!("{} without signal {}", capture.name, lost + 1));
            }
        }
    }
    println!("{} of {tried} are not healed: {unhealed:#?}", unhealed.len());
    assert!(unhealed.len() * 200 <= tried, "more than one in two hundred");
}
