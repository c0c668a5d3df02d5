//! What can be done with a session, and why not.

use std::collections::BTreeMap;

use serde::Serialize;

/// Whether the session lives on a server of its client that we are in touch with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    #[default]
    Nowhere,
    Server,
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
    /// A sentence for each that is false, by its name.
    pub why: BTreeMap<String, String>,
}

impl Capabilities {
    /// Says why something cannot be done.
    pub(crate) fn lacks(&mut self, name: &str, why: &str) {
        self.why.insert(name.to_owned(), why.to_owned());
    }
}
