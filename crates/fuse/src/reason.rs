//! Reasons: the text of an `io::Error` as a part of a longer message.

use std::io;

/// The text of `error` without the number that the standard library appends: `Permission denied` instead of
/// `Permission denied (os error 13)`.
#[must_use]
pub fn without_number(error: &io::Error) -> String {
    let mut text = error.to_string();
    let number = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (os error "));
    if let Some((reason, number)) = number
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        let len = reason.len();
        text.truncate(len);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_system_error_is_removed() {
        assert_eq!(without_number(&io::Error::from_raw_os_error(13)), "Permission denied");
        let wrapped = io::Error::other(format!("open: {}", io::Error::from_raw_os_error(2)));
        assert_eq!(without_number(&wrapped), "open: No such file or directory");
    }

    #[test]
    fn other_text_is_kept() {
        for text in ["", "x (os error)", "x (os error )", "x (os error 2) y", "x (os error two)", "(os error"] {
            assert_eq!(without_number(&io::Error::other(text)), text);
        }
    }
}
