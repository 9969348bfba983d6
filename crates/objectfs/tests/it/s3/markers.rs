//! Markers of directories, which `s3s-fs` does not have: empty objects whose keys end with a slash.

use bytes::Bytes;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

/// The markers, by their paths with the bucket, with their metadata.
#[derive(Default)]
pub(crate) struct Markers(Mutex<BTreeMap<String, HeaderMap>>);

impl Markers {
    /// Returns the answer to a request for a marker.
    pub(crate) fn answer<B>(&self, root: &Path, request: &Request<B>) -> Option<Response<Bytes>> {
        let path = &*decoded(request.uri().path().trim_start_matches('/'));
        if !path.ends_with('/') || path.matches('/').count() < 2 {
            return None;
        }
        let (mut all, heads) = (self.0.lock().expect("no panic"), request.headers());
        let text = |name: &str| heads.get(name).and_then(|value| value.to_str().ok());
        let mut response = Response::new(Bytes::new());
        if heads.contains_key("x-amz-copy-source") {
            *response.body_mut() = Bytes::from_static(b"<CopyObjectResult><ETag>\"e\"</ETag></CopyObjectResult>");
        }
        match *request.method() {
            Method::PUT if text("if-none-match").is_some() && all.contains_key(path) => {
                *response.status_mut() = StatusCode::PRECONDITION_FAILED;
            }
            Method::PUT => {
                let source = text("x-amz-copy-source").map(|source| decoded(source.trim_start_matches('/')));
                let source = source.filter(|_| text("x-amz-metadata-directive") != Some("REPLACE"));
                let kept = match source {
                    Some(source) => all.get(&source).cloned(),
                    None => Some(heads.clone()),
                };
                let is_kept = |name: &str| name.starts_with("x-amz-meta-") || name == "content-type";
                let named = |(name, value): (Option<_>, _)| Some((name?, value));
                let kept = kept.unwrap_or_default().into_iter().filter_map(named);
                all.insert(path.into(), kept.filter(|(name, _)| is_kept(name.as_str())).collect());
                std::fs::create_dir_all(root.join(path)).expect("a directory");
            }
            Method::HEAD => match all.get(path) {
                Some(heads) => response.headers_mut().clone_from(heads),
                None => *response.status_mut() = StatusCode::NOT_FOUND,
            },
            Method::DELETE => {
                all.remove(path);
                // Unless it has objects.
                let _ = std::fs::remove_dir(root.join(path));
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
            _ => return None,
        }
        Some(response)
    }

    /// Adds the markers to the first page of a listing.
    pub(crate) fn add_to(&self, query: &str, page: &str) -> String {
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let prefix = value("prefix").unwrap_or_default();
        let prefix = decoded(prefix);
        let mut entries = String::new();
        for path in self.0.lock().expect("no panic").keys().filter(|_| value("continuation-token").is_none()) {
            let key = path.split_once('/').expect("a bucket").1;
            let Some(rest) = key.strip_prefix(&prefix) else { continue };
            let entry = match rest.find('/').filter(|_| value("delimiter").is_some()) {
                Some(end) => {
                    let name = format!("<Prefix>{}</Prefix>", &key[..=prefix.len() + end]);
                    format!("<CommonPrefixes>{name}</CommonPrefixes>")
                }
                None => format!(
                    "<Contents><Key>{key}</Key><LastModified>2026-01-02T03:04:05Z</LastModified><Size>0</Size></Contents>"
                ),
            };
            if !page.contains(&entry) && !entries.contains(&entry) {
                entries += &entry;
            }
        }
        if value("max-keys") == Some("2") && entries.contains(&format!("<Key>{prefix}</Key>")) {
            return format!("<ListBucketResult>{}</ListBucketResult>", first_two(&format!("{entries}{page}")));
        }
        let end = page.find("<Contents>").or_else(|| page.find("</ListBucketResult>")).unwrap_or(page.len());
        format!("{}{entries}{}", &page[..end], &page[end..])
    }
}

/// Returns the first object of a page, the marker, and one other entry.
fn first_two(page: &str) -> String {
    let entry = |tag: &str| {
        let start = page.find(&format!("<{tag}>"))?;
        let end = page[start..].find(&format!("</{tag}>"))? + tag.len() + 3;
        Some((&page[start..start + end], &page[start + end..]))
    };
    let (marker, rest) = entry("Contents").unwrap_or_default();
    let object = rest.find("<Contents>").map(|at| &rest[at..]);
    let object = object.and_then(|rest| Some(&rest[..rest.find("</Contents>")? + "</Contents>".len()]));
    format!("{marker}{}", entry("CommonPrefixes").map(|found| found.0).or(object).unwrap_or_default())
}

/// Decodes the characters of the tests' keys.
fn decoded(text: &str) -> String {
    text.replace("%20", " ").replace("%2F", "/")
}
