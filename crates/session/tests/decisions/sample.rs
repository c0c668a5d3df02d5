//! Requests and answers to them.

use qd_session::decision::{By, Command, Decision, Offer, Order, Shown};
use qd_session::id::{RequestId, RequestKey, SessionId};
use qd_session::moment::Timestamp;
use qd_session::monitor::RequestKind;
use qd_session::seed::Seed;

pub const NOW: Timestamp = Timestamp(1_000);

pub fn session() -> SessionId {
    "sess_1".into()
}

pub fn request(nth: u64) -> RequestKey {
    RequestKey::of(&session(), &RequestId::from("toolu_1"), Timestamp(nth))
}

pub fn by(device: &str) -> By {
    By { who: "ann".to_owned(), device: device.to_owned() }
}

pub fn deny(message: &str) -> Decision {
    Decision::Deny { message: Some(message.to_owned()), interrupt: false }
}

/// Somebody's answer, told apart by its seed.
pub fn offer(seed: u64, request: RequestKey, device: &str) -> Offer {
    let input = Some(r#"{"command":"rm -rf build"}"#);
    Offer {
        decision: Seed(seed).decision(),
        request,
        session: session(),
        by: by(device),
        rule: None,
        shown: Shown::new(RequestKind::Permission, Some("Bash".into()), Some("Remove"), input),
        answer: deny("no"),
        key: None,
    }
}

pub fn order(seed: u64, command: Command) -> Order {
    Order {
        decision: Seed(seed).decision(),
        session: session(),
        by: by("phone"),
        command,
        key: None,
    }
}
