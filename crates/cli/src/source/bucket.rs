//! Object stores: `s3://BUCKET/PREFIX`. Without the feature `s3` of this crate each is refused.

use super::{PlannedMount, Problem};

/// The beginning of a SOURCE that is a bucket.
pub(super) const S3: &str = "s3://";

#[cfg(feature = "s3")]
pub(super) use built_in::{check, open};
#[cfg(not(feature = "s3"))]
pub(super) use left_out::{check, open};

#[cfg(feature = "s3")]
mod built_in {
    use super::{PlannedMount, Problem};
    use objectfs::{Bucket, ObjectFs, ObjectOptions};

    pub(in super::super) fn check(url: &str) -> Result<(), Problem> {
        Bucket::parse(url).map(drop).map_err(|error| Problem::Objects { url: url.into(), reason: error.to_string() })
    }

    /// Makes the tree, and one request to find out whether the bucket can be used.
    pub(in super::super) fn open(mount: &PlannedMount, url: &str) -> Result<ObjectFs, Problem> {
        let failed = |reason: String| Problem::Objects { url: url.into(), reason };
        let (settings, usual) = (&mount.settings.objects, ObjectOptions::default());
        let bucket = Bucket {
            endpoint: settings.endpoint.clone(),
            region: settings.region.clone(),
            ..Bucket::parse(url).map_err(|error| failed(error.to_string()))?
        };
        let options = ObjectOptions {
            ttl: settings.half_ttl(),
            cache_bytes: settings.cache_bytes.unwrap_or(usual.cache_bytes),
            timeout: settings.timeout.unwrap_or(usual.timeout),
            copies_directories: settings.copies_directories,
            ..usual
        };
        let operator = bucket.operator().map_err(|error| failed(error.to_string()))?;
        let fs = ObjectFs::new(operator, options).map_err(|error| failed(error.to_string()))?;
        // A message has one line, and an error of OpenDAL several.
        fs.check().map_err(|error| failed(error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")))?;
        Ok(fs)
    }
}

#[cfg(not(feature = "s3"))]
mod left_out {
    use super::{PlannedMount, Problem};
    use lightfoot::RamFs;

    pub(in super::super) fn check(url: &str) -> Result<(), Problem> {
        Err(Problem::NotBuiltIn(url.into()))
    }

    /// Not reached: the check comes before.
    pub(in super::super) fn open(_: &PlannedMount, url: &str) -> Result<RamFs, Problem> {
        Err(Problem::NotBuiltIn(url.into()))
    }
}
