//! Tells the operator on their devices what needs them.
//!
//! One task beside the loop reads the board's changes, asks the pure `Herald` what is to be told,
//! and puts each notice into the outbox of every receiver: browsers by Web Push, webhooks, ntfy,
//! the desktop. Invariant: nothing here holds the loop up, and what was told is on disk before it
//! goes out, so that a restart tells nothing twice.

mod desktop;
mod destination;
mod devices;
mod error;
mod http;
mod message;
mod ntfy;
mod outbox;
mod private_file;
mod push_key;
mod settings;
mod situation;
mod watcher;
mod web_push;
mod webhook;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use qd_daemon::runtime::Handle;
use qd_session::operator::notice::Herald;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tracing::warn;

use self::desktop::Desktop;
use self::destination::Destinations;
pub use self::destination::PrivateHost;
use self::devices::{Device, Devices};
pub use self::devices::{DeviceView, NotADevice, Subscription};
pub use self::error::Error;
use self::http::Client;
pub use self::message::Message;
use self::outbox::{Carrier, Outbox};
use self::private_file::PrivateFile;
use self::push_key::PushKey;
pub use self::settings::{NtfySettings, Settings, WebhookSettings};
use self::watcher::Watcher;
use self::web_push::WebPush;

/// A way to those who tell.
#[derive(Debug, Clone)]
pub struct Notices(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    key: Arc<PushKey>,
    client: Client,
    contact: String,
    devices: Arc<Devices>,
    receivers: Mutex<Receivers>,
    focus: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Receivers {
    /// Named in the settings.
    fixed: Vec<Arc<Outbox>>,
    /// By the device's id.
    devices: Vec<(String, Arc<Outbox>)>,
}

/// How a receiver fares.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReceiverView {
    /// `webhook hooks.example`, `push Firefox on Linux`.
    pub name: String,
    pub sent: u64,
    pub failed: u64,
    /// Notices that were dropped because too many waited.
    pub dropped: u64,
    pub waiting: usize,
    /// Why the last one failed, if no other has arrived since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// There is no device of that id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no device of that id")]
pub struct NoSuchDevice;

impl Notices {
    /// Reads what is remembered and begins to watch the board. Must be called in a Tokio runtime.
    pub fn start(handle: Handle, settings: Settings) -> Result<Self, Error> {
        let Settings {
            state,
            rules,
            contact,
            link,
            webhooks,
            ntfy,
            desktop,
            allow_private,
            offset,
        } = settings;
        let key = Arc::new(PushKey::open(&state)?);
        let devices = Arc::new(Devices::open(&state)?);
        let told = PrivateFile::at(state.join("told.json"));
        let client = Client::new(Destinations::new(allow_private));
        let fixed = webhooks.into_iter().map(|hook| hook.carrier(&client));
        let fixed = fixed.chain(ntfy.into_iter().map(|ntfy| ntfy.carrier(&client, &link)));
        let fixed = fixed.chain(desktop.then(|| Carrier::Desktop(Desktop::default())));
        let fixed = fixed.map(Outbox::start).collect();
        let (focus, looks) = watch::channel(false);
        let receivers = Mutex::new(Receivers { fixed, devices: Vec::new() });
        let notices = Self(Arc::new(Inner { key, client, contact, devices, receivers, focus }));
        for device in notices.0.devices.all() {
            notices.open_outbox(device);
        }
        let herald = Herald::new(rules, told.read_json()?);
        let watcher = Watcher { notices: notices.clone(), herald, told, offset, looks };
        tokio::spawn(watcher.run(handle));
        Ok(notices)
    }

    /// With this a browser subscribes: the public half, as `applicationServerKey` wants it.
    pub fn public_key(&self) -> String {
        self.0.key.public()
    }

    pub fn devices(&self) -> Vec<DeviceView> {
        self.0.devices.all().iter().map(Device::view).collect()
    }

    /// A browser that comes again takes its old place.
    pub async fn subscribe(
        &self,
        wanted: Subscription,
        owner: &str,
        now_s: u64,
    ) -> Result<DeviceView, NotADevice> {
        let (device, gone) = self.0.devices.add(wanted, owner, &self.0.client, now_s).await?;
        let view = device.view();
        for id in gone {
            self.close_outbox(&id);
        }
        self.open_outbox(device);
        Ok(view)
    }

    pub fn unsubscribe(&self, id: &str) -> Result<(), NotADevice> {
        if !self.0.devices.remove(id)? {
            return Err(NotADevice::Unknown);
        }
        self.close_outbox(id);
        Ok(())
    }

    /// Drops every device whose owner is not to stay; what waits for it is not sent.
    pub fn keep_devices(&self, stays: impl Fn(&str) -> bool) {
        let (gone, written) = self.0.devices.keep(stays);
        gone.iter().for_each(|id| self.close_outbox(id));
        if let Err(error) = written {
            warn!(%error, "devices that were dropped are on the list until it can be written");
        }
    }

    /// Sends a notice to try the way: to one device, or to every receiver. How many it goes to.
    pub fn test(&self, device: Option<&str>) -> Result<usize, NoSuchDevice> {
        let message = Arc::new(Message::test());
        let receivers = self.receivers();
        let of_device =
            receivers.devices.iter().filter(|(id, _)| device.is_none_or(|wanted| wanted == id));
        let mut boxes: Vec<&Arc<Outbox>> = of_device.map(|(_, outbox)| outbox).collect();
        match device {
            Some(_) if boxes.is_empty() => return Err(NoSuchDevice),
            Some(_) => {}
            None => boxes.extend(&receivers.fixed),
        }
        boxes.iter().for_each(|outbox| outbox.put(message.clone()));
        Ok(boxes.len())
    }

    /// Whether the operator has the page before them.
    pub fn set_focused(&self, is_focused: bool) {
        self.0.focus.send_if_modified(|known| std::mem::replace(known, is_focused) != is_focused);
    }

    pub fn receivers_view(&self) -> Vec<ReceiverView> {
        let receivers = self.receivers();
        let devices = receivers.devices.iter().map(|(_, outbox)| outbox);
        receivers.fixed.iter().chain(devices).map(|outbox| outbox.view()).collect()
    }

    fn tell(&self, message: &Arc<Message>) {
        let receivers = self.receivers();
        let devices = receivers.devices.iter().map(|(_, outbox)| outbox);
        receivers.fixed.iter().chain(devices).for_each(|outbox| outbox.put(message.clone()));
    }

    fn open_outbox(&self, device: Device) {
        let id = device.id.clone();
        let carrier = WebPush {
            device,
            key: self.0.key.clone(),
            client: self.0.client.clone(),
            contact: self.0.contact.clone(),
        };
        let outbox = Outbox::start(Carrier::WebPush(Box::new(carrier)));
        let (notices, gone, ended) = (Arc::downgrade(&self.0), id.clone(), outbox.clone());
        tokio::spawn(async move {
            ended.gone().await;
            // The browser has dropped its subscription: nobody is there any more.
            if let Some(inner) = notices.upgrade()
                && let Err(error) = Self(inner).unsubscribe(&gone)
            {
                warn!(%error, device = gone, "a device that is gone stays on the list");
            }
        });
        let mut receivers = self.receivers();
        receivers.devices.retain(|(known, outbox)| {
            let stays = *known != id;
            if !stays {
                outbox.close();
            }
            stays
        });
        receivers.devices.push((id, outbox));
    }

    fn close_outbox(&self, id: &str) {
        self.receivers().devices.retain(|(known, outbox)| {
            if known == id {
                outbox.close();
            }
            known != id
        });
    }

    fn receivers(&self) -> MutexGuard<'_, Receivers> {
        self.0.receivers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
