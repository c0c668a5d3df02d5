//! Hooks that were posted over HTTP and not taken: a script that nobody looks at says nothing of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::Refusal;

/// Counts since the daemon started.
#[derive(Debug, Clone, Default)]
pub struct HookPosts(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    without_token: AtomicU64,
    wrong_token: AtomicU64,
    broken: AtomicU64,
}

/// Hooks that were posted and refused, since the daemon started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedHooks {
    /// 401: the script sends no token.
    pub without_token: u64,
    /// 401: the script's token opens nothing.
    pub wrong_token: u64,
    /// 400: the body is no JSON, or names no session.
    pub broken: u64,
}

impl HookPosts {
    /// A hook was refused for this.
    pub fn refused(&self, refusal: &Refusal) {
        let Counts { without_token, wrong_token, broken } = &*self.0;
        let add = |count: &AtomicU64, is_one: bool| {
            count.fetch_add(u64::from(is_one), Ordering::Relaxed);
        };
        add(without_token, matches!(refusal, Refusal::NoToken));
        add(wrong_token, matches!(refusal, Refusal::WrongToken | Refusal::TooManyGuesses));
        add(broken, matches!(refusal, Refusal::BrokenHook | Refusal::Unreadable));
    }

    pub fn view(&self) -> RefusedHooks {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { without_token, wrong_token, broken } = &*self.0;
        RefusedHooks {
            without_token: read(without_token),
            wrong_token: read(wrong_token),
            broken: read(broken),
        }
    }
}
