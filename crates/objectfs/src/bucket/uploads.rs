//! Uploads in parts that have begun and not ended.
//!
//! # What it is
//! The parts of an upload that nobody ends cost storage, and no listing shows them. The transport notes
//! each upload that begins and ends, so that the file system can abort the uploads of an object that
//! could not be written, whatever the reason: an error, an answer that reports an error with the status
//! 200, a caller that left.

use super::xml::{Record, records};
use core::time::Duration;
use opendal::raw::Timestamp;
use opendal::{Error, ErrorKind};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::SystemTime;

/// How long nothing must have happened in an upload that a program has left.
const OLD: Duration = Duration::from_secs(24 * 3600);

/// An upload in parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Upload {
    /// The URL of the object.
    pub(crate) uri: http::Uri,
    pub(crate) id: String,
}

/// See the [module documentation](self).
#[derive(Clone, Default)]
pub(crate) struct Uploads(Arc<Mutex<Vec<Upload>>>);

impl Uploads {
    /// Notes the answer to `CreateMultipartUpload`.
    pub(crate) fn begin(&self, uri: http::Uri, answer: &[u8]) {
        let records = records(&String::from_utf8_lossy(answer), "InitiateMultipartUploadResult").unwrap_or_default();
        let id = records.into_iter().find(|record| record.name == "UploadId").and_then(|record| record.text);
        if let Some(id) = id {
            self.0.lock().push(Upload { uri, id });
        }
    }

    pub(crate) fn end(&self, id: &str) {
        self.0.lock().retain(|upload| upload.id != id);
    }

    /// Returns the uploads of objects whose URLs have such paths.
    pub(crate) fn of(&self, has: impl Fn(&str) -> bool) -> Vec<Upload> {
        self.0.lock().iter().filter(|upload| has(upload.uri.path())).cloned().collect()
    }
}

/// Returns the keys and ids of the uploads in an answer to `ListMultipartUploads` that began long ago.
pub(crate) fn old_uploads(answer: &[u8]) -> Vec<(String, String)> {
    let uploads = records(&String::from_utf8_lossy(answer), "ListMultipartUploadsResult").unwrap_or_default();
    let old = uploads.into_iter().filter(|record| record.name == "Upload" && is_old(record, "Initiated"));
    let names = |record: Record| Some((record.field("Key")?.to_owned(), record.field("UploadId")?.to_owned()));
    old.filter_map(names).collect()
}

/// Returns whether an answer to `CompleteMultipartUpload` reports an object: the status of an error can
/// be 200.
///
/// # Errors
/// If the answer is neither that nor an error with a code, which OpenDAL reports.
pub(crate) fn is_completed(answer: &[u8]) -> opendal::Result<bool> {
    let text = String::from_utf8_lossy(answer);
    let is_code = |record: Record| record.name == "Code" && record.text.is_some_and(|text| !text.is_empty());
    if records(&text, "CompleteMultipartUploadResult").is_some() {
        return Ok(true);
    }
    if records(&text, "Error").is_some_and(|records| records.into_iter().any(is_code)) {
        return Ok(false);
    }
    Err(Error::new(ErrorKind::Unexpected, "the store does not report the end of an upload"))
}

/// Returns whether an answer to `ListParts` has all parts, and they all arrived long ago.
pub(crate) fn are_old(answer: &[u8]) -> bool {
    let Some(records) = records(&String::from_utf8_lossy(answer), "ListPartsResult") else { return false };
    let is_all = |record: &Record| record.name != "IsTruncated" || record.text.as_deref() == Some("false");
    records.iter().all(|record| is_all(record) && (record.name != "Part" || is_old(record, "LastModified")))
}

fn is_old(record: &Record, field: &str) -> bool {
    let at = record.field(field).and_then(|time| time.parse::<Timestamp>().ok()).map(SystemTime::from);
    at.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > OLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_upload_in_which_nothing_happened_for_a_day_is_old() {
        const LIST: &str = "ListMultipartUploadsResult";
        const PARTS: &str = "ListPartsResult";
        let now = Timestamp::now().to_string();
        let upload = |id: &str, time: &str| {
            format!("<Upload><Key>k</Key><UploadId>{id}</UploadId><Initiated>{time}</Initiated></Upload>")
        };
        let old = "2020-01-02T03:04:05Z";
        let listed = [upload("a", old), upload("b", &now), upload("c", "never")].concat();
        assert_eq!(old_uploads(format!("<{LIST}>{listed}</{LIST}>").as_bytes()), [("k".into(), "a".into())]);
        let parts = |is_truncated: bool, times: &[&str]| {
            let part = |time: &&str| format!("<Part><LastModified>{time}</LastModified></Part>");
            let parts: String = times.iter().map(part).collect();
            are_old(format!("<{PARTS}><IsTruncated>{is_truncated}</IsTruncated>{parts}</{PARTS}>").as_bytes())
        };
        assert_eq!([parts(false, &[]), parts(false, &[old, old])], [true; 2]);
        assert_eq!([parts(true, &[old]), parts(false, &[old, &now]), are_old(b"")], [false; 3]);
    }
}
