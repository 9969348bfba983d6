//! Escapes for whole texts: lines for a terminal, and JSON.
//!
//! # What it is
//! The last door before standard output, standard error and the log. Each name in a text has passed through [`Foreign`] where
//! the text was made: here a line break of a name looks like one of the text.

use std::borrow::Cow;
use vfs::Foreign;

/// Returns lines of text, without characters that a terminal would obey except for the ends of lines.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |letter| Foreign::text(letter).to_string())
}

/// Returns a JSON document with escapes of JSON, so that its strings keep their values.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    // Only strings have such characters, and none of them needs two units of UTF-16.
    replaced(text, |letter| format!("\\u{:04x}", u32::from(letter)))
}

fn replaced(text: &str, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    let is_obeyed = |letter: char| letter != '\n' && Foreign::is_obeyed(letter);
    if !text.contains(is_obeyed) {
        return text.into();
    }
    text.chars().map(|letter| if is_obeyed(letter) { escape(letter) } else { letter.into() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_lines_and_json_keeps_its_values() {
        assert_eq!(lines("a\u{1b}\nb\u{202e}\r\n"), "a\\u{1b}\nb\\u{202e}\\r\n");
        let value = serde_json::json!({ "a\u{9b}": ["\u{7f}\u{202e}\u{2028}", "\u{1b}\n\té"] });
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let escaped = json(&text);
            assert_eq!(escaped.chars().filter(|&letter| Foreign::is_obeyed(letter) && letter != '\n').count(), 0);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }
    }
}
