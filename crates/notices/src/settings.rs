//! Who is told, as the operator's settings say.

use std::path::PathBuf;

use hyper::Uri;
use qd_session::moment::Timestamp;
use qd_session::operator::notice::Rules;

use super::destination::PrivateHost;
use super::http::{Client, Target};
use super::ntfy::Ntfy;
use super::outbox::Carrier;
use super::webhook::Webhook;

#[allow(missing_debug_implementations, reason = "a function says what time it is where")]
pub struct Settings {
    /// Our own folder for it: keys, devices, what was told.
    pub state: PathBuf,
    pub rules: Rules,
    /// Whom a push service may write to: `mailto:…` or `https://…`.
    pub contact: String,
    /// The page's address, as the operator reaches it.
    pub link: String,
    pub webhooks: Vec<WebhookSettings>,
    pub ntfy: Vec<NtfySettings>,
    /// Tell by `notify-send`.
    pub desktop: bool,
    /// Hosts that may be on this machine or in a private network, and need no TLS.
    pub allow_private: Vec<PrivateHost>,
    /// Seconds that the operator's clock is ahead of UTC at a time.
    pub offset: Box<dyn FnMut(Timestamp) -> i32 + Send>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    pub url: Uri,
    /// What signs each message; without it none is signed.
    pub secret: Option<String>,
    /// Tell what an agent wants to do, and not only that it asks.
    pub details: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NtfySettings {
    /// The topic's address.
    pub url: Uri,
    pub token: Option<String>,
    pub details: bool,
}

impl WebhookSettings {
    /// An address that can be posted to, or why not.
    pub fn read_url(text: &str) -> Result<Uri, &'static str> {
        Target::read(text).map(|target| target.uri)
    }

    pub(super) fn carrier(self, client: &Client) -> Carrier {
        let client = client.for_named(&Target { uri: self.url.clone() });
        Carrier::Webhook(Webhook { settings: self, client })
    }
}

impl NtfySettings {
    pub(super) fn carrier(self, client: &Client, link: &str) -> Carrier {
        let client = client.for_named(&Target { uri: self.url.clone() });
        Carrier::Ntfy(Ntfy { settings: self, client, link: link.to_owned() })
    }
}
