//! A page of a listing of S3: read as from a stranger, and written anew for OpenDAL.
//!
//! # What it is
//! OpenDAL drops a whole page for one entry that it cannot read, and panics for a key that does not
//! begin with the prefix. So the page is parsed here. An entry that cannot be a file (a character that
//! XML does not allow, a size over 2^63, a year that no clock has, a key outside of the prefix) becomes
//! an entry whose name no request can have: it is not shown, and its directory is not empty.
//!
//! # Where it comes from
//! `ListObjectsV2` of the API reference of S3.

use super::cursor::Cursor;
use super::xml::records;
use core::fmt::Write;
use opendal::raw::Timestamp;
use opendal::{Error, ErrorKind};
use percent_encoding::percent_decode_str;

/// The root of a page.
const ROOT: &str = "ListBucketResult";

/// The most bytes of an ETag that is kept; S3's have 40.
pub(crate) const MAX_ETAG: usize = 1024;

/// The name of an entry that is not shown: [`Key`](crate::key::Key) refuses a blank at the end.
const HIDDEN: &str = "hidden ";

/// An object, or a prefix of some objects.
#[derive(Default)]
struct Entry {
    is_prefix: bool,
    /// `None`: it cannot be read.
    key: Option<String>,
    size: Option<u64>,
    modified: Option<String>,
    etag: Option<String>,
}

#[derive(Default)]
struct Page {
    entries: Vec<Entry>,
    token: Option<String>,
    is_truncated: Option<bool>,
    is_escaped: bool,
}

/// Returns the page in the form that OpenDAL parses. Its entries begin with `prefix`, and its token has
/// the cursor of the listing.
///
/// # Errors
/// If the answer is not the XML of a page (a temporary error: some servers cut a listing under load), or the listing
/// does not end.
pub(crate) fn rewrite(xml: &[u8], prefix: &str, cursor: Cursor) -> opendal::Result<String> {
    let page = parse(xml)
        .ok_or_else(|| Error::new(ErrorKind::Unexpected, "a listing is not the XML of a listing").set_temporary())?;
    let next = page.token.filter(|_| page.is_truncated != Some(false));
    let mut written = format!("<ListBucketResult><IsTruncated>{}</IsTruncated>", next.is_some());
    if let Some(token) = next {
        element(&mut written, "NextContinuationToken", &cursor.next(page.entries.len() as u64, &token)?);
    }
    let has_losses = core::str::from_utf8(xml).is_err();
    for mut entry in page.entries {
        let key = entry.key.take().and_then(|key| if page.is_escaped { unescape(&key) } else { Some(key) });
        entry.key =
            key.filter(|key| !(has_losses && key.contains('\u{fffd}')) && is_below(key, prefix, entry.is_prefix));
        entry.write(&mut written, prefix);
    }
    Ok(written + "</ListBucketResult>")
}

impl Entry {
    /// Takes the element `name` of the entry.
    fn take(&mut self, name: &str, text: Option<String>) {
        match name {
            "Key" | "Prefix" => self.key = text,
            "Size" => self.size = text.and_then(|text| text.parse().ok()).filter(|size| i64::try_from(*size).is_ok()),
            "LastModified" => self.modified = text.filter(|text| text.parse::<Timestamp>().is_ok()),
            "ETag" => self.etag = text.filter(|etag| etag.len() <= MAX_ETAG),
            _ => {}
        }
    }

    fn write(&self, into: &mut String, prefix: &str) {
        match self {
            Self { is_prefix: true, key: Some(key), .. } => {
                *into += "<CommonPrefixes>";
                element(into, "Prefix", key);
                *into += "</CommonPrefixes>";
            }
            Self { key: Some(key), size: Some(size), modified: Some(modified), etag, .. } => {
                *into += "<Contents>";
                element(into, "Key", key);
                element(into, "Size", &size.to_string());
                element(into, "LastModified", modified);
                if let Some(etag) = etag {
                    element(into, "ETag", etag);
                }
                *into += "</Contents>";
            }
            _ => {
                *into += "<Contents><LastModified>1970-01-01T00:00:00Z</LastModified><Size>0</Size>";
                element(into, "Key", &format!("{prefix}{HIDDEN}"));
                *into += "</Contents>";
            }
        }
    }
}

/// Returns the page; `None` if it is not the XML of a page.
fn parse(xml: &[u8]) -> Option<Page> {
    let mut page = Page::default();
    for record in records(&String::from_utf8_lossy(xml), ROOT)? {
        let is = |word: &str| record.text.as_deref().is_some_and(|text| text.trim() == word);
        match &*record.name {
            "Contents" | "CommonPrefixes" => {
                let mut entry = Entry { is_prefix: record.name == "CommonPrefixes", ..Entry::default() };
                record.fields.into_iter().for_each(|(name, text)| entry.take(&name, text));
                page.entries.push(entry);
            }
            "NextContinuationToken" => page.token = record.text.filter(|token| !token.is_empty()),
            "IsTruncated" => page.is_truncated = Some(is("true")),
            "EncodingType" => page.is_escaped = is("url"),
            _ => {}
        }
    }
    Some(page)
}

