//! HTTP to model endpoints: a request goes out, pieces of the answer come back.
//!
//! [`Models`] knows the endpoints that the operator set up; [`Line`] sends. What is said, in which
//! language, and what an answer means is decided in `qd_harness::native`; here are connections,
//! keys and patience.
//! Invariant: a key is in a header of the request to its own endpoint and nowhere else.

mod call;
mod endpoint;
mod key;
mod models;

pub use self::call::{CallEnd, Heard, Line, Patience};
pub use self::endpoint::{Endpoint, EndpointError};
pub use self::key::Key;
pub use self::models::{Models, ModelsInvalid};
