//! A server for S3 on the loopback address, in this process, with faults between it and its clients.
//!
//! `s3s-fs` keeps objects as files, so it has directories, which S3 does not have, and no markers. So an object whose name a
//! directory has is reported as absent here, and markers are kept here ([`markers`]).

#[path = "markers.rs"]
mod markers;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::CONTENT_LENGTH;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use markers::Markers;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// The name and the secret of the only user.
pub(crate) const KEYS: (&str, &str) = ("key", "secret");

/// The only bucket.
pub(crate) const BUCKET: &str = "bucket";

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Body = BoxBody<Bytes, Failure>;

/// What happens to a request in place of its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    /// It has this status.
    Status(u16),
    /// It does not happen; the answer has the status 200 and this body.
    Body(&'static str),
    /// The connection ends before the answer.
    Cut,
    /// The server does it, and the connection ends before the answer.
    Lost,
    /// The connection ends in the middle of the answer's body.
    CutBody,
    /// The server answers later.
    Slow,
    /// The server never answers.
    Hang,
}

/// How much later [`Act::Slow`] is.
pub(crate) const SLOW: Duration = Duration::from_millis(300);

/// A fault of requests with this method and this in their path and query.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) method: Method,
    pub(crate) has: &'static str,
    /// Requests that it hits yet.
    pub(crate) times: usize,
    pub(crate) act: Act,
}

struct Shared {
    root: PathBuf,
    markers: Markers,
    faults: Mutex<Vec<Fault>>,
    /// The method, path and query of each request.
    requests: Mutex<Vec<String>>,
    /// The requests of [`Act::Slow`] now, and the most at once.
    slow: Mutex<(usize, usize)>,
}

/// The server; its end is the end of its threads and its objects.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    dir: TempDir,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join(BUCKET)).expect("a bucket");
        let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(dir.path()).expect("a store"));
        service.set_auth(SimpleAuth::from_single(KEYS.0, KEYS.1));
        let shared = Shared {
            root: dir.path().into(),
            markers: Markers::default(),
            faults: Mutex::default(),
            requests: Mutex::default(),
            slow: Mutex::default(),
        };
        let (service, shared) = (service.build(), Arc::new(shared));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        runtime.spawn(accept(listener, service, shared.clone()));
        Self { endpoint, dir, shared, runtime: Some(runtime) }
    }

    /// The file in which the server keeps an object.
    pub(crate) fn object(&self, key: &str) -> PathBuf {
        self.dir.path().join(BUCKET).join(key)
    }

    /// Writes an object with these heads, as another program.
    pub(crate) fn put(&self, key: &str, heads: &[(&str, &str)], contents: &'static [u8]) {
        let request =
            heads.iter().fold(Request::put(format!("/{BUCKET}/{key}")), |all, (name, value)| all.header(*name, *value));
        self.call(request.body(s3s::Body::from(Bytes::from_static(contents))).expect("a request"));
    }

    /// Returns the heads of an object.
    pub(crate) fn heads(&self, key: &str) -> hyper::HeaderMap {
        let request = Request::head(format!("/{BUCKET}/{key}")).body(s3s::Body::empty());
        self.call(request.expect("a request")).headers().clone()
    }

    /// Makes a request without a signature.
    fn call(&self, request: Request<s3s::Body>) -> Response<s3s::Body> {
        let service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(self.dir.path()).expect("a store")).build();
        let runtime = self.runtime.as_ref().expect("it has not ended");
        let answer = runtime.block_on(service.call(request)).expect("an answer");
        assert!(answer.status().is_success(), "{answer:?}");
        answer
    }

    pub(crate) fn fail(&self, method: Method, has: &'static str, times: usize, act: Act) {
        self.shared.faults.lock().expect("no panic").push(Fault { method, has, times, act });
    }

    /// Ends all faults.
    pub(crate) fn mend(&self) {
        self.shared.faults.lock().expect("no panic").clear();
    }

    /// The most requests of [`Act::Slow`] at one time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.shared.slow.lock().expect("no panic").1
    }

    /// The requests since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.requests.lock().expect("no panic"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: TcpListener, service: S3Service, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (service, shared) = (service.clone(), shared.clone());
        let answer = service_fn(move |request| answer(request, service.clone(), shared.clone()));
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

impl Shared {
    /// Notes a request; returns what happens to it.
    fn note(&self, request: &Request<Incoming>) -> Option<Act> {
        let target = request.uri().path_and_query().map_or("", |target| target.as_str());
        self.requests.lock().expect("no panic").push(format!("{} {target}", request.method()));
        let mut faults = self.faults.lock().expect("no panic");
        if *request.method() == Method::HEAD
            && !request.uri().path().ends_with('/')
            && self.root.join(&request.uri().path()[1..]).is_dir()
        {
            return Some(Act::Status(404));
        }
        let hits =
            |fault: &&mut Fault| fault.times > 0 && fault.method == *request.method() && target.contains(fault.has);
        let fault = faults.iter_mut().find(hits)?;
        fault.times -= 1;
        Some(fault.act)
    }
}

async fn answer(
    request: Request<Incoming>,
    service: S3Service,
    shared: Arc<Shared>,
) -> Result<Response<Body>, Failure> {
    let cut = || Failure::from(io::Error::from(io::ErrorKind::ConnectionReset));
    let act = shared.note(&request);
    match act {
        Some(Act::Cut) => return Err(cut()),
        Some(Act::Hang) => std::future::pending().await,
        Some(Act::Status(status)) => {
            let body = Full::new(Bytes::new()).map_err(|never| match never {}).boxed();
            let mut response = Response::new(body);
            *response.status_mut() = StatusCode::from_u16(status)?;
            return Ok(response);
        }
        Some(Act::Body(text)) => {
            let body = Full::new(Bytes::from_static(text.as_bytes()));
            return Ok(Response::new(body.map_err(|never| match never {}).boxed()));
        }
        Some(Act::Slow) => {
            let add = |number: usize| {
                let mut slow = shared.slow.lock().expect("no panic");
                *slow = (slow.0.wrapping_add(number), slow.1.max(slow.0.wrapping_add(number)));
            };
            add(1);
            _ = tokio::time::timeout(SLOW, std::future::pending::<()>()).await;
            add(usize::MAX);
        }
        Some(Act::CutBody | Act::Lost) | None => {}
    }
    if let Some(answer) = shared.markers.answer(&shared.root, &request) {
        return Ok(answer.map(|body| Full::new(body).map_err(|never| match never {}).boxed()));
    }
    let query = request.uri().query().unwrap_or_default().to_owned();
    let (mut parts, body) =
        service.call(request.map(s3s::Body::from)).await.map_err(|error| format!("{error:?}"))?.into_parts();
    if matches!(act, Some(Act::Lost)) {
        return Err(cut());
    }
    if query.starts_with("list-type") && act.is_none() {
        let page = body.collect().await?.to_bytes();
        let page = shared.markers.add_to(&query, &String::from_utf8_lossy(&page));
        parts.headers.remove(CONTENT_LENGTH);
        return Ok(Response::from_parts(parts, Full::new(page.into()).map_err(|never| match never {}).boxed()));
    }
    if !matches!(act, Some(Act::CutBody)) {
        return Ok(Response::from_parts(parts, body.map_err(Failure::from).boxed()));
    }
    let whole = body.collect().await?.to_bytes();
    let half = Ok(Frame::data(whole.slice(..whole.len() / 2)));
    let pieces = StreamBody::new(futures::stream::iter([half, Err(cut())]));
    Ok(Response::from_parts(parts, BodyExt::boxed(pieces)))
}
