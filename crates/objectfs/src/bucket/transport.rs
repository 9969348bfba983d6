//! HTTP to a store: the layer below OpenDAL that trusts no server.
//!
//! # What it is
//! The layer signs each request and sends it to the server of the bucket. The layer follows no redirect, since the
//! other server would see the credentials, and its bytes would be served as contents. Each answer has a
//! deadline, which moves with the bytes that have arrived, and a budget of bytes: the requested range for
//! contents, 64 KiB for an error, 16 MiB for all else. An answer with another range than the request, or of
//! another version, is an error. A page of a listing is checked and written anew ([`page`](super::page)).
//!
//! # What it is not
//! A place for retries: OpenDAL repeats a request whose error is temporary.

use super::cursor::Cursor;
use super::page::{self, MAX_ETAG};
use super::uploads::{Upload, Uploads, are_old, is_completed, old_uploads};
use super::xml::records;
use crate::calls::{Calls, Counted};
use crate::limits::{MAX_DELAY, MIN_DELAY, SLOWEST};
use crate::options::ObjectOptions;
use backon::{ExponentialBuilder, Retryable};
use core::net::IpAddr;
use core::ops::Range;
use core::time::Duration;
use futures::stream;
use http::header::AsHeaderName;
use opendal::{Buffer, Error, ErrorKind, HttpBody, HttpTransport, HttpTransporter};
use opendal_http_transport_reqwest::ReqwestTransport;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqsign_aws_v4::{Credential, DefaultCredentialProvider, RequestSigner, StaticCredentialProvider};
use reqsign_core::{Context, OsEnv, ProvideCredentialChain, Signer};
use reqsign_file_read_tokio::TokioFileRead;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HOST, HeaderMap, IF_MATCH, RANGE};
use reqwest::{Method, StatusCode, redirect};
use std::sync::{Arc, OnceLock};
use tokio::time::{Instant, timeout_at};
use vfs::Foreign;

/// The most bytes of an answer that has no contents of an object.
const MAX_ANSWER: u64 = 16 << 20;

/// The most bytes of an error.
const MAX_ERROR: u64 = 64 << 10;

/// The most bytes of an object's metadata, with their names; S3 allows 2 KiB.
const MAX_METADATA: usize = 16 << 10;

/// The beginning of the names of an object's metadata.
pub(super) const METADATA: &str = "x-amz-meta-";

/// How many times the timeout the completion of an upload may take.
const LONGEST_END: u32 = 15;

/// The characters that a query cannot have.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The characters that a path cannot have.
pub(super) const IN_PATH: &AsciiSet = &ESCAPED.remove(b'/');

type Request = http::Request<Buffer>;
type Response = http::Response<HttpBody>;

/// See the [module documentation](self).
#[derive(Clone)]
pub(crate) struct Transport {
    inner: ReqwestTransport,
    /// `None`: the layer makes requests for credentials only, which have no signature.
    signer: Option<Signer<Credential>>,
    /// How long the head of an answer may take, and an answer without contents as a whole.
    timeout: Duration,
    /// Further tries of the requests that this layer makes by itself.
    retries: usize,
    /// The name of the bucket.
    pub(super) bucket: Arc<str>,
    /// Whether requests to other machines must be encrypted.
    is_encrypted: bool,
    calls: Calls,
    uploads: Uploads,
    /// The URL of the bucket, after the first listing.
    place: Arc<OnceLock<http::Uri>>,
}

/// The kind of an answer.
enum Answer {
    /// Contents: this range, of the version with this ETag.
    Contents(Option<Range<u64>>, Option<String>),
    /// A page of a listing of this prefix.
    Page(String, Cursor),
    /// The beginning of an upload in parts.
    Begin,
    /// The completion of the upload with this id.
    Complete(String),
    /// The abortion of the upload with this id.
    Abort(String),
    /// The report of a copy inside the store, under this root.
    Copy(&'static str),
    Other,
}

impl Transport {
    /// Returns the layer for a server at `endpoint`. It does not sign.
    pub(crate) fn new(endpoint: Option<&str>, options: &ObjectOptions, calls: Calls) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .connect_timeout(options.timeout.min(Duration::from_secs(10)))
            .redirect(redirect::Policy::none())
            .build()?;
        let is_encrypted = endpoint.is_none_or(|endpoint| !endpoint.starts_with("http://"));
        Ok(Self {
            inner: ReqwestTransport::new(client),
            signer: None,
            timeout: options.timeout,
            retries: options.retries,
            bucket: "".into(),
            is_encrypted,
            calls,
            uploads: Uploads::default(),
            place: Arc::default(),
        })
    }

