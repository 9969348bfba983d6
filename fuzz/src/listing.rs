//! Pages of listings of a store: each is refused, or its entries are below the prefix and can be read.

use crate::input::Input;
use crate::objects::cursor::Cursor;
use crate::objects::page::rewrite;
use crate::objects::xml::records;

/// Pieces of a page, good and bad.
const PIECES: &[&str] = &[
    "<ListBucketResult>",
    "</ListBucketResult>",
    "<Contents>",
    "</Contents>",
    "<Contents/>",
    "<CommonPrefixes>",
    "</CommonPrefixes>",
    "<Key>",
    "</Key>",
    "<Prefix>",
    "</Prefix>",
    "<Size>",
    "</Size>",
    "<LastModified>",
    "</LastModified>",
    "<ETag>&quot;e&quot;</ETag>",
    "<IsTruncated>true</IsTruncated>",
    "<IsTruncated>false</IsTruncated>",
    "<NextContinuationToken>",
    "</NextContinuationToken>",
    "<EncodingType>url</EncodingType>",
    "2026-01-02T03:04:05Z",
    "9999-12-31T23:59:59Z",
    "18446744073709551616",
    "1",
    "d/",
    "d",
    "/",
    "name ",
    "%2F",
    "%ff",
    "+",
    "&#0;",
    "&#x110000;",
    "&amp;",
    "&none;",
    "<![CDATA[x]]>",
    "<!--",
    "ü",
];

/// Makes a page. A byte of the input below 64 adds a piece, a byte from 64 to 127 a whole entry, and a
/// greater byte is added itself.
fn page(input: &mut Input<'_>) -> Vec<u8> {
    let mut page = b"<ListBucketResult>".to_vec();
    while !input.is_empty() && page.len() < 4000 {
        match input.byte() {
            byte if byte < 0x40 => page.extend_from_slice(PIECES[usize::from(byte) % PIECES.len()].as_bytes()),
            byte if byte < 0x80 => {
                let key = [*input.pick(PIECES), *input.pick(PIECES)].concat();
                let (size, time) = (input.pick(&["1", "-1", ""]), input.pick(&["2026-01-02T03:04:05Z", "now"]));
                let entry = format!("<Key>{key}</Key><Size>{size}</Size><LastModified>{time}</LastModified>");
                page.extend_from_slice(format!("<Contents>{entry}</Contents>").as_bytes());
            }
            byte => page.push(byte),
        }
    }
    page.extend_from_slice(b"</ListBucketResult>");
    page
}

/// Runs one input. After a first byte of 255, the input is the page.
pub fn run(data: &[u8]) {
    let page = match data {
        [0xff, page @ ..] => page.to_vec(),
        data => page(&mut Input::new(data)),
    };
    for prefix in ["", "d/"] {
        let Ok(written) = rewrite(&page, prefix, Cursor::default()) else { continue };
        for record in records(&written, "ListBucketResult").expect("what was written is XML") {
            let key = record.field("Key").or(record.field("Prefix"));
            match &*record.name {
                "Contents" => {
                    let size = record.field("Size").and_then(|size| size.parse::<i64>().ok());
                    assert!(size.is_some_and(|size| size >= 0), "{written}");
                    assert!(key.is_some_and(|key| !key.is_empty() && key.starts_with(prefix)), "{written}");
                }
                "CommonPrefixes" => {
                    assert!(key.is_some_and(|key| key.starts_with(prefix) && key.ends_with('/')), "{written}");
                }
                _ => {}
            }
        }
        // A page in the form that OpenDAL gets has nothing to mend.
        let again = rewrite(written.as_bytes(), prefix, Cursor::default()).expect("it was written");
        let len = |page: &str| records(page, "ListBucketResult").map(|all| all.len());
        assert_eq!(len(&again), len(&written));
    }
}
