//! A client that is an HTTP server (`opencode serve`, `kilo serve`): requests, and its stream
//! of events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Doing, Error, Result};
use crate::headless::Headless;
use crate::http::owned_header;
use crate::limits::{HTTP_BODY_BYTES_MAX, HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX, WAIT_MAX};
use crate::output::{Output, read_lines};
use crate::watched::Watched;

#[derive(Debug)]
pub struct Service {
    process: Headless,
    /// `127.0.0.1:PORT`.
    host: String,
}

impl Service {
    /// Waits until the client says where it listens.
    pub(crate) fn of(process: Headless) -> Result<Self> {
        let line =
            process.wait_for_line("the address it listens on", |line| host_in(line).is_some())?;
        let host = host_in(&line).unwrap_or_default().to_owned();
        Ok(Self { process, host })
    }

    pub fn process(&self) -> &Headless {
        &self.process
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.host)
    }

    pub fn get(&self, path: &str) -> Result<Value> {
        self.ask("GET", path, None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path, Some(body))
    }

    /// Everything it says on this path from now on.
    pub fn events(&self, path: &str) -> Result<EventFeed> {
        let (stream, answer) = self.send("GET", path, None)?;
        let what = format!("GET {path}");
        if answer.status != 200 {
            return Err(Error::Refused { what, status: answer.status, body: String::new() });
        }
        // Events may be far apart: the reader waits as long as the feed lives.
        stream.set_read_timeout(None).doing("wait for events")?;
        let heard = Arc::new(Watched::<Output>::default());
        let feed = EventFeed { stream, heard: Arc::clone(&heard) };
        std::thread::Builder::new()
            .name("events".into())
            .spawn(move || {
                read_lines(answer.body, |line| {
                    if let Some(data) = line.strip_prefix("data:") {
                        heard.change(|heard| heard.add(data.trim_start().to_owned()));
                    }
                });
                heard.change(Output::close);
            })
            .doing("start a thread for events")?;
        Ok(feed)
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let (_stream, answer) = self.send(method, path, body)?;
        let what = format!("{method} {path}");
        let mut text = String::new();
        let limit = HTTP_BODY_BYTES_MAX as u64;
        answer
            .body
            .take(limit)
            .read_to_string(&mut text)
            .doing(format!("read the answer to {what}"))?;
        if !(200..300).contains(&answer.status) {
            return Err(Error::Refused { what, status: answer.status, body: text });
        }
        Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(TcpStream, Answer)> {
        let what = format!("{method} {path}");
        let mut stream = TcpStream::connect(&self.host).doing(format!("connect for {what}"))?;
        stream.set_read_timeout(Some(WAIT_MAX)).doing("bound the wait")?;
        stream.set_write_timeout(Some(WAIT_MAX)).doing("bound the wait")?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        stream.write_all(request.as_bytes()).doing(format!("send {what}"))?;
        let reader = stream.try_clone().doing("read and write at once")?;
        let answer = Answer::read(&what, BufReader::new(reader))?;
        Ok((stream, answer))
    }
}

/// Events of a [`Service`], from the moment it was asked for them.
#[derive(Debug)]
pub struct EventFeed {
    stream: TcpStream,
    heard: Arc<Watched<Output>>,
}

impl EventFeed {
    /// Waits for an event, past or future; the first such one is returned.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let find = |heard: &Output| {
            let mut values =
                heard.lines().iter().filter_map(|line| serde_json::from_str(line).ok());
            values.find(|value| wanted(value))
        };
        let seen = || self.heard.read(Output::tail);
        let found = self.heard.wait(WAIT_MAX, |heard| match find(heard) {
            Some(found) => Some(Some(found)),
            None if heard.is_closed() => Some(None),
            None => None,
        });
        match found {
            Some(Some(found)) => Ok(found),
            Some(None) => Err(Error::Ended {
                client: "the stream of events".into(),
                ending: "closed".into(),
                what: what.into(),
                seen: seen(),
            }),
            None => Err(Error::TimedOut { what: what.into(), waited: WAIT_MAX, seen: seen() }),
        }
    }
}

