//! Somebody who is told: a plain HTTP server on the loopback that takes what it is sent and answers
//! as the test wants, and a browser's half of Web Push.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver as Inbox, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use qd_notices::Subscription;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hmac::{HMAC_SHA256, Key, sign};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey as Verifier};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

pub struct Receiver {
    pub port: u16,
    inbox: Inbox<Received>,
    answers: Arc<Mutex<VecDeque<u16>>>,
    connections: Arc<AtomicUsize>,
}

/// One POST.
#[derive(Debug)]
pub struct Received {
    pub path: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Receiver {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (told, inbox) = channel();
        let answers = Arc::new(Mutex::new(VecDeque::new()));
        let shared = answers.clone();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                if serve(stream, &told, &shared).is_none() {
                    return;
                }
            }
        });
        Self { port, inbox, answers, connections }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The next answers; after them everything is taken.
    pub fn answer(&self, statuses: &[u16]) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).extend(statuses);
    }

    pub fn next(&self) -> Received {
        let received = self.inbox.recv_timeout(PATIENCE).expect("something was sent");
        self.connections.fetch_sub(1, Ordering::SeqCst);
        received
    }

    /// Whether nobody has connected but those who were read. The listener takes connections in their
    /// order, so one of our own shows that all before it were counted.
    pub fn nobody_came(&self) -> bool {
        let mut own = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        own.write_all(b"POST /own HTTP/1.1\r\ncontent-length: 0\r\n\r\n").expect("sent");
        let came = self.inbox.recv_timeout(PATIENCE).expect("our own came");
        came.path == "/own" && self.connections.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

/// None when the test is over.
fn serve(
    mut stream: TcpStream,
    told: &Sender<Received>,
    answers: &Mutex<VecDeque<u16>>,
) -> Option<()> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    let head_len = loop {
        match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(at) => break at + 4,
            None => match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return Some(()),
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            },
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_len]).into_owned();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let len = headers.iter().find(|(name, _)| name == "content-length")?.1.parse::<usize>().ok()?;
    while bytes.len() < head_len + len {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return Some(()),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    let status = answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or(201);
    let told = told.send(Received { path, headers, body: bytes[head_len..].to_vec() });
    let answer =
        format!("HTTP/1.1 {status} Said\r\ncontent-length: 3\r\nlocation: /elsewhere\r\n\r\nwhy");
    stream.write_all(answer.as_bytes()).ok();
    told.ok()
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// What the VAPID token claims, after its signature was checked against the key it names.
    pub fn vapid(&self, public_key: &str) -> Value {
        let parts = self.header("authorization").strip_prefix("vapid t=").expect("VAPID");
        let (token, key) = parts.split_once(", k=").expect("a token and a key");
        assert_eq!(key, public_key);
        let (signed, signature) = token.rsplit_once('.').expect("a signature");
        let decoded = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).expect("base64url");
        let verifier = Verifier::new(&ECDSA_P256_SHA256_FIXED, decoded(key));
        verifier.verify(signed.as_bytes(), &decoded(signature)).expect("a good signature");
        let (head, claims) = signed.split_once('.').expect("a head");
        let head: Value = serde_json::from_slice(&decoded(head)).expect("JSON");
        assert_eq!(head, json!({"typ": "JWT", "alg": "ES256"}));
        serde_json::from_slice(&decoded(claims)).expect("JSON")
    }

    /// Whether the signature of a webhook is that of the secret.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let time = self.header("x-quarterdeck-timestamp").as_bytes();
        let signed = [time, b".", &self.body].concat();
        let tag = sign(&Key::new(HMAC_SHA256, secret.as_bytes()), &signed);
        let expected = format!("sha256={}", data_encoding::HEXLOWER.encode(tag.as_ref()));
        self.header("x-quarterdeck-signature") == expected
    }
}

/// A browser that has subscribed. It can read one message: the library gives keys away once.
pub struct Browser {
    private: EphemeralPrivateKey,
    point: Vec<u8>,
    secret: [u8; 16],
}

impl Browser {
    pub fn new() -> Self {
        let private =
            EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).expect("a key");
        let point = private.compute_public_key().expect("a point").as_ref().to_vec();
        Self { private, point, secret: *b"sixteen byte key" }
    }

    pub fn subscription(&self, endpoint: &str) -> Subscription {
        let encoded = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        let keys = json!({"p256dh": encoded(&self.point), "auth": encoded(&self.secret)});
        let wanted = json!({"endpoint": endpoint, "keys": keys, "label": "A \u{202e}phone"});
        serde_json::from_value(wanted).expect("a subscription")
    }

    /// RFC 8291 from the other side, with HKDF spelled out by HMAC.
    pub fn read(self, body: &[u8]) -> Value {
        let (salt, rest) = body.split_at(16);
        let (size, rest) = rest.split_at(4);
        let (their_len, rest) = rest.split_first().expect("a length");
        let (theirs, record) = rest.split_at(usize::from(*their_len));
        assert!(u32::from_be_bytes(size.try_into().expect("four")) as usize >= record.len());
        let info = [b"WebPush: info\0", &self.point[..], theirs].concat();
        let secret = self.secret;
        let agreed = UnparsedPublicKey::new(&ECDH_P256, theirs);
        let key = agree_ephemeral(self.private, &agreed, |shared| {
            expand(&extract(&secret, shared), &info)
        });
        let extracted = extract(salt, &key.expect("an agreement"));
        let cek = &expand(&extracted, b"Content-Encoding: aes128gcm\0")[..16];
        let nonce = &expand(&extracted, b"Content-Encoding: nonce\0")[..12];
        let mut plain = record.to_vec();
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, cek).expect("a key"));
        let nonce = Nonce::try_assume_unique_for_key(nonce).expect("a nonce");
        let plain = key.open_in_place(nonce, Aad::empty(), &mut plain).expect("it is for us");
        assert_eq!(plain.last(), Some(&2), "the last record");
        serde_json::from_slice(&plain[..plain.len() - 1]).expect("JSON")
    }
}

fn extract(salt: &[u8], from: &[u8]) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, salt), from).as_ref().to_vec()
}

fn expand(extracted: &[u8], info: &[u8]) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, extracted), &[info, &[1]].concat()).as_ref().to_vec()
}
