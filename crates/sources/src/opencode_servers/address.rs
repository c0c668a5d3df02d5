//! Where a server listens, and what it wants to hear first.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use data_encoding::BASE64;

/// A server to connect to. What is shown of it has no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// `host:port`.
    pub host: String,
    /// The value of the `authorization` header.
    pub authorization: Option<String>,
}

impl Address {
    /// `http://[user[:password]@]host[:port]`. `None` for anything else: there is no TLS here.
    pub fn of_url(url: &str) -> Option<Self> {
        let rest = url.trim().strip_prefix("http://")?;
        let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (login, host) = match rest.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, rest),
        };
        let has_port = host.rsplit_once(':').is_some_and(|(name, port)| {
            !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty()
        });
        let fine = |byte: u8| byte.is_ascii_graphic() && !br#"\"<>^`{|}"#.contains(&byte);
        if host.is_empty() || !host.bytes().all(fine) {
            return None;
        }
        let host = if has_port { host.to_owned() } else { format!("{host}:80") };
        let authorization = login.map(|login| match login.split_once(':') {
            Some((user, password)) => basic(user, password),
            None => basic(login, ""),
        });
        Some(Self { host, authorization })
    }

    /// A socket that a process listens on. `None` where only other machines reach it.
    pub fn of_listener(listener: SocketAddr, login: Option<(&str, &str)>) -> Option<Self> {
        let ip = listener.ip();
        let reached = match (ip.is_loopback(), ip.is_unspecified()) {
            (true, _) => listener,
            // One of the newer family is for both, nearly always.
            (false, true) => ([127, 0, 0, 1], listener.port()).into(),
            (false, false) => return None,
        };
        let authorization = login.map(|(user, password)| basic(user, password));
        Some(Self { host: reached.to_string(), authorization })
    }

    pub fn url(&self) -> Arc<str> {
        format!("http://{}", self.host).into()
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.host).finish()
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{user}:{password}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: Option<(&str, Option<&str>)>) {
        let address = Address::of_url(url);
        let found = address.as_ref().map(|a| (a.host.as_str(), a.authorization.as_deref()));
        assert_eq!(found, expected, "{url}");
    }

    #[test]
    fn a_url_may_have_a_login_and_must_be_plain_http() {
        check("http://127.0.0.1:4096", Some(("127.0.0.1:4096", None)));
        check(" http://localhost/x?y ", Some(("localhost:80", None)));
        check("http://[::1]:4096/", Some(("[::1]:4096", None)));
        check("http://ann:p:w@box:1", Some(("box:1", Some("Basic YW5uOnA6dw=="))));
        for url in ["https://box:1", "box:1", "http://", "http://a b", "http://x\r\ny", ""] {
            check(url, None);
        }
    }

    #[test]
    fn only_loopback_is_made_of_a_listener() {
        let of = |listener: &str| {
            Address::of_listener(listener.parse().unwrap(), None).map(|address| address.host)
        };
        assert_eq!(of("127.0.0.1:7").as_deref(), Some("127.0.0.1:7"));
        assert_eq!(of("127.0.0.53:7").as_deref(), Some("127.0.0.53:7"));
        assert_eq!(of("[::1]:7").as_deref(), Some("[::1]:7"));
        assert_eq!(of("0.0.0.0:7").as_deref(), Some("127.0.0.1:7"));
        assert_eq!(of("[::]:7").as_deref(), Some("127.0.0.1:7"));
        assert_eq!(of("192.168.1.2:7"), None);
        assert_eq!(of("[fe80::1]:7"), None);
    }

    #[test]
    fn a_password_is_never_shown() {
        let address = Address::of_url("http://ann:secret@box:1").unwrap();
        assert_eq!(format!("{address:?} {}", address.url()), "Address(\"box:1\") http://box:1");
    }
}
