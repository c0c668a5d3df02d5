//! The key by which push services know us (VAPID): made once, and signs a short token for each.

use std::path::Path;

use data_encoding::BASE64URL_NOPAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

use super::private_file::PrivateFile;
use crate::Error;

/// How long a signature of ours is good for a push service; they take a day at most.
const PUSH_TOKEN_LIVES_S: u64 = 12 * 60 * 60;

#[derive(Debug)]
pub struct PushKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl PushKey {
    /// The one in the folder, or a new one that is on disk before anybody subscribes with it.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let file = PrivateFile::at(folder.join("push-key"));
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = match file.read()? {
            Some(text) => BASE64URL_NOPAD.decode(text.trim().as_bytes()).unwrap_or_default(),
            None => {
                let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random);
                // Without random numbers nothing on this machine is safe.
                let made = made.expect("the system gives random numbers");
                file.write(BASE64URL_NOPAD.encode(made.as_ref()).as_bytes())?;
                made.as_ref().to_vec()
            }
        };
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, &document, &random);
        let pair = pair.map_err(|_| Error::PushKey { path: file.path().to_owned() })?;
        Ok(Self { pair, random })
    }

    /// The public half: an uncompressed point, as browsers take it.
    pub fn public(&self) -> String {
        BASE64URL_NOPAD.encode(self.pair.public_key().as_ref())
    }

    /// The value of `Authorization` for a push service (RFC 8292).
    pub fn authorization(&self, audience: &str, contact: &str, now_s: u64) -> String {
        let claims = json!({"aud": audience, "exp": now_s + PUSH_TOKEN_LIVES_S, "sub": contact});
        let head = BASE64URL_NOPAD.encode(br#"{"typ":"JWT","alg":"ES256"}"#);
        let signed = format!("{head}.{}", BASE64URL_NOPAD.encode(claims.to_string().as_bytes()));
        let signature = self.pair.sign(&self.random, signed.as_bytes());
        let signature = signature.expect("the system gives random numbers");
        let signature = BASE64URL_NOPAD.encode(signature.as_ref());
        format!("vapid t={signed}.{signature}, k={}", self.public())
    }
}
