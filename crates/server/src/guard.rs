//! Who is let in. Every request passes here before any route sees it.
//!
//! [`judge`] is pure: what the request shows and what the route asks for in, a verdict out. A web
//! page that the operator happens to visit can reach a loopback port too, so a token alone is not
//! enough: the name it was reached by, and where it comes from, count as well.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::acting::Caller;
use crate::auth::{Scope, Tokens};
use crate::browser_key::BROWSER_HEADER;
use crate::browsers::Browsers;
use crate::budget::{Guesses, Identity, Requests};
use crate::connections::Seat;
use crate::error::Refusal;
use crate::hook_posts::HookPosts;
use crate::patience::in_time;
use crate::request_log::{self, RequestLog};
use crate::routes::{Need, need};
use crate::sign_in::now_s;
use crate::sign_in_lease::Lease;

/// Writes carry it. A page of another site cannot send it without asking first.
pub const HEADER: &str = "x-quarterdeck";

/// Which door a request came through.
#[derive(Debug, Clone)]
pub enum Via {
    /// The socket, which only this user can open.
    Socket,
    Tcp(Arc<Port>),
}

/// What a port knows about who may come in.
#[derive(Debug)]
pub struct Port {
    tokens: Tokens,
    browsers: Arc<Browsers>,
    names: Arc<Names>,
    guesses: Guesses,
    requests: Requests,
    log: RequestLog,
    hook_posts: HookPosts,
}

/// The names by which a port is reached.
#[derive(Debug)]
pub struct Names {
    /// `127.0.0.1:47892` and the like.
    loopback: Vec<String>,
    /// Where our page lives: 127.0.0.1, and the names of a proxy in front of it, which may speak
    /// TLS. Not `localhost`: another program can listen where that leads first, at ::1.
    pages: Vec<String>,
}

impl Names {
    pub fn new(port: u16, hosts: Vec<String>) -> Self {
        let loopback = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        let hosts = hosts.into_iter().map(|host| host.to_ascii_lowercase());
        let pages = std::iter::once(loopback[0].clone()).chain(hosts).collect();
        Self { loopback: loopback.into(), pages }
    }

    fn is_host(&self, host: &str) -> bool {
        self.loopback.iter().chain(&self.pages).any(|name| name.eq_ignore_ascii_case(host))
    }

    /// Where a browser may be signed in.
    pub fn is_page(&self, host: &str) -> bool {
        self.pages.iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    fn is_origin(&self, origin: &str) -> bool {
        if let Some(host) = origin.strip_prefix("http://") {
            return self.is_page(host);
        }
        let secure = origin.strip_prefix("https://");
        secure.is_some_and(|host| self.is_page(host) && !self.loopback.iter().any(|it| it == host))
    }
}

/// What browsers are told with every answer: run nothing and load nothing from elsewhere, make no
/// script out of text (the one policy is for the address of the page's worker), be in no frame,
/// guess no types, keep nothing.
const PROTECTION: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types quarterdeck",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
];

/// Looks at a request, and answers it if it may not pass.
pub async fn guard(State(via): State<Via>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let matched = request.extensions().get::<MatchedPath>();
    let is_hook = matched.is_some_and(|matched| matched.as_str() == HOOK);
    let need = matched.and_then(|matched| need(&method, matched.as_str()));
    let response = match (&via, need) {
        (_, None) => Refusal::NoSuchRoute.into_response(),
        (Via::Socket, Some(_)) => next.run(named(request, Caller::of(COMMAND_LINE))).await,
        (Via::Tcp(port), Some(need)) => match port.judge(&method, request.headers(), need) {
            Ok(caller) => {
                let lease = caller.browser.clone();
                let answered = in_time(named(request, caller), next);
                match lease {
                    Some(lease) => lease.hold(answered).await,
                    None => answered.await,
                }
            }
            Err(refusal) => {
                if is_hook {
                    port.hook_posts.refused(&refusal);
                }
                refusal.into_response()
            }
        },
    };
    let response = (PROTECTION, response).into_response();
    let status = response.status().as_u16();
    match &via {
        Via::Socket => request_log::tell(&method, &path, status, need),
        Via::Tcp(port) => port.log.tell(&method, &path, status, need),
    }
    response
}

