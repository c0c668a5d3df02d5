//! A state, a reason, a status or a code as the wire spells it.

use std::sync::Arc;

use serde::Serialize;

pub fn word(value: &impl Serialize) -> Arc<str> {
    let spelled = serde_json::to_value(value).ok();
    spelled.as_ref().and_then(|word| word.as_str()).unwrap_or_default().into()
}