/// Returns whether OpenDAL takes a key in a listing of `prefix`.
fn is_below(key: &str, prefix: &str, is_prefix: bool) -> bool {
    let is_rest = |rest: &str| !rest.starts_with('/') && (!is_prefix || rest.ends_with('/'));
    // XML has no number for NUL.
    !key.is_empty() && !key.contains('\0') && key.strip_prefix(prefix).is_some_and(is_rest)
}

/// Returns a key that the server has escaped, as in a form of HTML.
fn unescape(key: &str) -> Option<String> {
    percent_decode_str(&key.replace('+', " ")).decode_utf8().ok().map(String::from)
}

/// Writes an element. All but plain characters are written as their numbers, so that no parser changes
/// blanks and ends of lines.
fn element(into: &mut String, name: &str, text: &str) {
    let _ = write!(into, "<{name}>");
    for character in text.chars() {
        if character.is_ascii_graphic() && !matches!(character, '<' | '>' | '&') {
            into.push(character);
        } else {
            let _ = write!(into, "&#{};", u32::from(character));
        }
    }
    let _ = write!(into, "</{name}>");
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-01-02T03:04:05Z";

    fn object(key: &str, size: &str, time: &str) -> String {
        format!("<Contents><Key>{key}</Key><LastModified>{time}</LastModified><Size>{size}</Size></Contents>")
    }

    /// The keys in a page with these entries, as OpenDAL gets them; `None` for one that is not shown.
    fn keys(entries: &str, prefix: &str) -> Vec<Option<String>> {
        let xml = format!(
            "<?xml version=\"1.0\"?><{ROOT} xmlns=\"x\"><Name>b</Name><EncodingType>url</EncodingType>{entries}</{ROOT}>"
        );
        let written = rewrite(xml.as_bytes(), prefix, Cursor::default()).unwrap();
        let entries = parse(written.as_bytes()).unwrap().entries;
        let is_whole = |entry: &Entry| entry.is_prefix || entry.size.is_some() && entry.modified.is_some();
        assert!(entries.iter().all(is_whole), "{written}");
        let hidden = format!("{prefix}{HIDDEN}");
        entries.into_iter().map(|entry| entry.key.filter(|key| *key != hidden)).collect()
    }

    #[test]
    fn one_bad_entry_does_not_hide_the_others() {
        let good = object("d/good", "1", TIME);
        let bad = [
            object("d/&#0;", "1", TIME),
            object("d/&unknown;", "1", TIME),
            object("d/big", "18446744073709551616", TIME),
            object("d/big", "9223372036854775808", TIME),
            object("d/old", "1", "9999-12-31T23:59:59Z"),
            object("d/old", "1", "yesterday"),
            object("d", "1", TIME),
            object("", "1", TIME),
            object("other/a", "1", TIME),
            object("d/%ff", "1", TIME),
            object("d/%00", "1", TIME),
            "<Contents></Contents>".into(),
            "<Contents/>".into(),
            object("d//a", "1", TIME),
            "<CommonPrefixes><Prefix>d/e</Prefix></CommonPrefixes>".into(),
            "<CommonPrefixes><Prefix>e/</Prefix></CommonPrefixes>".into(),
        ];
        for bad in bad {
            let shown = keys(&format!("{good}{bad}{good}"), "d/");
            let good = Some("d/good".to_owned());
            assert_eq!(shown, [good.clone(), None, good], "{bad}");
        }
    }

    #[test]
    fn keys_arrive_as_the_server_has_them() {
        let cases = [("a%20b+c%2Bd", "a b c+d"), ("%01%0D%0A", "\u{1}\r\n"), ("%C3%A4&amp;&#65;", "ä&A"), ("+", " ")];
        for (escaped, key) in cases {
            assert_eq!(keys(&object(escaped, "1", TIME), ""), [Some(key.to_owned())], "{escaped}");
        }
        let dir = "<CommonPrefixes><Prefix>a%2Bb/</Prefix></CommonPrefixes>";
        assert_eq!(keys(dir, "a"), [Some("a+b/".to_owned())]);
    }

    #[test]
    fn a_page_that_is_not_xml_is_a_temporary_error() {
        for answer in ["<a><b>", "", "<Error><Code>InternalError</Code></Error>", "<html></html>", "<ListBucketResult>"]
        {
            assert!(rewrite(answer.as_bytes(), "", Cursor::default()).unwrap_err().is_temporary(), "{answer}");
        }
    }

    #[test]
    fn a_page_has_a_token_unless_it_is_the_last() {
        let token = "<NextContinuationToken>t</NextContinuationToken>";
        for (says, has) in
            [("<IsTruncated>true</IsTruncated>", true), ("<IsTruncated>false</IsTruncated>", false), ("", true)]
        {
            let xml = format!("<{ROOT}>{says}{token}</{ROOT}>");
            let written = rewrite(xml.as_bytes(), "", Cursor::default()).unwrap();
            let page = parse(written.as_bytes()).unwrap();
            assert_eq!((page.token.is_some(), page.is_truncated), (has, Some(has)));
        }
    }
}
