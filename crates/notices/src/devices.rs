//! The browsers that are told by Web Push.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use data_encoding::BASE64URL_NOPAD;
use qd_session::operator::notice::plain;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::http::{Client, Target};
use super::private_file::PrivateFile;
use crate::Error;

/// Devices that are told by Web Push; a person has a handful. The one that came first goes.
const DEVICES_MAX: usize = 32;

/// Longest address that a browser's push service gives out. They have some 200 bytes.
const ENDPOINT_BYTES_MAX: usize = 1_024;

/// What a device is called, for people.
const DEVICE_LABEL_CHARS_MAX: usize = 60;

#[derive(Debug)]
pub struct Devices {
    file: PrivateFile,
    list: Mutex<Vec<Device>>,
}

/// One browser. Its address is a secret: who knows it can send to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Made of its address, so that a browser that comes again is the same.
    pub id: String,
    pub label: String,
    pub endpoint: String,
    /// The browser's public key, and what it shares with us.
    pub p256dh: String,
    pub auth: String,
    pub since_s: u64,
    /// Whose sign-in it is told by. It ends with that; earlier versions did not know.
    #[serde(default)]
    pub owner: String,
}

/// What a browser says of itself when it subscribes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Subscription {
    pub endpoint: String,
    pub keys: SubscriptionKeys,
    /// What the operator calls the device.
    #[serde(default)]
    pub label: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubscriptionKeys {
    pub p256dh: String,
    pub auth: String,
}

/// A device, as others may know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeviceView {
    pub id: String,
    pub label: String,
    /// Whose push service brings it there.
    pub service: String,
    pub since_s: u64,
}

/// Why a device is not on the list.
#[derive(Debug, thiserror::Error)]
pub enum NotADevice {
    #[error("no device of that id")]
    Unknown,
    #[error("{0}")]
    Refused(&'static str),
    /// Its push service is on this machine or in a private network.
    #[error("{0}")]
    Private(String),
    #[error("{0}")]
    NotKept(#[from] Error),
}

impl Devices {
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let file = PrivateFile::at(folder.join("devices.json"));
        let list = Mutex::new(file.read_json()?);
        Ok(Self { file, list })
    }

    pub fn all(&self) -> Vec<Device> {
        self.list().clone()
    }

    /// The device, and the ids of those that went for it. It is on disk before it is told anything.
    pub async fn add(
        &self,
        wanted: Subscription,
        owner: &str,
        client: &Client,
        now_s: u64,
    ) -> Result<(Device, Vec<String>), NotADevice> {
        let device = checked(wanted, owner, client, now_s).await?;
        let mut list = self.list();
        let mut next: Vec<Device> =
            list.iter().filter(|known| known.id != device.id).cloned().collect();
        let too_many = (next.len() + 1).saturating_sub(DEVICES_MAX);
        let gone = next.drain(..too_many).map(|device| device.id).collect();
        next.push(device.clone());
        self.file.write_json(&next)?;
        *list = next;
        Ok((device, gone))
    }

    /// False if there is none of that id.
    pub fn remove(&self, id: &str) -> Result<bool, Error> {
        let mut list = self.list();
        let next: Vec<Device> = list.iter().filter(|known| known.id != id).cloned().collect();
        let any = next.len() < list.len();
        if any {
            self.file.write_json(&next)?;
            *list = next;
        }
        Ok(any)
    }

    /// Takes those off the list whose owner is not to stay, and gives their ids. They are off also
    /// where that cannot be written.
    pub fn keep(&self, stays: impl Fn(&str) -> bool) -> (Vec<String>, Result<(), Error>) {
        let mut list = self.list();
        let gone: Vec<String> =
            list.extract_if(.., |device| !stays(&device.owner)).map(|device| device.id).collect();
        let written = if gone.is_empty() { Ok(()) } else { self.file.write_json(&*list) };
        (gone, written)
    }

    fn list(&self) -> MutexGuard<'_, Vec<Device>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn checked(
    wanted: Subscription,
    owner: &str,
    client: &Client,
    now_s: u64,
) -> Result<Device, NotADevice> {
    let Subscription { endpoint, keys: SubscriptionKeys { p256dh, auth }, label } = wanted;
    if endpoint.len() > ENDPOINT_BYTES_MAX {
        return Err(NotADevice::Refused("the endpoint is too long"));
    }
    check_endpoint(&Target::read(&endpoint).map_err(NotADevice::Refused)?, client).await?;
    let (point, secret) = (decoded(&p256dh), decoded(&auth));
    if point.len() != 65 || point[0] != 4 {
        return Err(NotADevice::Refused("`p256dh` is no public key"));
    }
    if secret.len() != 16 {
        return Err(NotADevice::Refused("`auth` does not have 16 bytes"));
    }
    let id = data_encoding::HEXLOWER.encode(&digest(&SHA256, endpoint.as_bytes()).as_ref()[..8]);
    let label = match plain(&label, DEVICE_LABEL_CHARS_MAX) {
        label if label.is_empty() => "A browser".to_owned(),
        label => label,
    };
    let owner = owner.to_owned();
    Ok(Device { id, label, endpoint, p256dh, auth, since_s: now_s, owner })
}

/// The browser chooses the address, so whoever stole its key would, too: what is inside of this
/// machine or its network is not to be reached by it. This says so early; it is checked again each
/// time something is sent.
async fn check_endpoint(target: &Target, client: &Client) -> Result<(), NotADevice> {
    if client.is_named(target) {
        return Ok(());
    }
    if target.is_address() {
        let why = format!("{} is no push service on the internet", target.host());
        return Err(NotADevice::Private(why));
    }
    if !target.is_tls() {
        return Err(NotADevice::Refused("the endpoint does not begin with https://"));
    }
    match client.refuses(target).await {
        Some(why) => Err(NotADevice::Private(why.to_string())),
        None => Ok(()),
    }
}

impl Device {
    pub fn view(&self) -> DeviceView {
        let Self { id, label, since_s, .. } = self.clone();
        let service = Target::read(&self.endpoint).map(|target| target.host().to_owned());
        DeviceView { id, label, service: service.unwrap_or_default(), since_s }
    }

    pub fn point(&self) -> Vec<u8> {
        decoded(&self.p256dh)
    }

    pub fn secret(&self) -> Vec<u8> {
        decoded(&self.auth)
    }
}

/// Browsers leave the padding out; some libraries do not. What is wrong has the wrong length.
fn decoded(text: &str) -> Vec<u8> {
    BASE64URL_NOPAD.decode(text.trim_end_matches('=').as_bytes()).unwrap_or_default()
}
