//! How the daemon's memory is given out and given back.
//!
//! The daemon makes much that lives for a second, a board's snapshot or a session that wakes, among
//! little that stays. Left alone, glibc keeps the holes: a third of the heap after an hour.

use std::time::Duration;

/// Between two times that the holes are given back to the system.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(30);

/// A start reads all that is on record, and leaves as many holes as a day does.
const GIVE_BACK_FIRST: Duration = Duration::from_secs(1);

/// What is longer gets pages of its own, which go back at once: a snapshot, a long payload. glibc
/// raises this by itself each time such a piece is freed, up to 32 MiB, unless it is set.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_PAGES_FROM: libc::c_int = 128 << 10;

/// Lets all threads share two heaps. glibc gives each of twenty its own, and what one thread makes
/// and another frees, as almost everything here, leaves holes in all of them.
pub fn share() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "std has no word on the allocator")]
    // SAFETY: it sets numbers, before there is a second thread.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES_FROM);
    }
}

/// Gives unused memory back for as long as this is awaited.
pub async fn give_back() {
    let mut after = GIVE_BACK_FIRST;
    loop {
        tokio::time::sleep(after).await;
        after = GIVE_BACK_EVERY;
        // It may take some milliseconds, and others wait for a thread meanwhile.
        let given = tokio::task::spawn_blocking(trim).await;
        given.expect("it does not panic");
    }
}

fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "std has no word on the allocator")]
    // SAFETY: it takes the allocator's own locks, and moves nothing.
    unsafe {
        libc::malloc_trim(0);
    }
}
