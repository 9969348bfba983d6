//! `lightfoot diff --stat`: the lines that were added to and removed from each file.

use super::CompareError;
use super::patch::{is_binary, lines, quoted_path};
use super::sides::{Entry, Pair, Sides, pairs};
use similar::ChangeTag;
use std::io::Write;

/// The most columns of plus and minus signs.
const SIGNS: usize = 40;

/// The change of one file.
enum Size {
    /// Lines added and removed.
    Lines(usize, usize),
    /// The bytes before and after.
    Bytes(usize, usize),
}

/// Writes a line for each file, and a summary.
///
/// # Errors
/// If a file cannot be read, or `out` not be written.
pub(super) fn write(sides: &Sides<'_>, out: &mut impl Write) -> Result<(), CompareError> {
    let files = sides.files()?;
    let mut rows = Vec::new();
    for pair in pairs(&files, &sides.changes) {
        sides.check()?;
        rows.push((name(pair), size(pair)?));
    }
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let most = rows.iter().map(|(_, size)| if let Size::Lines(added, removed) = size { added + removed } else { 0 });
    let most = most.max().unwrap_or(0);
    let (mut sum, digits) = ([0; 2], most.to_string().len());
    for (name, size) in &rows {
        match size {
            Size::Bytes(old, new) => writeln!(out, " {name:width$} | {:>digits$} {old} -> {new} bytes", "Bin")?,
            Size::Lines(added, removed) => {
                sum = [sum[0] + added, sum[1] + removed];
                let [plus, minus] = [added, removed].map(|count| signs(*count, most));
                let signs = "+".repeat(plus) + &"-".repeat(minus);
                writeln!(out, "{}", format!(" {name:width$} | {:>digits$} {signs}", added + removed).trim_end())?;
            }
        }
    }
    let [added, removed] = sum;
    let files = if rows.len() == 1 { "1 file".into() } else { format!("{} files", rows.len()) };
    Ok(writeln!(out, " {files} changed; lines: {added} added, {removed} removed")?)
}

/// Returns the number of signs for a number of lines.
fn signs(count: usize, most: usize) -> usize {
    if most <= SIGNS { count } else { (count * SIGNS).div_ceil(most) }
}

fn name((old, new): Pair<'_>) -> String {
    let [old, new] = [old, new].map(|side| side.map(|side| quoted_path(&side.path)));
    match (old, new) {
        (Some(old), Some(new)) if old != new => format!("{old} => {new}"),
        (old, new) => new.or(old).unwrap_or_default(),
    }
}

fn size((old, new): Pair<'_>) -> Result<Size, CompareError> {
    let is_read = |entry: &&Entry| entry.meta.is_file() || entry.meta.is_symlink();
    let body = |side: Option<&Entry>| side.filter(is_read).map_or(Ok(Vec::new()), Entry::body);
    let (old, new) = (body(old)?, body(new)?);
    if is_binary(&old) || is_binary(&new) {
        return Ok(Size::Bytes(old.len(), new.len()));
    }
    let diff = lines(&old, &new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    Ok(Size::Lines(count(ChangeTag::Insert), count(ChangeTag::Delete)))
}