    /// Returns the layer for a bucket, which signs, with `keys`, or with the credentials of the environment.
    pub(crate) fn signing(self, bucket: &str, region: &str, keys: Option<(&str, &str)>) -> Self {
        let context = Context::new()
            .with_file_read(TokioFileRead)
            .with_env(OsEnv)
            .with_http_send(HttpTransporter::new(self.clone()));
        let mut chain = ProvideCredentialChain::new().push(DefaultCredentialProvider::new());
        if let Some((access_key, secret_key)) = keys {
            chain = chain.push_front(StaticCredentialProvider::new(access_key, secret_key));
        }
        let signer = Signer::new(context, chain, RequestSigner::new("s3", region));
        Self { signer: Some(signer), bucket: bucket.into(), ..self }
    }

    /// Aborts the uploads in parts of the object, or of the objects below the prefix, `key`.
    pub(crate) async fn abort(&self, key: &str) {
        let Some(uri) = self.uri(key) else { return };
        let path = uri.path();
        let is_of = |of: &str| of == path || key.ends_with('/') && of.starts_with(path);
        for upload in self.uploads.of(is_of) {
            if let Err(error) = self.abort_upload(&upload).await {
                tracing::warn!(key = %Foreign::of(key), error = %Foreign::text(error), "the parts of an object that could not be written remain in the store");
            }
        }
    }

