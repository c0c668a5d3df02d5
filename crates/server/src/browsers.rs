//! Browsers that may come in: a link that works once, and the key it is traded for.
//!
//! Keys are kept beside the tokens, in a file that only this user can read. A browser shows a proof
//! that it has its key, never the key (see `browser_key`). A browser that leaves the list is out at
//! once: its leases end, and with them its streams.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use qd_host::bounded_file::{Links, read_regular_text};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tracing::warn;
use utoipa::ToSchema;

use crate::Error;
use crate::auth::{Scope, random_hex, same};
use crate::browser_key::{browser_proof, daemon_proof};
use crate::limits::{
    BROWSER_LIVES_S, BROWSER_NAME_BYTES_MAX, BROWSERS_FILE_BYTES_MAX, BROWSERS_MAX, LINK_LIVES_S,
    LINKS_MAX, WRONG_CODES_MAX,
};
use crate::sign_in_file::SignInFile;
use crate::sign_in_lease::Lease;

#[derive(Debug)]
pub struct Browsers {
    path: PathBuf,
    /// New with each start: proofs for an earlier one are worth nothing.
    challenge: String,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    browsers: Vec<Browser>,
    links: Vec<Link>,
    /// Wrong codes since the minute that the first of them was tried in.
    wrong: (u64, u32),
}

#[derive(Serialize, Deserialize)]
struct Browser {
    /// For those who speak of it.
    id: String,
    /// Earlier versions kept the value of a cookie here, as `secret`. Any program with a port on
    /// this machine may have been sent it, so such a list is not read.
    key: String,
    scope: Scope,
    name: String,
    since_s: u64,
    seen_s: u64,
    /// What its leases wait on: it goes with the browser.
    #[serde(skip)]
    listed: watch::Sender<()>,
}

struct Link {
    code: String,
    scope: Scope,
    until_s: u64,
    /// Removed with the link.
    file: Option<SignInFile>,
}

/// A browser, as others may know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrowserView {
    pub id: String,
    pub name: String,
    pub scope: Scope,
    pub since_s: u64,
    pub seen_s: u64,
}

/// What becomes of a code.
#[derive(Debug, PartialEq, Eq)]
pub enum Trade {
    Key { browser: String, key: String },
    Wrong,
    TooManyGuesses,
}

