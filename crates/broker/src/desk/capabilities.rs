//! What can be done with a session, and why not.

use std::collections::BTreeMap;

use serde::Serialize;

/// Whether the session lives on something that we are in touch with beside its hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    #[default]
    Nowhere,
    /// A server of its client.
    Server,
    /// We drive it.
    Driver,
    /// It is played from a recording, which goes on when it is answered.
    Recording,
}

/// The page and the command line offer exactly what is true here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Capabilities {
    pub can_approve: bool,
    pub can_answer: bool,
    pub can_prompt: bool,
    pub can_interrupt: bool,
    pub can_stop: bool,
    pub can_resume: bool,
    pub can_yolo: bool,
    pub can_focus: bool,
    pub can_pause: bool,
    pub can_retry: bool,
    /// Whether it can be put into History: nothing of it is known to live.
    pub can_archive: bool,
    /// A sentence for each that is false, by its name.
    pub why: BTreeMap<String, String>,
}

impl Capabilities {
    /// Says why something cannot be done.
    pub(crate) fn lacks(&mut self, name: &str, why: &str) {
        self.why.insert(name.to_owned(), why.to_owned());
    }
}
