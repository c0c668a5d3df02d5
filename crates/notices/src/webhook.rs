//! A webhook: the message as JSON, signed so that its receiver knows that it is ours and fresh.

use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::{CONTENT_TYPE, HeaderName};
use hyper::http::{HeaderMap, HeaderValue};
use ring::hmac::{HMAC_SHA256, Key, sign};

use super::http::{Client, Target};
use super::message::Message;
use super::outbox::Failure;
use super::settings::WebhookSettings;

#[derive(Debug)]
pub struct Webhook {
    pub settings: WebhookSettings,
    pub client: Client,
}

impl Webhook {
    pub async fn carry(&self, message: &Message) -> Result<(), Failure> {
        let WebhookSettings { url, secret, details } = &self.settings;
        let body = match details {
            true => message.json(),
            false => message.without_details().json(),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut headers = HeaderMap::new();
        let mut set = |name: &'static str, value: &str| {
            let value = HeaderValue::from_str(value);
            let value = value.map_err(|_| Failure::Refused(format!("{name} is no header")))?;
            headers.insert(HeaderName::from_static(name), value);
            Ok(())
        };
        set("x-quarterdeck-timestamp", &now.to_string())?;
        set("x-quarterdeck-id", &message.id)?;
        if let Some(secret) = secret {
            set("x-quarterdeck-signature", &signature(secret, now, &body))?;
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.client.post(&Target { uri: url.clone() }, headers, body).await
    }
}

/// Over the time, a dot, and the body: an old message cannot be sent again under a new time.
fn signature(secret: &str, now_s: u64, body: &[u8]) -> String {
    let key = Key::new(HMAC_SHA256, secret.as_bytes());
    let signed = [now_s.to_string().as_bytes(), b".", body].concat();
    format!("sha256={}", data_encoding::HEXLOWER.encode(sign(&key, &signed).as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_any_other_library() {
        // printf '1800000000.{}' | openssl dgst -sha256 -hmac secret
        let expected = "sha256=bb7079132825ac793cea8c013c1dd24d926b9b02132245b10588d9e5c0df70d7";
        assert_eq!(signature("secret", 1_800_000_000, b"{}"), expected);
    }
}