    async fn abort_upload(&self, upload: &Upload) -> opendal::Result<()> {
        let id = utf8_percent_encode(&upload.id, ESCAPED);
        let uri = with_query(upload.uri.clone(), &format!("uploadId={id}"))?;
        match self.send(Method::DELETE, uri, HeaderMap::new()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Aborts the uploads below the prefix `prefix` in which nothing has happened for a day: programs
    /// left them that ended before their uploads. At most 1,000.
    ///
    /// # Errors
    /// The error of a request.
    pub(crate) async fn abort_old(&self, prefix: &str) -> opendal::Result<()> {
        let Some(place) = self.place.get() else { return Ok(()) };
        let query = format!("uploads&prefix={}", utf8_percent_encode(prefix, ESCAPED));
        let (_, listed) = self.send(Method::GET, with_query(place.clone(), &query)?, HeaderMap::new()).await?;
        for (key, id) in old_uploads(&listed) {
            let Some(uri) = uri_of(place, &key) else { continue };
            let query = format!("uploadId={}", utf8_percent_encode(&id, ESCAPED));
            let (_, parts) = self.send(Method::GET, with_query(uri.clone(), &query)?, HeaderMap::new()).await?;
            if key.starts_with(prefix) && are_old(&parts) {
                tracing::info!(key = %Foreign::of(&key), "an unfinished upload is aborted: nothing has happened in it for a day");
                self.abort_upload(&Upload { uri, id }).await?;
            }
        }
        Ok(())
    }

    /// Makes a request without a body, and repeats it after an error that may pass. Returns the heads
    /// and the body of the answer.
    pub(super) async fn send(
        &self,
        method: Method,
        uri: http::Uri,
        headers: HeaderMap,
    ) -> opendal::Result<(HeaderMap, Vec<u8>)> {
        let once = || async {
            let mut request = Request::new(Buffer::new());
            (*request.method_mut(), *request.uri_mut()) = (method.clone(), uri.clone());
            request.headers_mut().clone_from(&headers);
            let (head, mut body) = self.fetch(request).await?.into_parts();
            let body = body.to_buffer().await?.to_vec();
            if head.status.is_success() { Ok((head.headers, body)) } else { Err(refused(head.status)) }
        };
        let pauses = ExponentialBuilder::default().with_min_delay(MIN_DELAY);
        let pauses = pauses.with_max_delay(MAX_DELAY).with_max_times(self.retries).with_jitter();
        let note = |_: &Error, _| _ = self.calls.count(Counted::Retry);
        once.retry(pauses).when(Error::is_temporary).notify(note).await
    }

    /// Returns the URL of an object; `None` before the first listing.
    pub(crate) fn uri(&self, key: &str) -> Option<http::Uri> {
        self.place.get().and_then(|place| uri_of(place, key))
    }

    /// Signs a request, if this layer signs.
    async fn sign(&self, request: Request) -> opendal::Result<Request> {
        let Some(signer) = &self.signer else { return Ok(request) };
        let (mut head, body) = request.into_parts();
        signer.sign(&mut head, None).await.map_err(|error| {
            Error::new(ErrorKind::ConfigInvalid, "no credentials (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)")
                .with_temporary(error.is_retryable())
                .set_source(error)
        })?;
        // The client adds it in the form of the version of HTTP.
        head.headers.remove(HOST);
        Ok(Request::from_parts(head, body))
    }

    /// Refuses a request that would pass other machines without encryption.
    fn check(&self, uri: &http::Uri) -> opendal::Result<()> {
        if self.is_encrypted && uri.scheme_str() != Some("https") && !is_near(uri.host().unwrap_or_default()) {
            return Err(Error::new(ErrorKind::ConfigInvalid, "a request to the store would not be encrypted"));
        }
        Ok(())
    }

    /// Returns the body of an answer, which fails after `limit` bytes, and at the deadline: `until`, and a
    /// second more for each [`SLOWEST`] bytes that have arrived.
    fn bounded(&self, body: HttpBody, limit: u64, until: Instant) -> HttpBody {
        let calls = self.calls.clone();
        let parts = stream::try_unfold((body, limit, calls), move |(mut body, left, calls)| async move {
            use opendal::raw::oio::ReadStream;
            let until = until + Duration::from_secs((limit - left) / SLOWEST);
            let part = timeout_at(until, body.read()).await.map_err(|_| late())??;
            if part.is_empty() {
                return Ok(None);
            }
            calls.add(Counted::Received, part.len() as u64);
            let left = left.checked_sub(part.len() as u64).ok_or_else(too_long)?;
            Ok(Some((part, (body, left, calls))))
        });
        HttpBody::new(Box::pin(parts), None)
    }
}

impl HttpTransport for Transport {
    async fn fetch(&self, request: Request) -> opendal::Result<Response> {
        self.check(request.uri())?;
        let (answer, request) = Answer::of(request)?;
        let uri = request.uri().clone();
        let request = self.sign(request).await?;
        let sent = request.body().len() as u64;
        let time = |bytes: u64| self.timeout.saturating_add(Duration::from_secs(bytes / SLOWEST));
        let begun = Instant::now();
        self.calls.add(Counted::Sent, sent);
        let response = timeout_at(begun + time(sent), self.inner.fetch(request)).await.map_err(|_| late())??;
        let (mut head, body) = response.into_parts();
        drop_absurd(&mut head.headers);
        if head.status.is_redirection() && head.status != StatusCode::NOT_MODIFIED {
            return Err(redirected(&head.headers));
        }
        let limit = match answer {
            _ if !head.status.is_success() => MAX_ERROR,
            Answer::Contents(ref range, ref tag) => {
                check_contents(&head, range.as_ref(), tag.as_deref())?;
                range.as_ref().map_or(u64::MAX, |range| range.end - range.start)
            }
            _ => {
                // OpenDAL would take the size in it as the size of the object.
                head.headers.remove(CONTENT_RANGE);
                MAX_ANSWER
            }
        };
        let all = match answer {
            // The store puts the parts together.
            Answer::Complete(_) => self.timeout.saturating_mul(LONGEST_END),
            _ => time(sent),
        };
        let mut body = self.bounded(body, limit, begun + all);
        if head.status == StatusCode::NOT_FOUND && matches!(answer, Answer::Page(..)) {
            // OpenDAL would return an empty listing.
            return Err(Error::new(ErrorKind::Unexpected, "the bucket does not exist"));
        }
        if !head.status.is_success() || matches!(answer, Answer::Contents(..) | Answer::Other) {
            return Ok(Response::from_parts(head, body));
        }
        let mut bytes = body.to_buffer().await?.to_vec();
        match answer {
            Answer::Page(prefix, cursor) => {
                let _ = self.place.set(uri);
                bytes = page::rewrite(&bytes, &prefix, cursor)?.into();
            }
            Answer::Begin => self.uploads.begin(uri, &bytes),
            Answer::Complete(id) if is_completed(&bytes)? => self.uploads.end(&id),
            Answer::Abort(id) => self.uploads.end(&id),
            // The status of a copy that failed can be 200.
            Answer::Copy(root) if records(&String::from_utf8_lossy(&bytes), root).is_none() => {
                return Err(Error::new(ErrorKind::Unexpected, "the store does not report the copy").set_temporary());
            }
            _ => {}
        }
        head.headers.remove(CONTENT_LENGTH);
        let body = HttpBody::new(Box::pin(stream::iter([Ok(Buffer::from(bytes))])), None);
        Ok(Response::from_parts(head, body))
    }
}

impl Answer {
    /// Returns the kind of the answer, and the request as the server gets it: OpenDAL's, but a request
    /// for a listing has `encoding-type=url`, since XML cannot have all characters of keys.
    fn of(request: Request) -> opendal::Result<(Self, Request)> {
        let query = request.uri().query().unwrap_or_default();
        match *request.method() {
            Method::GET if query.is_empty() => {
                let tag = text_of(request.headers(), IF_MATCH).map(str::to_owned);
                Ok((Self::Contents(range_of(request.headers()), tag), request))
            }
            Method::GET if query.starts_with("list-type=2") => {
                let (mut prefix, mut cursor) = (String::new(), Cursor::default());
                let mut sent = String::new();
                for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
                    let mut value = percent_decode_str(value).decode_utf8_lossy().into_owned();
                    match name {
                        "prefix" => prefix.clone_from(&value),
                        "continuation-token" => (cursor, value) = Cursor::parse(&value),
                        _ => {}
                    }
                    sent += &format!("{name}={}&", utf8_percent_encode(&value, ESCAPED));
                }
                let (mut head, body) = request.into_parts();
                head.uri = with_query(head.uri, &format!("{sent}encoding-type=url"))?;
                Ok((Self::Page(prefix, cursor), Request::from_parts(head, body)))
            }
            Method::PUT if request.headers().contains_key("x-amz-copy-source") => {
                let is_part = query.contains("partNumber=");
                Ok((Self::Copy(if is_part { "CopyPartResult" } else { "CopyObjectResult" }), request))
            }
            Method::POST if query == "uploads" => Ok((Self::Begin, request)),
            Method::POST | Method::DELETE => {
                let id = query.split('&').find_map(|pair| pair.strip_prefix("uploadId="));
                let id = id.map(|id| percent_decode_str(id).decode_utf8_lossy().into_owned());
                let end = if *request.method() == Method::POST { Self::Complete } else { Self::Abort };
                Ok((id.map_or(Self::Other, end), request))
            }
            _ => Ok((Self::Other, request)),
        }
    }
}

/// Returns the URL of an object in the bucket at `place`.
fn uri_of(place: &http::Uri, key: &str) -> Option<http::Uri> {
    let path = format!("{}/{}", place.path().trim_end_matches('/'), utf8_percent_encode(key, IN_PATH));
    with_target(place.clone(), &path)
}

/// Returns the URI with another query.
fn with_query(uri: http::Uri, query: &str) -> opendal::Result<http::Uri> {
    let target = format!("{}?{query}", uri.path());
    with_target(uri, &target).ok_or_else(|| Error::new(ErrorKind::Unexpected, "the request has no URL"))
}

/// Returns the URI with another path and query.
fn with_target(uri: http::Uri, target: &str) -> Option<http::Uri> {
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(target.parse().ok()?);
    http::Uri::from_parts(parts).ok()
}

/// Returns a header as text.
pub(super) fn text_of(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the range of a request: `Range: bytes=FIRST-LAST`.
fn range_of(headers: &HeaderMap) -> Option<Range<u64>> {
    parse_range(text_of(headers, RANGE)?.strip_prefix("bytes=")?)
}

/// Parses `FIRST-LAST`.
fn parse_range(range: &str) -> Option<Range<u64>> {
    let (first, last) = range.split_once('-')?;
    Some(first.parse().ok()?..last.parse::<u64>().ok()?.checked_add(1)?).filter(|range| !range.is_empty())
}

/// Checks that an answer has contents of the range and of the version that were requested.
fn check_contents(head: &http::response::Parts, range: Option<&Range<u64>>, tag: Option<&str>) -> opendal::Result<()> {
    let plain = |tag: &str| tag.trim_start_matches("W/").trim_matches('"').to_owned();
    let found = text_of(&head.headers, ETAG);
    if tag.zip(found).is_some_and(|(tag, found)| plain(tag) != plain(found)) {
        return Err(Error::new(ErrorKind::ConditionNotMatch, "the store sent another version of the object"));
    }
    let Some(range) = range else { return Ok(()) };
    let sent = || {
        let (sent, _) = text_of(&head.headers, CONTENT_RANGE)?.strip_prefix("bytes ")?.split_once('/')?;
        parse_range(sent)
    };
    let is_range = match head.status {
        StatusCode::PARTIAL_CONTENT => sent().is_some_and(|sent| sent.start == range.start && sent.end <= range.end),
        // The whole object; more bytes than the range are an error.
        _ => range.start == 0,
    };
    if is_range { Ok(()) } else { Err(Error::new(ErrorKind::Unexpected, "the store sent another range of the object")) }
}

/// Returns whether a host is this machine, or a service of the machine's provider that hands out
/// credentials: these have no certificates.
fn is_near(host: &str) -> bool {
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_link_local(),
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local(),
        Err(_) => host == "localhost",
    }
}

/// Removes the metadata of an object that has more of it than S3 allows, or a name twice (OpenDAL panics),
/// and an ETag that is too long to be kept.
fn drop_absurd(headers: &mut HeaderMap) {
    if headers.get(ETAG).is_some_and(|tag| tag.len() > MAX_ETAG) {
        headers.remove(ETAG);
    }
    let names: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with(METADATA)).cloned().collect();
    let len = |name| headers.get_all(name).iter().map(|value| value.len()).sum::<usize>();
    let bytes: usize = names.iter().map(|name| name.as_str().len() + len(name)).sum();
    for name in names {
        if bytes > MAX_METADATA || headers.get_all(&name).iter().count() > 1 {
            headers.remove(&name);
        }
    }
}

