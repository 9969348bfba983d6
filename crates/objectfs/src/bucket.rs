//! A bucket of S3, or of a server that speaks its protocol, by its URL.
//!
//! Without `keys`, the credentials come from where AWS's own tools take them: the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
//! `AWS_SESSION_TOKEN`, `AWS_PROFILE`), the files in `~/.aws`, the role of a container or of a machine.

pub(crate) mod cursor;
mod heads;
pub(crate) mod page;
mod transport;
mod uploads;
mod xml;

use crate::calls::Calls;
use crate::options::ObjectOptions;
use core::fmt;
pub(crate) use heads::Heads;
use opendal::services::S3;
use opendal::{HttpTransporter, Operator};
pub(crate) use transport::Transport;

/// The scheme of a bucket's URL.
const SCHEME: &str = "s3://";

/// The region in signatures if the caller gives none, as in AWS's tools.
const REGION: &str = "us-east-1";

/// Where the objects of a tree are.
///
/// ```
/// use lightfoot_objectfs::Bucket;
///
/// let bucket = Bucket::parse("s3://photos/2024")?;
/// assert_eq!((&*bucket.name, &*bucket.prefix), ("photos", "2024"));
/// # Ok::<(), lightfoot_objectfs::BucketError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// The name of the bucket.
    pub name: String,
    /// The beginning of the keys of all objects in the tree, without slashes at its ends. The
    /// prefix may be empty.
    pub prefix: String,
    /// The URL of the server. `None`: `AWS_ENDPOINT_URL`, else AWS.
    pub endpoint: Option<String>,
    /// The region. `None`: `AWS_REGION`, else `us-east-1`.
    pub region: Option<String>,
    /// The credentials. `None`: the credentials of the environment.
    pub keys: Option<Keys>,
}

/// The credentials of a user of a store.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// The name of the key.
    pub access_key: String,
    /// The secret.
    pub secret_key: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// The reason why a bucket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// Not `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    #[error("not the URL of a bucket (use s3://BUCKET or s3://BUCKET/PREFIX)")]
    Url,
    /// A directory bucket of S3 Express, whose requests and listings differ.
    #[error("directory buckets of S3 Express are not supported")]
    DirectoryBucket,
    /// The server's name, the region or the credentials cannot be used.
    #[error("{0}")]
    Config(opendal::Error),
    /// HTTP cannot be used.
    #[error("{0}")]
    Http(reqwest::Error),
    /// The threads for the requests cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
}

impl Bucket {
    /// Returns the bucket and prefix of a URL.
    ///
    /// # Errors
    /// [`BucketError::Url`], [`BucketError::DirectoryBucket`].
    pub fn parse(url: &str) -> Result<Self, BucketError> {
        let rest = url.strip_prefix(SCHEME).ok_or(BucketError::Url)?;
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let prefix = prefix.trim_matches('/');
        let is_prefix = prefix.is_empty() || prefix.split('/').all(crate::key::is_name) && prefix.trim() == prefix;
        if name.is_empty() || !name.bytes().all(is_name) || !is_prefix {
            return Err(BucketError::Url);
        }
        if name.ends_with("--x-s3") {
            return Err(BucketError::DirectoryBucket);
        }
        Ok(Self { name: name.into(), prefix: prefix.into(), endpoint: None, region: None, keys: None })
    }

    /// Returns an operator over the bucket, whose requests `calls` counts, and its transport. Makes no
    /// request.
    ///
    /// # Errors
    /// If the endpoint is not a URL.
    pub(crate) fn operator(
        &self,
        options: &ObjectOptions,
        calls: &Calls,
    ) -> Result<(Operator, Transport), BucketError> {
        // This fails if the process has installed a provider already, which also works.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let given = |option: &Option<String>, name: &str| {
            option.clone().or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
        };
        let region = given(&self.region, "AWS_REGION").unwrap_or_else(|| REGION.into());
        let endpoint = given(&self.endpoint, "AWS_ENDPOINT_URL");
        let keys = self.keys.as_ref().map(|keys| (&*keys.access_key, &*keys.secret_key));
        let transport = Transport::new(endpoint.as_deref(), options, calls.clone()).map_err(BucketError::Http)?;
        let transport = transport.signing(&self.name, &region, keys);
        let service = S3::default().bucket(&self.name).root(&format!("/{}", self.prefix)).region(&region);
        // The transport signs.
        let mut service = service.skip_signature();
        if let Some(endpoint) = endpoint {
            service = service.endpoint(&endpoint);
        }
        let operator = Operator::new(service).map_err(BucketError::Config)?;
        let context = operator.base_context().with_http_transport(HttpTransporter::new(transport.clone()));
        Ok((operator.with_context(context), transport))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_bucket_and_perhaps_a_prefix() {
        let cases = [
            ("s3://b", Some(("b", ""))),
            ("s3://b/", Some(("b", ""))),
            ("s3://my.bucket-1/a/b/", Some(("my.bucket-1", "a/b"))),
            ("s3://", None),
            ("s3:///a", None),
            ("s3://b/a//b", None),
            ("s3://b/../c", None),
            ("s3://b/ a", None),
            ("s3://b?x", None),
            ("s3://b--use1-az4--x-s3", None),
            ("http://b", None),
        ];
        for (url, expected) in cases {
            let parsed = Bucket::parse(url).ok().map(|bucket| (bucket.name, bucket.prefix));
            assert_eq!(parsed, expected.map(|(name, prefix)| (name.into(), prefix.into())), "{url}");
        }
    }
}
