//! The XML of S3's answers: a root, its elements, and their elements.
//!
//! An answer is read only under the name of its root. An error that has the status 200, or the page of a
//! proxy, has another root, and would read as an answer without elements.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

/// The most elements that lie in one another. S3 has four.
const DEPTH: usize = 8;

/// An element of the root.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) name: String,
    /// `None`: it has a character that cannot be.
    pub(crate) text: Option<String>,
    /// The names and texts of its elements.
    pub(crate) fields: Vec<(String, Option<String>)>,
}

impl Record {
    /// Returns the text of the element `name`.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name)?.1.as_deref()
    }
}

/// Returns the elements of the root; `None` if the text is not XML with the root `root`.
pub(crate) fn records(xml: &str, root: &str) -> Option<Vec<Record>> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let (mut records, mut fields, mut path) = (Vec::new(), Vec::new(), Vec::<String>::new());
    // Of the innermost element.
    let mut text = Some(String::new());
    let mut has_root = false;
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) if path.len() < DEPTH => {
                if path.is_empty() && (has_root || start.local_name().as_ref() != root) {
                    return None;
                }
                has_root = true;
                path.push(start.local_name().as_ref().to_owned());
                text = Some(String::new());
            }
            Event::Start(_) => return None,
            Event::Text(part) => text = text.map(|text| text + &part),
            Event::CData(part) => text = text.map(|text| text + part.as_ref()),
            Event::GeneralRef(name) => {
                let number = name.resolve_char_ref().ok().flatten().map(String::from);
                let named = || resolve_predefined_entity(&name).map(str::to_owned);
                text = text.zip(number.or_else(named)).map(|(text, part)| text + &part);
            }
            Event::End(_) => {
                let (name, text) = (path.pop()?, text.replace(String::new()));
                match path.len() {
                    1 => records.push(Record { name, text, fields: core::mem::take(&mut fields) }),
                    2 => fields.push((name, text)),
                    _ => {}
                }
            }
            Event::Eof => return (has_root && path.is_empty()).then_some(records),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_xml_is_refused() {
        let deep = "<a>".repeat(DEPTH + 1) + &"</a>".repeat(DEPTH + 1);
        for xml in ["", "text", "<a>", "<a></b>", "<a><b></a></b>", "<b></b>", "<a></a><a></a>", &deep] {
            assert!(records(xml, "a").is_none(), "{xml}");
        }
        assert!(records("<x:a/>", "a").is_some_and(|records| records.is_empty()));
    }

    #[test]
    fn elements_have_their_texts() {
        let records = records("<r><a>1&amp;&#50;</a><b><c>&#0;</c><d/><e><f>x</f>y</e></b></r>", "r").unwrap();
        assert_eq!((&*records[0].name, records[0].text.as_deref()), ("a", Some("1&2")));
        let fields: Vec<_> = records[1].fields.iter().map(|(name, text)| (&**name, text.as_deref())).collect();
        assert_eq!(fields, [("c", None), ("d", Some("")), ("e", Some("y"))]);
    }
}