/// Lets the connection and the routes know whose request it is.
fn named(mut request: Request, caller: Caller) -> Request {
    if let (Some(identity), Some(seat)) =
        (&caller.identity, request.extensions().get::<Arc<Seat>>())
    {
        seat.belongs_to(identity);
    }
    request.extensions_mut().insert(caller);
    request
}

/// Where scripts post hooks.
const HOOK: &str = "/api/live/hook";

/// Who comes through the socket.
const COMMAND_LINE: &str = "command line";

impl Port {
    pub fn new(
        names: Arc<Names>,
        tokens: Tokens,
        browsers: Arc<Browsers>,
        hook_posts: HookPosts,
    ) -> Self {
        let now = Instant::now();
        let (guesses, log) = (Guesses::new(now), RequestLog::new(now));
        let requests = Requests::default();
        Self { tokens, browsers, names, guesses, requests, log, hook_posts }
    }

    /// Whose request it is, if it may pass. What is refused costs nobody's budget: any web page can
    /// send it.
    fn judge(&self, method: &Method, headers: &HeaderMap, need: Need) -> Result<Caller, Refusal> {
        let now = Instant::now();
        let reports = need == Need::Scope(Scope::Ingest);
        let token = bearer(headers);
        // Whoever reports shows what it was given to report with, and nothing that a browser adds.
        let browser = headers.get(BROWSER_HEADER).filter(|_| !reports && token.is_none());
        let lease = browser.and_then(|shown| self.lease(shown.to_str().ok()?));
        let (has, scope) = match (token, browser) {
            (Some(token), _) => (Has::Token, self.tokens.scope_of(token)),
            (None, Some(_)) => (Has::Browser, lease.as_ref().map(|lease| lease.scope)),
            (None, None) => (Has::Nothing, None),
        };
        let judged = judge(&Shown::of(method, headers, has, scope), &self.names, need);
        let is_guess = judged == Err(Refusal::WrongToken) && token.is_some();
        if is_guess && self.guesses.are_too_many(now) {
            return Err(Refusal::TooManyGuesses);
        }
        judged?;
        let identity = match (&lease, has, scope) {
            (Some(lease), _, _) => Some(Identity::Browser(lease.browser.clone())),
            (None, Has::Token, Some(scope)) => Some(Identity::Token(scope)),
            (None, _, _) => None,
        };
        let is_counted = matches!(need, Need::Scope(_)) && !reports;
        match &identity {
            Some(identity) if is_counted && !self.requests.spend(identity, now) => {
                return Err(Refusal::TooManyRequests);
            }
            Some(_) | None => {}
        }
        Ok(match (has, lease) {
            (_, Some(lease)) => {
                Caller { device: lease.name.clone(), browser: Some(lease), identity }
            }
            (Has::Token, None) => Caller { identity, ..Caller::of("token") },
            (Has::Browser | Has::Nothing, None) => Caller::of("nobody"),
        })
    }

    fn lease(&self, shown: &str) -> Option<Lease> {
        self.browsers.lease(shown, &self.names.pages, now_s())
    }
}

/// By what a request says whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Has {
    Nothing,
    Token,
    /// A browser's proof.
    Browser,
}

/// What a request shows of itself.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    pub writes: bool,
    pub host: Option<&'a str>,
    pub origin: Option<&'a str>,
    pub fetch_site: Option<&'a str>,
    /// It is to fill a tab, not a frame, and no script sees the answer.
    pub navigates: bool,
    pub content_type: Option<&'a str>,
    pub has_header: bool,
    pub has: Has,
    pub scope: Option<Scope>,
}

