//! As much HTTP/1.1 as a model endpoint needs: whole requests in, one buffer or a chunked
//! stream out.

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::limits::{HTTP_BODY_BYTES_MAX, HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// As sent, with its query.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Why a connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The peer is gone; there is nobody to tell.
    Gone,
    /// What to answer before closing.
    Bad(u16, &'static str),
}

impl HttpRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The body as JSON; what is not JSON is kept as a string.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&self.body).into_owned()))
    }

    pub(crate) fn wants_websocket(&self) -> bool {
        self.header("upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
    }
}

/// Reads the next request; `buffer` keeps what came with it and belongs to what follows.
/// `None` when the peer closed between two requests.
pub(crate) async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Result<Option<HttpRequest>, Unreadable> {
    loop {
        match parse(buffer)? {
            Some((request, used)) => {
                buffer.drain(..used);
                return Ok(Some(request));
            }
            None => match stream.read_buf(buffer).await {
                Ok(0) if buffer.is_empty() => return Ok(None),
                Ok(0) | Err(_) => return Err(Unreadable::Gone),
                Ok(_) => {}
            },
        }
    }
}

/// A whole request and its length, or `None` while more is to come.
fn parse(bytes: &[u8]) -> Result<Option<(HttpRequest, usize)>, Unreadable> {
    let mut headers = [httparse::EMPTY_HEADER; HTTP_HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() > HTTP_HEAD_BYTES_MAX => {
            return Err(Unreadable::Bad(431, "the request's head is too long"));
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Unreadable::Bad(400, "not an HTTP request")),
    };
    let mut request = HttpRequest {
        method: head.method.unwrap_or_default().to_owned(),
        target: head.path.unwrap_or_default().to_owned(),
        headers: head.headers.iter().map(owned_header).collect(),
        body: Vec::new(),
    };
    let rest = &bytes[length..];
    let body = if request.header("transfer-encoding").is_some_and(|how| how.contains("chunked")) {
        unchunked(rest)?
    } else {
        sized(rest, request.header("content-length"))?
    };
    Ok(body.map(|(body, used)| {
        request.body = body;
        (request, length + used)
    }))
}

pub(crate) fn owned_header(header: &httparse::Header<'_>) -> (String, String) {
    (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
}

type Body = Result<Option<(Vec<u8>, usize)>, Unreadable>;

fn sized(bytes: &[u8], length: Option<&str>) -> Body {
    let length: usize = match length.map(str::parse) {
        None => 0,
        Some(Ok(length)) => length,
        Some(Err(_)) => return Err(Unreadable::Bad(400, "content-length is not a number")),
    };
    if length > HTTP_BODY_BYTES_MAX {
        return Err(TOO_LARGE);
    }
    Ok(bytes.get(..length).map(|body| (body.to_vec(), length)))
}

fn unchunked(bytes: &[u8]) -> Body {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let (start, size) = match httparse::parse_chunk_size(&bytes[at..]) {
            Ok(httparse::Status::Complete((skip, size))) => (at + skip, size),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Unreadable::Bad(400, "a chunk without a size")),
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > HTTP_BODY_BYTES_MAX - body.len() {
            return Err(TOO_LARGE);
        }
        let end = start + size;
        if bytes.len() < end + 2 {
            return Ok(None);
        }
        body.extend_from_slice(&bytes[start..end]);
        at = end + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

/// A whole response in one buffer: two segments would cost the client a delayed ACK.
pub(crate) fn response(status: u16, headers: &[(&str, String)], body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let mut head = response_head(status, headers);
    head.push_str("content-type: application/json\r\n");
    format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The head of a stream of server-sent events; [`chunk`] and [`LAST_CHUNK`] follow.
pub(crate) fn stream_head(headers: &[(&str, String)]) -> Vec<u8> {
    let mut head = response_head(200, headers);
    head.push_str("content-type: text/event-stream\r\ncache-control: no-cache\r\n");
    head.push_str("transfer-encoding: chunked\r\n\r\n");
    head.into_bytes()
}

fn response_head(status: u16, headers: &[(&str, String)]) -> String {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

pub(crate) fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

const TOO_LARGE: Unreadable = Unreadable::Bad(413, "the request's body is too large");

#[cfg(test)]
mod tests {
    use super::{Unreadable, parse};

    fn check(bytes: &str, body: &str, left: usize) {
        let (request, used) = parse(bytes.as_bytes()).unwrap().unwrap();
        assert_eq!((request.path(), request.body.as_slice()), ("/v1/x", body.as_bytes()));
        assert_eq!(bytes.len() - used, left);
    }

    #[test]
    fn a_body_is_read_by_its_length() {
        check("POST /v1/x?a=b HTTP/1.1\r\nContent-Length: 2\r\n\r\nhirest", "hi", 4);
    }

    #[test]
    fn a_body_is_read_in_chunks() {
        let head = "POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(&format!("{head}2\r\nhi\r\n1\r\n!\r\n0\r\n\r\nrest"), "hi!", 4);
    }

    #[test]
    fn half_a_request_is_waited_for() {
        let whole = "POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(parse(&whole.as_bytes()[..end]), Ok(None), "{end} bytes");
        }
    }

    #[test]
    fn nonsense_and_giants_are_refused() {
        let bad = |bytes: &str| match parse(bytes.as_bytes()) {
            Err(Unreadable::Bad(status, _)) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(bad("\u{1}\u{2}\r\n\r\n"), 400);
        assert_eq!(bad("POST /v1/x HTTP/1.1\r\nContent-Length: many\r\n\r\n"), 400);
        assert_eq!(bad("POST /v1/x HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"), 413);
        let head = "POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(bad(&format!("{head}FFFFFFFFFFFFFFFF\r\n")), 413);
        assert_eq!(bad(&format!("GET /{}", "a".repeat(70_000))), 431);
    }
}
