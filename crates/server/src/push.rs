//! The devices that are told: a browser subscribes itself, and can be taken off the list.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Extension, Path, State};
use qd_notices::{DeviceView, NotADevice, Notices, Subscription};
use serde_json::{Value, json};
use tracing::warn;

use crate::acting::Caller;
use crate::error::Refusal;
use crate::server::Server;
use crate::sign_in::now_s;
use crate::wire::{PushKeyView, TestSent, TestWanted};

pub async fn key(State(server): State<Server>) -> Result<Json<PushKeyView>, Refusal> {
    Ok(Json(PushKeyView { key: notices(&server)?.public_key() }))
}

pub async fn devices(State(server): State<Server>) -> Result<Json<Vec<DeviceView>>, Refusal> {
    Ok(Json(notices(&server)?.devices()))
}

/// Whose a device is that was subscribed with a token, and not by a browser that is signed in.
pub const OWNER_TOKEN: &str = "token";

pub async fn subscribe(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    wanted: Result<Json<Subscription>, JsonRejection>,
) -> Result<Json<DeviceView>, Refusal> {
    let Json(wanted) = wanted.map_err(|_| Refusal::Unreadable)?;
    let owner = caller.browser.as_ref().map_or(OWNER_TOKEN, |lease| &lease.browser);
    let device = notices(&server)?.subscribe(wanted, owner, now_s()).await?;
    // A browser that was signed out meanwhile may have been looked for before it had the device.
    if caller.browser.is_some_and(|lease| lease.has_ended()) {
        server.end_subscriptions();
        return Err(Refusal::SignedOut);
    }
    Ok(Json(device))
}

pub async fn unsubscribe(
    State(server): State<Server>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    notices(&server)?.unsubscribe(&id)?;
    Ok(Json(json!({ "removed": true })))
}

pub async fn test(
    State(server): State<Server>,
    wanted: Result<Json<TestWanted>, JsonRejection>,
) -> Result<Json<TestSent>, Refusal> {
    let Json(TestWanted { id }) = wanted.map_err(|_| Refusal::Unreadable)?;
    let sent = notices(&server)?.test(id.as_deref());
    Ok(Json(TestSent { receivers: sent.map_err(|_| Refusal::NoSuchDevice)? }))
}

fn notices(server: &Server) -> Result<&Notices, Refusal> {
    server.notices().ok_or(Refusal::NoticesOff)
}

impl From<NotADevice> for Refusal {
    fn from(why: NotADevice) -> Self {
        match why {
            NotADevice::Unknown => Self::NoSuchDevice,
            NotADevice::Refused(why) => {
                warn!(why, "a subscription");
                Self::NotASubscription
            }
            NotADevice::Private(why) => {
                warn!(why, "a subscription");
                Self::PrivateEndpoint
            }
            NotADevice::NotKept(error) => {
                warn!(%error, "the list of devices");
                Self::NotKept
            }
        }
    }
}
