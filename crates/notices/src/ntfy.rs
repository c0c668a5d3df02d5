//! A server of the ntfy kind: the text as the body, the rest in headers. It may be somebody else's
//! server, so no secret and, unless the operator wants it, no word of an agent goes there.

use data_encoding::BASE64;
use hyper::header::{AUTHORIZATION, HeaderName};
use hyper::http::{HeaderMap, HeaderValue};

use super::http::{Client, Target};
use super::message::{Message, Pressing};
use super::outbox::Failure;
use super::settings::NtfySettings;

#[derive(Debug)]
pub struct Ntfy {
    pub settings: NtfySettings,
    pub client: Client,
    /// The page's address.
    pub link: String,
}

impl Ntfy {
    /// What is settled is not told: such a server has no common way to take a message back.
    pub async fn carry(&self, message: &Message) -> Result<(), Failure> {
        if message.closed {
            return Ok(());
        }
        let NtfySettings { url, token, details } = &self.settings;
        let link = format!("{}{}", self.link.trim_end_matches('/'), message.path);
        let mut headers = HeaderMap::new();
        let mut set = |name: HeaderName, value: &str| {
            let value = HeaderValue::from_str(value);
            let value = value.map_err(|_| Failure::Refused("a header that is none".to_owned()))?;
            headers.insert(name, value);
            Ok(())
        };
        set(HeaderName::from_static("title"), &spelled(&message.title))?;
        set(HeaderName::from_static("priority"), priority(message.pressing()))?;
        set(HeaderName::from_static("tags"), tag(message.kind))?;
        set(HeaderName::from_static("click"), &link)?;
        set(HeaderName::from_static("actions"), &format!("view, Open, {link}"))?;
        if let Some(token) = token {
            set(AUTHORIZATION, &format!("Bearer {token}"))?;
        }
        let text = match *details && !message.text.is_empty() {
            true => &message.text,
            false => &message.title,
        };
        self.client.post(&Target { uri: url.clone() }, headers, text.clone().into_bytes()).await
    }
}

fn priority(pressing: Pressing) -> &'static str {
    match pressing {
        Pressing::High => "4",
        Pressing::Normal => "3",
        Pressing::Low => "2",
    }
}

/// ntfy draws these as signs.
fn tag(kind: &str) -> &'static str {
    match kind {
        "permission" | "plan" => "raised_hand",
        "question" => "question",
        "error" => "x",
        "limit" => "hourglass",
        "delivered" => "white_check_mark",
        _ => "bell",
    }
}

/// A header holds ASCII; other letters are written as mail writes them (RFC 2047).
fn spelled(text: &str) -> String {
    match text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        true => text.to_owned(),
        false => format!("=?UTF-8?B?{}?=", BASE64.encode(text.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn a_title_of_any_letters_fits_a_header() {
        assert_eq!(spelled("atlas: needs permission"), "atlas: needs permission");
        assert_eq!(spelled("für"), "=?UTF-8?B?ZsO8cg==?=");
        assert!(!spelled("a\r\nx: y").contains('\n'));
    }
}