impl Browsers {
    /// Reads who signed in. A file that cannot be understood costs everybody a new sign-in.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("browsers.json");
        let browsers = match read_regular_text(&path, BROWSERS_FILE_BYTES_MAX, Links::Followed) {
            Ok(text) => serde_json::from_str(&text).unwrap_or_else(|error| {
                warn!(%error, path = %path.display(), "browsers have to sign in again");
                Vec::new()
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(Error::Tokens { path, source }),
        };
        let failed = |source| Error::Tokens { path: path.clone(), source };
        let challenge = random_hex::<16>().map_err(failed)?;
        Ok(Self { path, challenge, book: Mutex::new(Book { browsers, ..Book::default() }) })
    }

    /// A code that lets one browser in, once and soon.
    pub fn link(&self, scope: Scope, now_s: u64) -> Result<String, Error> {
        let code = random_hex::<16>().map_err(|source| self.failed(source))?;
        let mut book = self.book();
        book.links.retain(|link| link.until_s > now_s);
        if book.links.len() == LINKS_MAX {
            book.links.remove(0);
        }
        let until_s = now_s + LINK_LIVES_S;
        book.links.push(Link { code: code.clone(), scope, until_s, file: None });
        Ok(code)
    }

    /// The file goes with the code's link. Where the link is gone already, so is the file.
    pub fn attach(&self, code: &str, file: SignInFile) {
        let mut book = self.book();
        if let Some(link) = book.links.iter_mut().find(|link| same(&link.code, code)) {
            link.file = Some(file);
        }
    }

    /// The link is left without its file.
    pub fn detach(&self, code: &str) {
        let mut book = self.book();
        if let Some(link) = book.links.iter_mut().find(|link| same(&link.code, code)) {
            link.file = None;
        }
    }

    /// Trades a code for a key. It is on disk before the browser gets it.
    pub fn trade(&self, code: &str, name: &str, now_s: u64) -> Result<Trade, Error> {
        let mut book = self.book();
        book.links.retain(|link| link.until_s > now_s);
        let Some(found) = book.links.iter().position(|link| same(&link.code, code)) else {
            // The right one is found however many wrong ones came before it.
            if book.guesses(now_s) >= WRONG_CODES_MAX {
                return Ok(Trade::TooManyGuesses);
            }
            book.wrong.1 += 1;
            return Ok(Trade::Wrong);
        };
        let scope = book.links.remove(found).scope;
        let id = random_hex::<4>().map_err(|source| self.failed(source))?;
        let key = random_hex::<32>().map_err(|source| self.failed(source))?;
        let name = name.chars().filter(|letter| !letter.is_control()).collect::<String>();
        let name = name[..name.floor_char_boundary(BROWSER_NAME_BYTES_MAX)].to_owned();
        let traded = Trade::Key { browser: id.clone(), key: key.clone() };
        let listed = watch::Sender::default();
        let browser = Browser { id, key, scope, name, since_s: now_s, seen_s: now_s, listed };
        book.browsers.retain(|browser| !browser.is_stale(now_s));
        if book.browsers.len() == BROWSERS_MAX {
            let oldest = book.browsers.iter().enumerate().min_by_key(|(_, known)| known.seen_s);
            let oldest = oldest.map(|(at, _)| at);
            oldest.map(|at| book.browsers.remove(at));
        }
        book.browsers.push(browser);
        self.write(&book)?;
        Ok(traded)
    }

    /// The sign-in of a browser that shows `1f2e3d4c.9a8b…`: its id, and its proof for one of these
    /// hosts.
    pub fn lease(&self, shown: &str, hosts: &[String], now_s: u64) -> Option<Lease> {
        const DAY_S: u64 = 24 * 60 * 60;
        let (id, proof) = shown.split_once('.')?;
        let mut book = self.book();
        let known = book.known(id, now_s)?;
        let fits = |host: &String| same(&browser_proof(&known.key, host, &self.challenge), proof);
        if !hosts.iter().any(fits) {
            return None;
        }
        let name = format!("{} ({})", known.name, known.id);
        let lease = Lease::new(known.id.clone(), name, known.scope, known.listed.subscribe());
        if now_s.saturating_sub(known.seen_s) >= DAY_S {
            known.seen_s = now_s;
            // It stays for as long as it would have stayed anyway.
            if let Err(error) = self.write(&book) {
                warn!(%error, "when a browser was last seen is not kept");
            }
        }
        Some(lease)
    }

    /// The challenge of this run, and our own proof for a browser that asks who we are.
    pub fn greet(&self, id: &str, host: &str, nonce: &str, now_s: u64) -> Option<(String, String)> {
        let mut book = self.book();
        let known = book.known(id, now_s)?;
        let proof = daemon_proof(&known.key, host, &self.challenge, nonce);
        Some((self.challenge.clone(), proof))
    }

    pub fn is_listed(&self, id: &str) -> bool {
        self.book().browsers.iter().any(|known| known.id == id)
    }

    pub fn list(&self) -> Vec<BrowserView> {
        self.book().browsers.iter().map(Browser::view).collect()
    }

    /// False if there is none of that id.
    pub fn forget(&self, id: &str) -> Result<bool, Error> {
        self.forget_those(|browser| browser.id == id)
    }

    /// Signs those out that stayed away for too long.
    pub fn expire(&self, now_s: u64) -> Result<bool, Error> {
        self.forget_those(|browser| browser.is_stale(now_s))
    }

    fn forget_those(&self, which: impl Fn(&Browser) -> bool) -> Result<bool, Error> {
        let mut book = self.book();
        let before = book.browsers.len();
        book.browsers.retain(|browser| !which(browser));
        let any = book.browsers.len() < before;
        if any {
            self.write(&book)?;
        }
        Ok(any)
    }

    fn write(&self, book: &Book) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(&book.browsers).expect("our own types are JSON");
        let fresh = self.path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&fresh).map_err(|source| self.failed(source))?;
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        written.and_then(|()| fs::rename(&fresh, &self.path)).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Tokens { path: self.path.clone(), source }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn known(&mut self, id: &str, now_s: u64) -> Option<&mut Browser> {
        self.browsers.iter_mut().find(|known| known.id == id && !known.is_stale(now_s))
    }

