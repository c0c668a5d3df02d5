//! Where a notice may go: to the internet, and inside of this machine and its networks only where
//! the operator's settings name the place.
//!
//! A browser chooses the address of its push service, and a name leads wherever whoever owns it
//! wants. So it is the address that is connected to which is judged, and never its spelling.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

use super::http::Target;

/// A host that the operator named although it is private: `127.0.0.1:8080`, `ntfy.lan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateHost {
    host: String,
    /// Every port where none is named.
    port: Option<u16>,
}

impl PrivateHost {
    /// A host as it is written in an address, with or without a port.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let target = Target::read(&format!("http://{text}/"))?;
        if target.uri.path() != "/" || target.uri.query().is_some() {
            return Err("it is no host like 127.0.0.1:8080 or ntfy.lan");
        }
        Ok(Self { host: target.host().to_ascii_lowercase(), port: target.uri.port_u16() })
    }

    /// The one that an address in the settings names by itself: an IP address as it is usually
    /// written, or `localhost`.
    pub(super) fn named_by(target: &Target) -> Option<Self> {
        let host = target.host();
        let is_named = host.parse::<IpAddr>().is_ok() || host == "localhost";
        is_named.then(|| Self { host: host.to_owned(), port: Some(target.port()) })
    }

    fn is_at(&self, target: &Target) -> bool {
        let is_port = self.port.is_none_or(|port| port == target.port());
        is_port && self.host.eq_ignore_ascii_case(target.host())
    }
}

type Lookup = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Finds the addresses behind a name, and refuses those that nobody named.
#[derive(Clone)]
pub struct Destinations {
    private: Vec<PrivateHost>,
    lookup: Arc<Lookup>,
}

/// Why there is no address to connect to.
#[derive(Debug, thiserror::Error)]
pub enum NoAddress {
    #[error("it cannot be reached: {0}")]
    Unknown(#[from] io::Error),
    #[error(
        "{host} leads to {address}, which is this machine or a private network. If you want that, \
         add allow_private = [\"{host}\"] to [notify] in config.toml"
    )]
    Private { host: String, address: IpAddr },
}

impl Destinations {
    pub fn new(private: Vec<PrivateHost>) -> Self {
        Self { private, lookup: Arc::new(system_lookup) }
    }

    /// The same for a receiver of the operator's own, whose address may name a private host.
    pub fn and_named_by(mut self, target: &Target) -> Self {
        self.private.extend(PrivateHost::named_by(target));
        self
    }

    pub fn is_named(&self, target: &Target) -> bool {
        self.private.iter().any(|host| host.is_at(target))
    }

    /// The addresses to connect to, and no others: asked again, a name may lead elsewhere. One that
    /// is private spoils all, since a public one beside it may be there to pass this.
    pub async fn find(&self, target: &Target) -> Result<Vec<SocketAddr>, NoAddress> {
        if is_localhost(target.host()) && !self.is_named(target) {
            let address = Ipv4Addr::LOCALHOST.into();
            return Err(NoAddress::Private { host: target.host().to_owned(), address });
        }
        let (host, port, lookup) = (target.host().to_owned(), target.port(), self.lookup.clone());
        let found = tokio::task::spawn_blocking(move || lookup(&host, port)).await;
        let found = found.map_err(io::Error::other)??;
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into());
        }
        if self.is_named(target) {
            return Ok(found);
        }
        match found.iter().find(|found| !is_public(found.ip()) || is_own(found.ip())) {
            Some(found) => {
                Err(NoAddress::Private { host: target.host().to_owned(), address: found.ip() })
            }
            None => Ok(found),
        }
    }
}

impl std::fmt::Debug for Destinations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Destinations").field("private", &self.private).finish_non_exhaustive()
    }
}

fn system_lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// Names that mean this machine (RFC 6761), whatever a resolver says.
fn is_localhost(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Whether an address is on the internet. What is not known to be is not.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match (a, b, c) {
        // This network, private networks, loopback, multicast and what is reserved.
        (0 | 10 | 127 | 224.., _, _) => true,
        // Carriers' own networks.
        (100, 64..=127, _) => true,
        (169, 254, _) | (172, 16..=31, _) | (192, 168, _) => true,
        // Protocols, 6to4 relays, benchmarks, documents.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) => true,
        (198, 51, 100) | (203, 0, 113) => true,
        _ => false,
    };
    !is_special
}

