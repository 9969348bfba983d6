//! Requests about an object's metadata that OpenDAL does not have: of a marker, and of an object that
//! keeps its contents.

use super::transport::{IN_PATH, METADATA, Transport, text_of};
use super::xml::records;
use crate::kept::Kept;
use http::{HeaderMap, HeaderName, HeaderValue};
use opendal::{Error, ErrorKind};
use percent_encoding::utf8_percent_encode;
use reqwest::Method;
use reqwest::header::{CONTENT_LENGTH, ETAG, IF_NONE_MATCH};
use std::collections::HashMap;

/// The heads of an object, beside its metadata, that a copy with other metadata loses unless the request
/// has them.
const PROPERTIES: [&str; 10] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-storage-class",
    "x-amz-website-redirect-location",
];

/// The heads of an answer about an object.
pub(crate) struct Heads(HeaderMap);

impl Heads {
    /// Returns the bytes of the object.
    pub(crate) fn len(&self) -> Option<u64> {
        text_of(&self.0, CONTENT_LENGTH)?.parse().ok()
    }

    pub(crate) fn etag(&self) -> Option<&str> {
        text_of(&self.0, ETAG)
    }

    pub(crate) fn kept(&self) -> Kept {
        Kept::read(|name| text_of(&self.0, format!("{METADATA}{name}")))
    }

    /// Returns the object's metadata with the attributes in `pairs` over them.
    pub(crate) fn with(&self, pairs: HashMap<String, String>) -> HashMap<String, String> {
        let name = |(name, value): (&HeaderName, &HeaderValue)| {
            Some((name.as_str().strip_prefix(METADATA)?.to_owned(), value.to_str().ok()?.to_owned()))
        };
        self.0.iter().filter_map(name).chain(pairs).collect()
    }
}

impl Transport {
    /// Returns the heads of the object `key`.
    ///
    /// # Errors
    /// `NotFound`; the error of the request.
    pub(crate) async fn heads(&self, key: &str) -> opendal::Result<Heads> {
        self.send_for(Method::HEAD, key, HeaderMap::new()).await.map(|(heads, _)| Heads(heads))
    }

    /// Writes a marker. With `is_new`, an existing one stays.
    ///
    /// # Errors
    /// The error of the request.
    pub(crate) async fn put_marker(
        &self,
        key: &str,
        pairs: &HashMap<String, String>,
        is_new: bool,
    ) -> opendal::Result<()> {
        let mut headers = metadata(pairs)?;
        headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
        if is_new {
            headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        match self.send_for(Method::PUT, key, headers).await {
            Err(error) if is_new && error.kind() == ErrorKind::ConditionNotMatch => Ok(()),
            written => written.map(drop),
        }
    }

    /// Copies a marker with its metadata.
    ///
    /// # Errors
    /// The error of the request.
    pub(crate) async fn copy_marker(&self, from: &str, to: &str) -> opendal::Result<()> {
        let headers = HeaderMap::from_iter([(COPY_SOURCE, self.source(from)?), (CONTENT_LENGTH, HeaderValue::from(0))]);
        self.send_for(Method::PUT, to, headers).await.map(drop)
    }

    /// Replaces the metadata of the object that has these heads. Returns its new ETag.
    ///
    /// # Errors
    /// `ConditionNotMatch`: another program has written the object since; the error of the request.
    pub(crate) async fn replace_metadata(
        &self,
        key: &str,
        heads: &Heads,
        pairs: &HashMap<String, String>,
    ) -> opendal::Result<Option<String>> {
        let mut headers = metadata(pairs)?;
        for name in PROPERTIES.map(HeaderName::from_static) {
            if let Some(value) = heads.0.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        headers.insert(COPY_SOURCE, self.source(key)?);
        headers.insert(HeaderName::from_static("x-amz-metadata-directive"), HeaderValue::from_static("REPLACE"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
        if let Some(etag) = heads.0.get(ETAG) {
            headers.insert(HeaderName::from_static("x-amz-copy-source-if-match"), etag.clone());
        }
        let (_, answer) = self.send_for(Method::PUT, key, headers).await?;
        let records = records(&String::from_utf8_lossy(&answer), "CopyObjectResult").unwrap_or_default();
        Ok(records.into_iter().find(|record| record.name == "ETag").and_then(|record| record.text))
    }

    /// Returns the name of an object as the source of a copy.
    fn source(&self, key: &str) -> opendal::Result<HeaderValue> {
        let name = format!("/{}/{}", self.bucket, utf8_percent_encode(key, IN_PATH));
        name.try_into().map_err(|_| Error::new(ErrorKind::Unexpected, "the object has no name"))
    }

    async fn send_for(&self, method: Method, key: &str, headers: HeaderMap) -> opendal::Result<(HeaderMap, Vec<u8>)> {
        let uri = self.uri(key).ok_or_else(|| Error::new(ErrorKind::Unexpected, "the bucket has no URL"))?;
        self.send(method, uri, headers).await
    }
}

const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");

/// Returns metadata as heads of a request.
fn metadata(pairs: &HashMap<String, String>) -> opendal::Result<HeaderMap> {
    let head = |(name, value): (&String, &String)| {
        Some((format!("{METADATA}{name}").try_into().ok()?, value.try_into().ok()?))
    };
    let heads: Option<HeaderMap> = pairs.iter().map(head).collect();
    heads.ok_or_else(|| Error::new(ErrorKind::Unexpected, "the metadata cannot be sent"))
}
