//! What a browser and the daemon prove to each other. Pure.
//!
//! Both hold the browser's key, which is sent once, when the browser signs in. A cookie would go to
//! every port of the machine; the key stays in storage that is bound to our port, and what the page
//! sends in its place is a proof for one host and one run of the daemon. Another program that takes
//! our port while the daemon is down gets proofs that are worthless when the daemon is back, and
//! cannot prove to the page that it is the daemon.

use data_encoding::HEXLOWER;
use ring::hmac::{HMAC_SHA256, Key, sign};

/// The header in which a browser sends its id and its proof: `1f2e3d4c.9a8b…`.
pub const BROWSER_HEADER: &str = "x-quarterdeck-browser";

/// That a page of `host` has the key.
pub fn browser_proof(key: &str, host: &str, challenge: &str) -> String {
    signed(key, &format!("quarterdeck browser\n{host}\n{challenge}"))
}

/// That the daemon, reached as `host`, has the key. The nonce is the page's.
pub fn daemon_proof(key: &str, host: &str, challenge: &str, nonce: &str) -> String {
    signed(key, &format!("quarterdeck daemon\n{host}\n{challenge}\n{nonce}"))
}

/// The page's nonce: 16 bytes in hex.
pub fn is_nonce(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn signed(key: &str, text: &str) -> String {
    HEXLOWER.encode(sign(&Key::new(HMAC_SHA256, key.as_bytes()), text.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page's test has the same figures (web/tests/unit/browser_key.test.ts).
    #[test]
    fn proofs_are_what_the_page_computes() {
        let (key, host, challenge) = ("ab".repeat(32), "127.0.0.1:47892", "cd".repeat(16));
        let page = browser_proof(&key, host, &challenge);
        let daemon = daemon_proof(&key, host, &challenge, &"0".repeat(32));
        assert_eq!(page, "c671132e9f879f87ce009e205168c0c8724ec11914ed584addc00ec59e90c6ce");
        assert_eq!(daemon, "e903b0940d0dc6e470c69dc3ca9f2b1713977be8d5427f92fadc35bbb3dabe31");
    }
}
