//! Words in lines of the width of a terminal.

/// Columns of the terminal.
pub(crate) const COLUMNS: usize = 80;

/// Returns `words` in lines, with spaces between them. Each line leaves `indent` columns free.
pub(crate) fn lines(words: impl IntoIterator<Item = String>, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if indent + line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                *line += " ";
                *line += &word;
            }
            _ => lines.push(word),
        }
    }
    lines
}
