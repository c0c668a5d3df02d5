//! Web Push: RFC 8030 to carry it, RFC 8291 to encrypt it for the browser alone, RFC 8292 to say
//! who we are.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use hyper::http::{HeaderMap, HeaderValue};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::digest::{SHA256, digest};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};

use super::devices::Device;
use super::http::{Client, Target};
use super::message::{Message, Pressing};
use super::outbox::Failure;
use super::push_key::PushKey;

/// How long a push service keeps what it cannot deliver: a phone that was off for half a day is
/// still told; what was settled meanwhile was replaced.
const PUSH_TTL_S: u32 = 12 * 60 * 60;

/// Longest payload of a push: services take 4096 bytes with the 103 of the encryption.
pub const PUSH_PAYLOAD_BYTES_MAX: usize = 3_500;

#[derive(Debug)]
pub struct WebPush {
    pub device: Device,
    pub key: Arc<PushKey>,
    pub client: Client,
    pub contact: String,
}

impl WebPush {
    pub async fn carry(&self, message: &Message) -> Result<(), Failure> {
        let refused = |why: &str| Failure::Refused(why.to_owned());
        let target = Target::read(&self.device.endpoint).map_err(refused)?;
        let body = encrypted(&message.json(), &self.device.point(), &self.device.secret());
        let body = body.ok_or_else(|| refused("its keys are none"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let authorization = self.key.authorization(&target.origin(), &self.contact, now.as_secs());
        let text =
            |text: &str| HeaderValue::from_str(text).map_err(|_| refused("a header that is none"));
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, text(&authorization)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("aes128gcm"));
        headers.insert(HeaderName::from_static("ttl"), HeaderValue::from(PUSH_TTL_S));
        headers.insert(HeaderName::from_static("urgency"), text(urgency(message.pressing()))?);
        // Of one topic the service keeps the newest: a phone that was off sees only how it ended.
        headers.insert(HeaderName::from_static("topic"), text(&topic(&message.tag))?);
        self.client.post(&target, headers, body).await
    }
}

fn urgency(pressing: Pressing) -> &'static str {
    match pressing {
        Pressing::High => "high",
        Pressing::Normal => "normal",
        Pressing::Low => "low",
    }
}

/// At most 32 letters that may be in an address.
fn topic(tag: &str) -> String {
    BASE64URL_NOPAD.encode(&digest(&SHA256, tag.as_bytes()).as_ref()[..24])
}

const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;

/// One record that only the browser can read; none if its keys are no keys, or it is too long.
fn encrypted(plain: &[u8], point: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    if plain.len() > PUSH_PAYLOAD_BYTES_MAX {
        return None;
    }
    let random = SystemRandom::new();
    let ours = EphemeralPrivateKey::generate(&ECDH_P256, &random).ok()?;
    let our_point = ours.compute_public_key().ok()?;
    let mut salt = [0; SALT_BYTES];
    random.fill(&mut salt).ok()?;
    let theirs = UnparsedPublicKey::new(&ECDH_P256, point);
    let info = [b"WebPush: info\0", point, our_point.as_ref()].concat();
    let shared = agree_ephemeral(ours, &theirs, |shared| derived::<32>(secret, shared, &info));
    let shared = shared.ok()??;
    let key = derived::<KEY_BYTES>(&salt, &shared, b"Content-Encoding: aes128gcm\0")?;
    let nonce = derived::<NONCE_BYTES>(&salt, &shared, b"Content-Encoding: nonce\0")?;
    // The last record of a message, and the only one, ends with a 2.
    let mut record = [plain, &[2]].concat();
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
    let nonce = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut record).ok()?;
    let size = u32::try_from(record.len()).ok()?.max(18).to_be_bytes();
    let point_len = u8::try_from(our_point.as_ref().len()).ok()?;
    Some([&salt[..], &size, &[point_len], our_point.as_ref(), &record].concat())
}

/// HKDF with SHA-256 to so many bytes.
fn derived<const BYTES: usize>(salt: &[u8], from: &[u8], info: &[u8]) -> Option<[u8; BYTES]> {
    struct Bytes(usize);
    impl KeyType for Bytes {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut bytes = [0; BYTES];
    let extracted = Salt::new(HKDF_SHA256, salt).extract(from);
    extracted.expand(&[info], Bytes(BYTES)).ok()?.fill(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_fits_its_header_and_tells_tags_apart() {
        let (one, other) = (topic("req_1"), topic("req_2"));
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
        assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    }

    #[test]
    fn keys_that_are_none_encrypt_nothing() {
        assert_eq!(encrypted(b"text", &[4; 65], &[1; 16]), None);
        assert_eq!(encrypted(b"text", &[], &[1; 16]), None);
        assert_eq!(encrypted(&[0; PUSH_PAYLOAD_BYTES_MAX + 1], &[4; 65], &[1; 16]), None);
    }
}
