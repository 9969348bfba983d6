//! A server on the loopback address that sends what a test wants, and is not a server for S3.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The server. Its threads end with the process.
pub(crate) struct Stranger {
    pub(crate) endpoint: String,
    heads: Arc<Mutex<Vec<String>>>,
}

/// An answer of HTTP with this status, further heads, and body.
pub(crate) fn answer(status: u16, heads: &str, body: &str) -> Vec<u8> {
    let len = body.len();
    format!("HTTP/1.1 {status} Any\r\nContent-Length: {len}\r\nConnection: close\r\n{heads}\r\n{body}").into_bytes()
}

/// The head of an answer whose body ends with the connection.
pub(crate) fn endless(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} Any\r\nConnection: close\r\n\r\n").into_bytes()
}

/// A page of a listing.
pub(crate) fn page(entries: &str, token: Option<&str>) -> Vec<u8> {
    let next = token.map(|token| format!("<NextContinuationToken>{token}</NextContinuationToken>")).unwrap_or_default();
    let is_truncated = token.is_some();
    let body = format!("<ListBucketResult><IsTruncated>{is_truncated}</IsTruncated>{next}{entries}</ListBucketResult>");
    answer(200, "", &body)
}

/// An object in a listing.
pub(crate) fn entry(key: &str) -> String {
    let rest = "<LastModified>2026-01-02T03:04:05Z</LastModified><Size>4</Size>";
    format!("<Contents><Key>{key}</Key>{rest}</Contents>")
}

impl Stranger {
    /// Starts the server. It calls `serve` with the head of each request; then the connection ends.
    pub(crate) fn start(serve: impl Fn(&str, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let (noted, serve) = (heads.clone(), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (noted, serve) = (noted.clone(), serve.clone());
                std::thread::spawn(move || {
                    let mut stream = stream?;
                    let head = request(&stream)?;
                    noted.lock().expect("no panic").push(head.clone());
                    serve(&head, &mut stream)
                });
            }
        });
        Self { endpoint, heads }
    }

    /// The heads of all requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

/// Reads a request. Returns its head.
fn request(stream: &TcpStream) -> io::Result<String> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let len = |line: &str| line.to_ascii_lowercase().strip_prefix("content-length: ").and_then(|len| len.parse().ok());
    let len = head.lines().find_map(len).unwrap_or(0);
    io::copy(&mut reader.take(len), &mut io::sink())?;
    Ok(head)
}

/// Sends bytes until the client ends the connection. Returns how many.
pub(crate) fn send_forever(stream: &mut TcpStream, bytes: &[u8]) -> u64 {
    let mut sent = 0;
    while stream.write_all(bytes).is_ok() {
        sent += bytes.len() as u64;
    }
    sent
}
