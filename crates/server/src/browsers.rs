//! Browsers that may come in: a link that works once, and the cookie it is traded for.
//!
//! Cookies are kept beside the tokens, in a file that only this user can read. A browser that is
//! forgotten is out with its next request.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use qd_broker::bounded_file::{Links, read_regular_text};
use serde::{Deserialize, Serialize};
use tracing::warn;
use utoipa::ToSchema;

use crate::Error;
use crate::auth::{Scope, random_hex, same};
use crate::limits::{
    BROWSER_NAME_BYTES_MAX, BROWSERS_FILE_BYTES_MAX, BROWSERS_MAX, COOKIE_LIVES_S, LINK_LIVES_S,
    LINKS_MAX, WRONG_CODES_MAX,
};

/// The cookie's name.
pub const COOKIE: &str = "quarterdeck";

#[derive(Debug)]
pub struct Browsers {
    path: PathBuf,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    browsers: Vec<Browser>,
    links: Vec<Link>,
    /// Wrong codes since the minute that the first of them was tried in.
    wrong: (u64, u32),
}

#[derive(Clone, Serialize, Deserialize)]
struct Browser {
    /// For those who speak of it.
    id: String,
    secret: String,
    scope: Scope,
    name: String,
    since_s: u64,
    seen_s: u64,
}

struct Link {
    code: String,
    scope: Scope,
    until_s: u64,
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
    /// The cookie's value.
    Cookie(String),
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
        Ok(Self { path, book: Mutex::new(Book { browsers, ..Book::default() }) })
    }

    /// A code that lets one browser in, once and soon.
    pub fn link(&self, scope: Scope, now_s: u64) -> Result<String, Error> {
        let code = random_hex::<16>().map_err(|source| self.failed(source))?;
        let mut book = self.book();
        book.links.retain(|link| link.until_s > now_s);
        if book.links.len() == LINKS_MAX {
            book.links.remove(0);
        }
        book.links.push(Link { code: code.clone(), scope, until_s: now_s + LINK_LIVES_S });
        Ok(code)
    }

    /// Trades a code for a cookie. It is on disk before the browser gets it.
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
        let secret = random_hex::<32>().map_err(|source| self.failed(source))?;
        let name = name.chars().filter(|letter| !letter.is_control()).collect::<String>();
        let name = name[..name.floor_char_boundary(BROWSER_NAME_BYTES_MAX)].to_owned();
        let browser =
            Browser { id, secret: secret.clone(), scope, name, since_s: now_s, seen_s: now_s };
        book.browsers.retain(|browser| !browser.is_stale(now_s));
        if book.browsers.len() == BROWSERS_MAX {
            let oldest = book.browsers.iter().enumerate().min_by_key(|(_, known)| known.seen_s);
            let oldest = oldest.map(|(at, _)| at);
            oldest.map(|at| book.browsers.remove(at));
        }
        book.browsers.push(browser);
        self.write(&book)?;
        Ok(Trade::Cookie(secret))
    }

    /// What the browser with this cookie may do.
    pub fn scope_of(&self, cookie: &str, now_s: u64) -> Option<Scope> {
        const DAY_S: u64 = 24 * 60 * 60;
        let mut book = self.book();
        let mut known = book.browsers.iter_mut().filter(|known| !known.is_stale(now_s));
        let known = known.find(|known| same(&known.secret, cookie))?;
        let scope = known.scope;
        if now_s.saturating_sub(known.seen_s) >= DAY_S {
            known.seen_s = now_s;
            // It stays for as long as it would have stayed anyway.
            if let Err(error) = self.write(&book) {
                warn!(%error, "when a browser was last seen is not kept");
            }
        }
        Some(scope)
    }

    /// What the browser with this cookie calls itself, and its id.
    pub fn name_of(&self, cookie: &str) -> Option<String> {
        let book = self.book();
        let known = book.browsers.iter().find(|known| same(&known.secret, cookie))?;
        Some(format!("{} ({})", known.name, known.id))
    }

    pub fn list(&self) -> Vec<BrowserView> {
        self.book().browsers.iter().map(Browser::view).collect()
    }

    /// False if there is none of that id.
    pub fn forget(&self, id: &str) -> Result<bool, Error> {
        self.forget_those(|browser| browser.id == id)
    }

    pub fn sign_out(&self, cookie: &str) -> Result<bool, Error> {
        self.forget_those(|browser| same(&browser.secret, cookie))
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
        now_s.saturating_sub(self.seen_s) > COOKIE_LIVES_S
    }

    fn view(&self) -> BrowserView {
        let Self { id, secret: _, scope, name, since_s, seen_s } = self.clone();
        BrowserView { id, name, scope, since_s, seen_s }
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

    fn signed_in(browsers: &Browsers, scope: Scope, now_s: u64) -> String {
        let code = browsers.link(scope, now_s).expect("a code");
        match browsers.trade(&code, "Firefox", now_s).expect("traded") {
            Trade::Cookie(cookie) => cookie,
            other @ (Trade::Wrong | Trade::TooManyGuesses) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_code_works_once_and_the_cookie_survives_a_restart() {
        let place = Place::new("once");
        let browsers = place.open();
        let code = browsers.link(Scope::Operate, NOW).expect("a code");
        let Trade::Cookie(cookie) = browsers.trade(&code, "Fire\nfox", NOW).expect("traded") else {
            panic!("it was right");
        };
        assert_eq!(browsers.trade(&code, "Firefox", NOW).expect("looked at"), Trade::Wrong);
        assert_eq!(browsers.scope_of(&cookie, NOW), Some(Scope::Operate));
        let browsers = place.open();
        assert_eq!(browsers.scope_of(&cookie, NOW + 1), Some(Scope::Operate));
        assert_eq!(browsers.scope_of(&cookie[1..], NOW), None);
        assert_eq!(browsers.scope_of("", NOW), None);
        let [browser] = &browsers.list()[..] else { panic!("one") };
        assert_eq!(browser.name, "Firefox");
        assert!(browsers.forget(&browser.id).expect("written"));
        assert_eq!(browsers.scope_of(&cookie, NOW), None);
        assert_eq!(place.open().scope_of(&cookie, NOW), None);
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
        assert!(matches!(right, Trade::Cookie(_)));
        assert_eq!(browsers.trade("0", "", NOW + 60).expect("looked at"), Trade::Wrong);
    }

    #[test]
    fn a_browser_that_stays_away_is_forgotten_and_one_that_comes_is_not() {
        let place = Place::new("stale");
        let browsers = place.open();
        let cookie = signed_in(&browsers, Scope::Observe, NOW);
        let mut now = NOW;
        for _ in 0..4 {
            now += COOKIE_LIVES_S / 2;
            assert_eq!(browsers.scope_of(&cookie, now), Some(Scope::Observe));
        }
        assert_eq!(browsers.scope_of(&cookie, now + COOKIE_LIVES_S + 1), None);
    }

    #[test]
    fn browsers_and_links_are_bounded() {
        let place = Place::new("many");
        let browsers = place.open();
        let first = signed_in(&browsers, Scope::Observe, NOW);
        for nth in 1..=BROWSERS_MAX as u64 {
            signed_in(&browsers, Scope::Observe, NOW + nth);
        }
        assert_eq!(browsers.list().len(), BROWSERS_MAX);
        assert_eq!(browsers.scope_of(&first, NOW), None);
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
        let cookie = signed_in(&browsers, Scope::Observe, NOW);
        assert_eq!(place.open().scope_of(&cookie, NOW), Some(Scope::Observe));
    }
}
