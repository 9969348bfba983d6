//! Object stores: `s3://BUCKET/PREFIX`.

use super::{PlannedMount, Problem};
use lightfoot::MountFlags;
use objectfs::{Bucket, Calls, Counted, Ending, ObjectFs, ObjectOptions};

/// The beginning of a SOURCE that is a bucket.
pub(super) const S3: &str = "s3://";

/// A store in the tree.
pub(crate) struct StoreHandle {
    url: String,
    calls: Calls,
    ending: Ending,
}

impl StoreHandle {
    pub(super) fn new(url: &str, fs: &ObjectFs) -> Self {
        Self { url: url.into(), calls: fs.calls(), ending: fs.ending() }
    }

    /// Returns the URL of the store.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the numbers of requests by kind, and the other numbers.
    pub(crate) fn numbers(&self) -> [Vec<(String, u64)>; 2] {
        let number = |kind: Counted| (kind.name().to_owned(), self.calls.of(kind));
        let (requests, others) = Counted::ALL.into_iter().partition::<Vec<_>, _>(|kind| kind.is_request());
        [requests, others].map(|kinds| kinds.into_iter().map(number).collect())
    }

    /// Lets no request take longer than one try, as the process ends.
    pub(crate) fn end(&self) {
        self.ending.begin();
    }
}

pub(super) fn check(url: &str) -> Result<(), Problem> {
    Bucket::parse(url).map(drop).map_err(|error| Problem::Objects { url: url.into(), reason: error.to_string() })
}

/// Makes the tree, and one request to find out whether the bucket can be used.
pub(super) fn open(mount: &PlannedMount, url: &str) -> Result<ObjectFs, Problem> {
    let failed = |reason: String| Problem::Objects { url: url.into(), reason };
    let settings = &mount.settings;
    let bucket = Bucket {
        endpoint: settings.endpoint.clone(),
        region: settings.region.clone(),
        ..Bucket::parse(url).map_err(|error| failed(error.to_string()))?
    };
    // The kernel uses an answer for the other half of the time.
    let options = ObjectOptions { ttl: settings.objects.ttl / 2, ..settings.objects.clone() };
    let fs = ObjectFs::in_bucket(&bucket, options).map_err(|error| failed(error.to_string()))?;
    // A message has one line, and an error of OpenDAL several.
    fs.check().map_err(|error| failed(error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")))?;
    if !settings.has(MountFlags::RDONLY) {
        fs.abort_old_uploads();
    }
    Ok(fs)
}
