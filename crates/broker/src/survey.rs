//! What rules need to know of the folder that they judge in, and of the files that a request names.

use std::sync::Arc;

use qd_session::id::RequestKey;
use qd_session::policy::Tightening;

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    pub folder: Arc<str>,
    /// The request that is judged then, and the files that it names; none where only the folder
    /// is to be known.
    pub request: Option<(RequestKey, Vec<String>)>,
}

/// What the files around a folder say.
#[derive(Debug)]
pub struct Surveyed {
    pub folder: Arc<str>,
    pub tightening: Tightening,
    /// Of the request that is judged now.
    pub followed: Option<Followed>,
}

/// Where links lead the files that a request names.
#[derive(Debug)]
pub struct Followed {
    pub request: RequestKey,
    pub named: Vec<String>,
    pub led_to: Vec<Option<String>>,
}
