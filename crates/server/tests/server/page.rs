//! The page's files: where they are shown, and what is said with them.

use crate::Daemon;

#[test]
fn the_page_is_shown_at_its_addresses_and_nothing_else_is() {
    let daemon = Daemon::start("page");
    for path in ["/", "/usage", "/history", "/sign-in", "/sessions/claude%2Fx"] {
        let (status, body) = daemon.request("GET", path).send();
        assert_eq!((status, body.starts_with("<!doctype html>")), (200, true), "{path}");
    }
    let else_where =
        ["/index.html", "/nothing", "/usage/", "/sessions", "/sessions/a/b", "/assets/"];
    let climbing = ["/../Cargo.toml", "/assets/../index.html", "/assets/..%2findex.html"];
    for path in
        else_where.into_iter().chain(climbing).chain(["/assets/%2e%2e%2f%2e%2e%2fetc%2fpasswd"])
    {
        assert_eq!(daemon.request("GET", path).refused(), (404, "no_such_route".into()), "{path}");
    }
}