impl<'a> Shown<'a> {
    fn of(method: &Method, headers: &'a HeaderMap, has: Has, scope: Option<Scope>) -> Self {
        // What is not text is as suspicious as what is foreign.
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        Self {
            writes: method != Method::GET && method != Method::HEAD,
            host: text(HOST.as_str()),
            origin: text(ORIGIN.as_str()),
            fetch_site: text("sec-fetch-site"),
            navigates: text("sec-fetch-mode") == Some("navigate")
                && text("sec-fetch-dest") == Some("document"),
            content_type: text(CONTENT_TYPE.as_str()),
            has_header: headers.contains_key(HEADER),
            has,
            scope,
        }
    }
}

/// Whether it may pass, or the first reason why not.
pub fn judge(shown: &Shown<'_>, names: &Names, need: Need) -> Result<(), Refusal> {
    if !shown.host.is_some_and(|host| names.is_host(host)) {
        return Err(Refusal::ForeignHost);
    }
    if shown.origin.is_some_and(|origin| !names.is_origin(origin)) {
        return Err(Refusal::ForeignOrigin);
    }
    // Whoever leads the operator to our page, as the file of `qd open` does, learns nothing by it.
    let is_led = need == Need::Page && shown.navigates && !shown.writes;
    // `none` is the address bar.
    if !is_led && shown.fetch_site.is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(Refusal::ForeignOrigin);
    }
    let is_report = match need {
        Need::Nothing | Need::Page => return Ok(()),
        Need::Code => false,
        Need::Scope(needed) => {
            match shown.scope {
                Some(scope) if scope >= needed => {}
                Some(_) => return Err(Refusal::WeakScope),
                None => {
                    return Err(match shown.has {
                        Has::Token => Refusal::WrongToken,
                        Has::Browser => Refusal::SignedOut,
                        Has::Nothing => Refusal::NoToken,
                    });
                }
            }
            needed == Scope::Ingest
        }
    };
    // Agents and their exporters report as they can.
    if shown.writes && !is_report {
        if !shown.content_type.is_some_and(is_json) {
            return Err(Refusal::NotJson);
        }
        if !shown.has_header {
            return Err(Refusal::NoHeader);
        }
    }
    Ok(())
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (kind, token) = value.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATE: Need = Need::Scope(Scope::Operate);

    fn good() -> Shown<'static> {
        Shown {
            writes: true,
            host: Some("127.0.0.1:47892"),
            origin: Some("http://127.0.0.1:47892"),
            fetch_site: Some("same-origin"),
            navigates: false,
            content_type: Some("application/json; charset=utf-8"),
            has_header: true,
            has: Has::Token,
            scope: Some(Scope::Operate),
        }
    }

    #[track_caller]
    fn check(shown: Shown<'_>, need: Need, expected: Result<(), Refusal>) {
        let names = Names::new(47892, vec!["Box.example.ts.net".into()]);
        assert_eq!(judge(&shown, &names, need), expected, "{shown:?}");
    }

    #[test]
    fn a_good_request_passes_and_each_flaw_is_named() {
        check(good(), OPERATE, Ok(()));
        check(Shown { host: None, ..good() }, OPERATE, Err(Refusal::ForeignHost));
        for host in ["127.0.0.1", "127.0.0.1:1", "evil.example:47892", "", "?"] {
            check(Shown { host: Some(host), ..good() }, OPERATE, Err(Refusal::ForeignHost));
        }
        let loopback = ["http://localhost:47892", "https://127.0.0.1:47892", "http://127.0.0.1"];
        for origin in loopback.into_iter().chain(["null", "http://evil.example"]) {
            let shown = Shown { origin: Some(origin), ..good() };
            check(shown, OPERATE, Err(Refusal::ForeignOrigin));
            check(shown, Need::Nothing, Err(Refusal::ForeignOrigin));
        }
        for site in ["cross-site", "same-site", "?"] {
            let shown = Shown { fetch_site: Some(site), ..good() };
            check(shown, OPERATE, Err(Refusal::ForeignOrigin));
        }
        let none = Shown { has: Has::Nothing, scope: None, ..good() };
        check(none, OPERATE, Err(Refusal::NoToken));
        check(Shown { scope: None, ..good() }, OPERATE, Err(Refusal::WrongToken));
        check(Shown { has: Has::Browser, ..none }, OPERATE, Err(Refusal::SignedOut));
        for scope in [Scope::Ingest, Scope::Observe] {
            let shown = Shown { scope: Some(scope), ..good() };
            check(shown, OPERATE, Err(Refusal::WeakScope));
        }
        check(Shown { content_type: Some("text/plain"), ..good() }, OPERATE, Err(Refusal::NotJson));
        check(Shown { content_type: None, ..good() }, OPERATE, Err(Refusal::NotJson));
        check(Shown { has_header: false, ..good() }, OPERATE, Err(Refusal::NoHeader));
    }

    #[test]
    fn a_command_line_sends_neither_origin_nor_site() {
        let plain = Shown { origin: None, fetch_site: None, ..good() };
        check(plain, OPERATE, Ok(()));
        check(Shown { fetch_site: Some("none"), ..plain }, OPERATE, Ok(()));
    }

    #[test]
    fn reports_need_no_header_and_no_json() {
        let report = Shown {
            content_type: Some("application/x-protobuf"),
            has_header: false,
            scope: Some(Scope::Ingest),
            ..good()
        };
        check(report, Need::Scope(Scope::Ingest), Ok(()));
        check(report, Need::Nothing, Ok(()));
        check(
            Shown { writes: false, ..report },
            Need::Scope(Scope::Observe),
            Err(Refusal::WeakScope),
        );
    }

    #[test]
    fn a_name_in_front_of_us_may_speak_tls_and_the_loopback_does_not() {
        let public = Shown { host: Some("box.example.ts.net"), ..good() };
        for origin in ["https://box.example.ts.net", "http://Box.example.ts.net"] {
            check(Shown { origin: Some(origin), ..public }, OPERATE, Ok(()));
        }
        for origin in ["https://box.example.ts.net:1", "https://127.0.0.1:47892", "https://ts.net"]
        {
            let shown = Shown { origin: Some(origin), ..public };
            check(shown, OPERATE, Err(Refusal::ForeignOrigin));
        }
    }

    #[test]
    fn a_code_is_no_excuse_for_a_form() {
        let nobody = Shown { has: Has::Nothing, scope: None, ..good() };
        check(nobody, Need::Code, Ok(()));
        let form = Some("application/x-www-form-urlencoded");
        check(Shown { content_type: form, ..nobody }, Need::Code, Err(Refusal::NotJson));
        check(Shown { has_header: false, ..nobody }, Need::Code, Err(Refusal::NoHeader));
        let foreign = Shown { origin: Some("http://evil.example"), ..nobody };
        check(foreign, Need::Code, Err(Refusal::ForeignOrigin));
    }

    #[test]
    fn any_site_may_lead_to_the_page_and_do_nothing_else() {
        let nobody = Shown { has: Has::Nothing, scope: None, ..good() };
        let led = Shown {
            writes: false,
            origin: None,
            fetch_site: Some("cross-site"),
            navigates: true,
            ..nobody
        };
        check(led, Need::Page, Ok(()));
        check(Shown { navigates: false, ..led }, Need::Page, Err(Refusal::ForeignOrigin));
        check(Shown { writes: true, ..led }, Need::Page, Err(Refusal::ForeignOrigin));
        check(Shown { origin: Some("null"), ..led }, Need::Page, Err(Refusal::ForeignOrigin));
        let rebound = Shown { host: Some("evil.example:47892"), ..led };
        check(rebound, Need::Page, Err(Refusal::ForeignHost));
        for need in [Need::Nothing, Need::Code, OPERATE, Need::Scope(Scope::Observe)] {
            check(Shown { scope: Some(Scope::Admin), ..led }, need, Err(Refusal::ForeignOrigin));
        }
    }
}