/// Returns the error of an answer with this status.
#[cold]
fn refused(status: StatusCode) -> Error {
    let (kind, is_temporary) = match status.as_u16() {
        401 | 403 => (ErrorKind::PermissionDenied, false),
        404 => (ErrorKind::NotFound, false),
        409 => (ErrorKind::Conflict, false),
        412 => (ErrorKind::ConditionNotMatch, false),
        429 => (ErrorKind::RateLimited, true),
        501 => (ErrorKind::Unsupported, false),
        code => (ErrorKind::Unexpected, code >= 500),
    };
    Error::new(kind, format!("the store answers with the status {status}")).with_temporary(is_temporary)
}

/// Returns the error for an answer that names another server.
#[cold]
fn redirected(headers: &HeaderMap) -> Error {
    let is_region =
        |text: &&str| text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let region = text_of(headers, "x-amz-bucket-region").filter(is_region);
    let message = match region {
        Some(region) => format!("the bucket is in the region {region} (use region={region})"),
        None => "the server redirects to another server (use the endpoint of the bucket)".to_owned(),
    };
    Error::new(ErrorKind::Unexpected, message)
}

#[cold]
fn late() -> Error {
    Error::new(ErrorKind::Unexpected, "the store did not answer in time").set_temporary()
}

#[cold]
fn too_long() -> Error {
    Error::new(ErrorKind::Unexpected, "the store sent more bytes than an answer may have")
}