impl Drop for EventFeed {
    fn drop(&mut self) {
        // Wakes the reader; a peer that closed first has done so already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

struct Answer {
    status: u16,
    body: Box<dyn Read + Send>,
}

impl Answer {
    fn read(what: &str, mut reader: BufReader<TcpStream>) -> Result<Self> {
        let not_http = |detail: &str| Error::NotHttp { what: what.into(), detail: detail.into() };
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let limit = (HTTP_HEAD_BYTES_MAX - bytes.len()) as u64;
            let read = reader.by_ref().take(limit).read_until(b'\n', &mut bytes);
            if read.doing(format!("read the answer to {what}"))? == 0 {
                return Err(not_http("it closed, or its head is too long"));
            }
        }
        let mut headers = [httparse::EMPTY_HEADER; HTTP_HEADERS_MAX];
        let mut head = httparse::Response::new(&mut headers);
        head.parse(&bytes).map_err(|error| not_http(&error.to_string()))?;
        let status = head.code.unwrap_or_default();
        let headers: Vec<(String, String)> = head.headers.iter().map(owned_header).collect();
        let header =
            |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let body: Box<dyn Read + Send> =
            match (header("transfer-encoding"), header("content-length")) {
                (Some(how), _) if how.contains("chunked") => {
                    Box::new(Chunked { reader, left: 0, over: false })
                }
                (_, Some(length)) => {
                    let length =
                        length.parse().map_err(|_| not_http("its length is not a number"))?;
                    Box::new(reader.take(length))
                }
                (_, None) => Box::new(reader),
            };
        Ok(Self { status, body })
    }
}

/// A chunked body as plain bytes.
struct Chunked<R> {
    reader: R,
    left: usize,
    over: bool,
}

impl<R: BufRead> Chunked<R> {
    fn next_chunk(&mut self) -> std::io::Result<()> {
        let mut line = String::new();
        // The line end of the chunk before stands in front of the size.
        while line.trim().is_empty() {
            line.clear();
            if self.reader.by_ref().take(CHUNK_LINE_BYTES_MAX).read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let size = line.trim().split(';').next().unwrap_or_default();
        self.left = usize::from_str_radix(size, 16).map_err(|_| std::io::ErrorKind::InvalidData)?;
        self.over = self.left == 0;
        Ok(())
    }
}

impl<R: BufRead> Read for Chunked<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !self.over {
            self.next_chunk()?;
        }
        if self.over {
            return Ok(0);
        }
        let room = out.len().min(self.left);
        let length = self.reader.read(&mut out[..room])?;
        self.left -= length;
        Ok(length)
    }
}

/// `… listening on http://127.0.0.1:4096`
fn host_in(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("listening on http://")?;
    rest.split(|c: char| c == '/' || c.is_whitespace()).next()
}

/// A size and its extensions; nobody sends more.
const CHUNK_LINE_BYTES_MAX: u64 = 1024;

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::{Chunked, host_in};

    #[test]
    fn chunks_are_put_together() {
        let bytes: &[u8] = b"2\r\nhi\r\n6;x=y\r\n there\r\n0\r\n\r\n";
        let mut text = String::new();
        Chunked { reader: bytes, left: 0, over: false }.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hi there");
    }

    #[test]
    fn a_body_that_breaks_off_is_an_error() {
        let mut text = String::new();
        let broken =
            Chunked { reader: &b"2\r\nhi\r\n"[..], left: 0, over: false }.read_to_string(&mut text);
        assert!(broken.is_err());
    }

    #[test]
    fn the_address_is_read_off_the_first_line() {
        let line = "opencode server listening on http://127.0.0.1:4096";
        assert_eq!(host_in(line), Some("127.0.0.1:4096"));
        assert_eq!(host_in("warming up"), None);
    }
}
