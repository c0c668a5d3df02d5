//! A value with the time it became true. The newer one wins, whichever came first.

use serde::{Deserialize, Serialize};

use crate::moment::Stamp;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Latest<T> {
    #[serde(flatten)]
    pub stamp: Stamp,
    pub value: T,
}

impl<T: Ord> Latest<T> {
    /// Keeps the newer of the two. Equal stamps keep the greater value, so that the order of
    /// arrival cannot decide.
    pub fn join(slot: &mut Option<Self>, stamp: Stamp, value: T) {
        let new = Self { stamp, value };
        if slot.as_ref().is_none_or(|old| new > *old) {
            *slot = Some(new);
        }
    }

    /// The same for what is rarely there and so is kept aside.
    pub fn join_boxed(slot: &mut Option<Box<Self>>, stamp: Stamp, value: T) {
        let new = Self { stamp, value };
        if slot.as_ref().is_none_or(|old| new > **old) {
            *slot = Some(Box::new(new));
        }
    }

    pub fn set_back(slot: &mut Option<Box<Self>>, by_ms: u64) {
        if let Some(known) = slot {
            known.stamp.set_back(by_ms);
        }
    }
}

/// The later of two times.
pub fn raise(slot: &mut Stamp, stamp: Stamp) {
    *slot = (*slot).max(stamp);
}