/// Within 2000::/3, and, where an IPv4 address is inside of it, that one as well.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, fourth, fifth, sixth, seventh, eighth] = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (first, second) {
        // Mapped.
        (0, 0) => (third, fourth, fifth, sixth) == (0, 0, 0, 0xffff) && v4(seventh, eighth),
        // NAT64.
        (0x64, 0xff9b) => (third, fourth, fifth, sixth) == (0, 0, 0, 0) && v4(seventh, eighth),
        // 6to4.
        (0x2002, high) => v4(high, third),
        // Teredo and other protocols; documents.
        (0x2001, 0..=0x1ff | 0xdb8) => false,
        (0x3fff, 0..=0xfff) => false,
        (0x2000..=0x3fff, _) => true,
        _ => false,
    }
}

/// Whether an address on the internet is one of this machine's. The kernel answers without sending
/// anything: it would speak to itself from the same address.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_internet_is_public() {
        for private in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "192.0.0.170",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.251",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "fc00::1",
            "fd12:3456::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2002:c0a8:101::",
            "2002:a00:1::",
            "2001::1",
            "2001:db8::1",
            "100::1",
            "3fff::1",
            "5f00::1",
        ] {
            assert!(!is_public(private.parse().expect("an address")), "{private}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::200e",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(is_public(public.parse().expect("an address")), "{public}");
        }
    }

    #[test]
    fn an_address_of_this_machine_is_known_without_a_list() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own(Ipv4Addr::new(203, 0, 113, 1).into()));
    }

    #[test]
    fn a_private_host_is_named_with_its_port_or_for_all() {
        let read = |text: &str| PrivateHost::read(text).expect("a host");
        let target = |text: &str| Target::read(text).expect("an address");
        assert!(read("127.0.0.1").is_at(&target("http://127.0.0.1:7/x")));
        assert!(read("127.0.0.1:7").is_at(&target("http://127.0.0.1:7/x")));
        assert!(!read("127.0.0.1:7").is_at(&target("http://127.0.0.1:8/x")));
        assert!(!read("127.0.0.1").is_at(&target("http://127.1/x")));
        assert!(read("Ntfy.lan").is_at(&target("https://ntfy.LAN/x")));
        assert!(read("ntfy.lan:443").is_at(&target("https://ntfy.lan/x")));
        assert!(read("[::1]:7").is_at(&target("http://[::1]:7/x")));
        for odd in ["", "a/b", "http://a", "u@a", "a?b", "a b"] {
            assert!(PrivateHost::read(odd).is_err(), "{odd}");
        }
    }

    /// Names that lead where their owner wants, as a resolver would say it.
    fn resolver(answer: &'static [&'static str]) -> Destinations {
        let lookup = move |_: &str, port| {
            let address = |text: &&str| SocketAddr::new(text.parse().expect("an address"), port);
            Ok(answer.iter().map(address).collect())
        };
        Destinations { private: Vec::new(), lookup: Arc::new(lookup) }
    }

    #[tokio::test]
    async fn a_name_is_judged_by_where_it_leads() {
        let target = Target::read("https://push.example/x").expect("an address");
        for inside in [
            &["127.0.0.1"][..],
            &["8.8.8.8", "10.0.0.1"],
            &["2606:4700::1111", "::ffff:127.0.0.1"],
            &["fd00::1"],
        ] {
            let found = resolver(inside).find(&target).await;
            assert!(matches!(found, Err(NoAddress::Private { .. })), "{inside:?}: {found:?}");
        }
        let found = resolver(&["8.8.8.8", "2606:4700::1111"]).find(&target).await;
        assert_eq!(found.expect("public").len(), 2);
        let named = PrivateHost::read("push.example").expect("a host");
        let destinations = Destinations { private: vec![named], ..resolver(&["127.0.0.1"]) };
        assert_eq!(destinations.find(&target).await.expect("named").len(), 1);
        assert!(matches!(resolver(&[]).find(&target).await, Err(NoAddress::Unknown(_))));
        for name in ["localhost", "LOCALHOST..", "a.localhost."] {
            let target = Target::read(&format!("https://{name}/x")).expect("an address");
            let found = resolver(&["8.8.8.8"]).find(&target).await;
            assert!(matches!(found, Err(NoAddress::Private { .. })), "{name}: {found:?}");
        }
    }
}