    /// Wrong codes within the present minute.
    fn guesses(&mut self, now_s: u64) -> u32 {
        let (minute, count) = self.wrong;
        if minute != now_s / 60 {
            self.wrong = (now_s / 60, 0);
            return 0;
        }
        count
    }
}

impl Browser {
    fn is_stale(&self, now_s: u64) -> bool {
        now_s.saturating_sub(self.seen_s) > BROWSER_LIVES_S
    }

    fn view(&self) -> BrowserView {
        let Self { id, key: _, scope, name, since_s, seen_s, listed: _ } = self;
        let (id, name) = (id.clone(), name.clone());
        BrowserView { id, name, scope: *scope, since_s: *since_s, seen_s: *seen_s }
    }
}

impl std::fmt::Debug for Browser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view().fmt(f)
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("scope", &self.scope).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let folder =
                std::env::temp_dir().join(format!("qd-browsers-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder");
            Self(folder)
        }

        fn open(&self) -> Browsers {
            Browsers::open(&self.0).expect("opened")
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const HOST: &str = "127.0.0.1:47892";

    /// A browser's id and key.
    fn signed_in(browsers: &Browsers, scope: Scope, now_s: u64) -> (String, String) {
        let code = browsers.link(scope, now_s).expect("a code");
        match browsers.trade(&code, "Firefox", now_s).expect("traded") {
            Trade::Key { browser, key } => (browser, key),
            other @ (Trade::Wrong | Trade::TooManyGuesses) => panic!("{other:?}"),
        }
    }

    /// What the browser shows on its page at this host.
    fn shown(browsers: &Browsers, (id, key): &(String, String), host: &str) -> String {
        format!("{id}.{}", browser_proof(key, host, &browsers.challenge))
    }

    fn scope_of(browsers: &Browsers, browser: &(String, String), now_s: u64) -> Option<Scope> {
        let shown = shown(browsers, browser, HOST);
        browsers.lease(&shown, &[HOST.to_owned()], now_s).map(|lease| lease.scope)
    }

    #[test]
    fn a_code_works_once_and_the_key_survives_a_restart() {
        let place = Place::new("once");
        let browsers = place.open();
        let code = browsers.link(Scope::Operate, NOW).expect("a code");
        let traded = browsers.trade(&code, "Fire\nfox", NOW).expect("traded");
        let Trade::Key { browser, key } = traded else { panic!("it was right") };
        let own = (browser, key);
        assert_eq!(browsers.trade(&code, "Firefox", NOW).expect("looked at"), Trade::Wrong);
        assert_eq!(scope_of(&browsers, &own, NOW), Some(Scope::Operate));
        let browsers = place.open();
        assert_eq!(scope_of(&browsers, &own, NOW + 1), Some(Scope::Operate));
        let [browser] = &browsers.list()[..] else { panic!("one") };
        assert_eq!(browser.name, "Firefox");
        assert!(browsers.forget(&browser.id).expect("written"));
        assert_eq!(scope_of(&browsers, &own, NOW), None);
        assert_eq!(scope_of(&place.open(), &own, NOW), None);
    }

    #[test]
    fn a_proof_is_for_one_host_and_one_run() {
        let place = Place::new("proof");
        let browsers = place.open();
        let own = signed_in(&browsers, Scope::Admin, NOW);
        let hosts = [HOST.to_owned(), "box.example.ts.net".to_owned()];
        let lease = |browsers: &Browsers, shown: &str| {
            browsers.lease(shown, &hosts, NOW).map(|lease| lease.browser)
        };
        for host in &hosts {
            let good = shown(&browsers, &own, host);
            assert_eq!(lease(&browsers, &good), Some(own.0.clone()));
        }
        let good = shown(&browsers, &own, HOST);
        let elsewhere = shown(&browsers, &own, "127.0.0.1:47893");
        let bare = format!("{}.{}", own.0, own.1);
        for wrong in [&elsewhere, &bare, &own.1, &good[1..], &good[..good.len() - 1], ".", ""] {
            assert_eq!(lease(&browsers, wrong), None, "{wrong}");
        }
        let (challenge, proof) = browsers.greet(&own.0, HOST, "00", NOW).expect("known");
        assert_eq!(proof, daemon_proof(&own.1, HOST, &challenge, "00"));
        assert_eq!(lease(&browsers, &format!("{}.{proof}", own.0)), None, "ours is not theirs");
        assert_eq!(browsers.greet("0", HOST, "00", NOW), None);
        assert_eq!(lease(&place.open(), &good), None, "after a restart");
    }

    #[test]
    fn a_list_of_cookies_is_not_read() {
        let place = Place::new("cookies");
        let (id, secret) = ("01020304", "ab".repeat(32));
        let old = format!(
            r#"[{{"id":"{id}","secret":"{secret}","scope":"admin","name":"","since_s":1,"seen_s":{NOW}}}]"#
        );
        fs::write(place.0.join("browsers.json"), old).expect("written");
        let browsers = place.open();
        assert_eq!(browsers.list(), []);
        assert_eq!(scope_of(&browsers, &(id.to_owned(), secret), NOW), None);
    }

    #[test]
    fn a_code_that_waited_too_long_opens_nothing() {
        let place = Place::new("late");
        let browsers = place.open();
        let code = browsers.link(Scope::Admin, NOW).expect("a code");
        let late = NOW + LINK_LIVES_S;
        assert_eq!(browsers.trade(&code, "", late).expect("looked at"), Trade::Wrong);
    }

    #[test]
    fn nobody_guesses_codes_for_long_and_the_right_one_still_works() {
        let place = Place::new("guess");
        let browsers = place.open();
        let code = browsers.link(Scope::Admin, NOW).expect("a code");
        for _ in 0..WRONG_CODES_MAX {
            assert_eq!(browsers.trade("0", "", NOW).expect("looked at"), Trade::Wrong);
        }
        assert_eq!(browsers.trade("0", "", NOW).expect("looked at"), Trade::TooManyGuesses);
        let right = browsers.trade(&code, "", NOW).expect("looked at");
        assert!(matches!(right, Trade::Key { .. }));
        assert_eq!(browsers.trade("0", "", NOW + 60).expect("looked at"), Trade::Wrong);
    }

    #[test]
    fn a_browser_that_stays_away_is_forgotten_and_one_that_comes_is_not() {
        let place = Place::new("stale");
        let browsers = place.open();
        let own = signed_in(&browsers, Scope::Observe, NOW);
        let mut now = NOW;
        for _ in 0..4 {
            now += BROWSER_LIVES_S / 2;
            assert_eq!(scope_of(&browsers, &own, now), Some(Scope::Observe));
            assert!(!browsers.expire(now).expect("looked at"));
        }
        let shown = shown(&browsers, &own, HOST);
        let lease = browsers.lease(&shown, &[HOST.to_owned()], now).expect("known");
        now += BROWSER_LIVES_S + 1;
        assert_eq!(scope_of(&browsers, &own, now), None);
        assert!(!lease.has_ended());
        assert!(browsers.expire(now).expect("written"));
        assert!(lease.has_ended() && !browsers.is_listed(&own.0));
    }

    #[test]
    fn browsers_and_links_are_bounded() {
        let place = Place::new("many");
        let browsers = place.open();
        let first = signed_in(&browsers, Scope::Observe, NOW);
        let shown = shown(&browsers, &first, HOST);
        let lease = browsers.lease(&shown, &[HOST.to_owned()], NOW).expect("known");
        for nth in 1..=BROWSERS_MAX as u64 {
            assert!(!lease.has_ended());
            signed_in(&browsers, Scope::Observe, NOW + nth);
        }
        assert_eq!(browsers.list().len(), BROWSERS_MAX);
        assert!(lease.has_ended() && !browsers.is_listed(&first.0));
        let oldest = browsers.link(Scope::Observe, NOW).expect("a code");
        for _ in 0..LINKS_MAX {
            browsers.link(Scope::Observe, NOW).expect("a code");
        }
        assert_eq!(browsers.trade(&oldest, "", NOW).expect("looked at"), Trade::Wrong);
    }

    #[test]
    fn a_damaged_file_costs_a_sign_in_and_nothing_else() {
        let place = Place::new("damaged");
        fs::write(place.0.join("browsers.json"), "[{\"id\":").expect("written");
        let browsers = place.open();
        let own = signed_in(&browsers, Scope::Observe, NOW);
        assert_eq!(scope_of(&place.open(), &own, NOW), Some(Scope::Observe));
    }
}
