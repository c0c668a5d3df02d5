//! The page: its files as they were built, and the addresses that show it.
//!
//! Files are looked up by name in a table inside the program: there is no folder to climb out of.
//! They hold no secret and are shown to anybody who may speak to us at all; what the page asks for
//! afterwards needs a token.

use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Router, response};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::error::Refusal;
use crate::routes::{Need, Route};
use crate::server::Server;

/// Addresses that show the page. It decides by itself what it shows there (web/src/route.ts).
const PAGES: [&str; 5] = ["/", "/history", "/sessions/{id}", "/sign-in", "/usage"];

/// Files that are not named by their content, and are asked for again each time.
const FILES: [&str; 7] = [
    "/icon-180.png",
    "/icon-192.png",
    "/icon-512.png",
    "/icon.svg",
    "/manifest.webmanifest",
    "/theme.js",
    "/worker.js",
];

/// Files that are named by their content: what has the name never changes.
const ASSETS: &str = "/assets/{file}";

/// The page's routes, for the guard's table: nobody needs a token for them.
pub const ROUTES: [Route; PAGES.len() + FILES.len() + 1] = {
    let mut routes = [Route { method: "GET", path: ASSETS, need: Need::Nothing }; _];
    let mut index = 0;
    while index < PAGES.len() {
        routes[index] = Route { method: "GET", path: PAGES[index], need: Need::Page };
        index += 1;
    }
    while index < PAGES.len() + FILES.len() {
        routes[index].path = FILES[index - PAGES.len()];
        index += 1;
    }
    routes
};

pub fn router() -> Router<Server> {
    let pages = PAGES.iter().fold(Router::new(), |router, path| router.route(path, get(index)));
    let files = FILES.iter().fold(pages, |router, path| router.route(path, get(file)));
    files.route(ASSETS, get(asset))
}

#[derive(RustEmbed)]
#[folder = "$OUT_DIR/page"]
struct Built;

async fn index(uri: Uri, headers: HeaderMap) -> Response {
    match at_localhost(&uri, &headers) {
        Some(address) => Redirect::temporary(&address).into_response(),
        None => shown("index.html", &headers, Lasts::UntilChanged),
    }
}

/// `localhost` may lead to another program, at ::1: the page lives at 127.0.0.1. The guard has let
/// the host pass, so what is behind its colon is our port.
fn at_localhost(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let host = headers.get(HOST)?.to_str().ok()?.to_ascii_lowercase();
    let port = host.strip_prefix("localhost:")?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Some(format!("http://127.0.0.1:{port}{path}"))
}

async fn file(uri: Uri, headers: HeaderMap) -> Response {
    shown(uri.path().trim_start_matches('/'), &headers, Lasts::UntilChanged)
}

async fn asset(Path(file): Path<String>, headers: HeaderMap) -> Response {
    shown(&format!("assets/{file}"), &headers, Lasts::ForEver)
}

#[derive(Debug, Clone, Copy)]
enum Lasts {
    UntilChanged,
    ForEver,
}

fn shown(name: &str, headers: &HeaderMap, lasts: Lasts) -> Response {
    let (Some(plain), Some(kind)) = (Built::get(name), kind(name)) else {
        return Refusal::NoSuchRoute.into_response();
    };
    let tag = tag(&plain);
    let mut answer = match headers.get(IF_NONE_MATCH).is_some_and(|known| known == tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => bytes(name, plain, headers),
    };
    let cache = match lasts {
        Lasts::UntilChanged => "no-cache",
        Lasts::ForEver => "public, max-age=31536000, immutable",
    };
    let said = answer.headers_mut();
    said.insert(ETAG, tag);
    said.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    said.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    said.insert(VARY, HeaderValue::from_static("accept-encoding"));
    answer
}

/// Packed, where the build packed it and the client can unpack.
fn bytes(name: &str, plain: EmbeddedFile, headers: &HeaderMap) -> Response {
    let unpacks = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let unpacks = unpacks.is_some_and(|all| all.split(',').any(|one| one.trim() == "gzip"));
    match Built::get(&format!("{name}.gz")) {
        Some(packed) if unpacks => {
            let encoding = [(CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
            (response::AppendHeaders(encoding), packed.data.into_owned()).into_response()
        }
        Some(_) | None => plain.data.into_owned().into_response(),
    }
}

fn tag(file: &EmbeddedFile) -> HeaderValue {
    let hash = file.metadata.sha256_hash();
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{hex}\"")).expect("hexadecimal digits")
}

/// None for what is no file of the page's: packed ones have no address of their own.
fn kind(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webmanifest" => "application/manifest+json",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn asked(name: &str, headers: &[(HeaderName, &str)]) -> Response {
        let value = |text: &&str| HeaderValue::from_str(text).expect("a header");
        let headers = headers.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        shown(name, &headers, Lasts::UntilChanged)
    }

    fn said(answer: &Response, name: HeaderName) -> &str {
        answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    #[test]
    fn every_file_of_the_page_has_an_address_and_a_kind() {
        for name in Built::iter().filter(|name| !name.ends_with(".gz")) {
            assert!(kind(&name).is_some(), "{name}");
            let known = &*name == "index.html"
                || name.starts_with("assets/")
                || FILES.contains(&format!("/{name}").as_str());
            assert!(known, "{name} has no address");
            assert_eq!(asked(&name, &[]).status(), StatusCode::OK, "{name}");
        }
    }

    #[test]
    fn what_a_client_has_is_not_sent_again() {
        let first = asked("index.html", &[(ACCEPT_ENCODING, "br, gzip")]);
        assert_eq!(said(&first, CONTENT_TYPE), "text/html; charset=utf-8");
        assert_eq!(said(&first, CACHE_CONTROL), "no-cache");
        let tag = said(&first, ETAG).to_owned();
        let again = asked("index.html", &[(IF_NONE_MATCH, &tag)]);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        let changed = asked("index.html", &[(IF_NONE_MATCH, "\"else\"")]);
        assert_eq!(changed.status(), StatusCode::OK);
    }

    #[test]
    fn what_is_no_file_of_the_page_is_not_there() {
        let names =
            ["", ".", "..", "../Cargo.toml", "assets/../index.html", "assets/", "index.html.gz"];
        for name in names.into_iter().chain(["/etc/passwd", "assets/..%2findex.html", "index"]) {
            assert_eq!(asked(name, &[]).status(), StatusCode::NOT_FOUND, "{name}");
        }
    }

    /// What a browser needs before the board can be seen, as it travels.
    const FIRST_PAINT_BYTES_MAX: usize = 150_000;

    #[test]
    fn the_first_paint_is_small() {
        let size = |name: &str| Built::get(&format!("{name}.gz")).map_or(0, |file| file.data.len());
        let needed = Built::iter().filter(|name| {
            let loaded = [".js", ".css"].iter().any(|ending| name.ends_with(ending));
            &**name == "index.html" || (loaded && *name != "worker.js")
        });
        let bytes: usize = needed.map(|name| size(&name)).sum();
        assert!(bytes <= FIRST_PAINT_BYTES_MAX, "{bytes} bytes");
    }
}
