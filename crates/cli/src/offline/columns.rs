//! The columns of `ls`: long lines, or names side by side.

use super::entry::{device_numbers, is_device, mode_in_letters};
use super::owners::Owners;
use super::stamp;
use super::text::Style;
use super::zone::Zone;
use lightfoot::Metadata;
use std::io::{self, Write};

/// Columns between names that stand side by side.
const GAP: usize = 2;

/// The width of a terminal that does not say.
const USUAL_WIDTH: usize = 80;

/// One line of a long listing.
pub(super) struct Line {
    pub(super) name: Vec<u8>,
    pub(super) metadata: Metadata,
    /// What a symbolic link says.
    pub(super) target: Option<Vec<u8>>,
}

/// How long lines are written.
pub(super) struct Long {
    pub(super) owners: Owners,
    pub(super) style: Style,
    /// Lengths with a suffix.
    pub(super) human: bool,
    /// The number of the inode first.
    pub(super) inodes: bool,
    /// The time that it is, nanoseconds since the epoch.
    pub(super) now: i64,
    /// Where it is that.
    pub(super) zone: Zone,
}

impl Long {
    /// Writes the lines as `ls -l` does.
    pub(super) fn write(&self, out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
        let digits = device_digits(lines);
        let cells: Vec<[String; 6]> = lines.iter().map(|line| self.cells(&line.metadata, digits)).collect();
        let width = |column: usize| cells.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 6] = std::array::from_fn(width);
        for (line, [ino, mode, nlink, user, group, size]) in lines.iter().zip(&cells) {
            if self.inodes {
                write!(out, "{ino:>0$} ", widths[0])?;
            }
            let (user, group) = (owner(user, widths[3]), owner(group, widths[4]));
            write!(out, "{mode} {nlink:>0$} {user} {group} ", widths[2])?;
            write!(out, "{size:>0$} {1} ", widths[5], stamp::short(line.metadata.mtime_ns(), self.now, &self.zone))?;
            self.style.write(out, &line.name)?;
            if let Some(target) = &line.target {
                out.write_all(b" -> ")?;
                self.style.write(out, target)?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Inode, mode, names, user, group, length. The numbers of a device take so many digits.
    fn cells(&self, metadata: &Metadata, (major_digits, minor_digits): (usize, usize)) -> [String; 6] {
        let size = if is_device(metadata.file_type()) {
            let (major, minor) = device_numbers(metadata.rdev());
            format!("{major:>major_digits$}, {minor:>minor_digits$}")
        } else if self.human {
            human(metadata.len())
        } else {
            metadata.len().to_string()
        };
        [
            metadata.ino().to_string(),
            mode_in_letters(metadata.mode()),
            metadata.nlink().to_string(),
            self.owners.user(metadata.uid()),
            self.owners.group(metadata.gid()),
            size,
        ]
    }

    /// The storage of all, as the first line says it.
    pub(super) fn total(&self, lines: &[Line]) -> String {
        let blocks: u64 = lines.iter().map(|line| line.metadata.blocks()).sum();
        if self.human { human(blocks.saturating_mul(512)) } else { blocks.div_ceil(2).to_string() }
    }
}

/// An owner in its column: names to the left, numbers to the right.
fn owner(name: &str, width: usize) -> String {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { format!("{name:>width$}") } else { format!("{name:<width$}") }
}

/// Digits of the greatest numbers of devices.
fn device_digits(lines: &[Line]) -> (usize, usize) {
    let devices = lines.iter().filter(|line| is_device(line.metadata.file_type()));
    let numbers = devices.map(|line| device_numbers(line.metadata.rdev()));
    numbers.fold((0, 0), |(major_digits, minor_digits), (major, minor)| {
        (major_digits.max(major.to_string().len()), minor_digits.max(minor.to_string().len()))
    })
}

/// A number of bytes in at most four letters, rounded up: `1.5K`, as `ls -h`.
pub(super) fn human(bytes: u64) -> String {
    let mut unit = 1_u64;
    for letter in ["", "K", "M", "G", "T", "P", "E"] {
        let tenths = (u128::from(bytes) * 10).div_ceil(u128::from(unit));
        if letter.is_empty() && bytes < 1024 {
            return bytes.to_string();
        }
        if !letter.is_empty() && tenths < 100 {
            return format!("{}.{}{letter}", tenths / 10, tenths % 10);
        }
        let whole = bytes.div_ceil(unit);
        if !letter.is_empty() && (whole < 1024 || letter == "E") {
            return format!("{whole}{letter}");
        }
        unit = unit.saturating_mul(1024);
    }
    bytes.to_string()
}

/// Writes names side by side, in columns from above to below, as `ls` does on a terminal.
pub(super) fn side_by_side(out: &mut impl Write, style: Style, names: &[Vec<u8>], width: usize) -> io::Result<()> {
    let widths: Vec<usize> = names.iter().map(|name| style.width(name)).collect();
    let (rows, columns) = layout(&widths, width);
    for row in 0..rows {
        for (column, column_width) in columns.iter().enumerate() {
            let index = column * rows + row;
            let Some(name) = names.get(index) else { break };
            style.write(out, name)?;
            if index + rows < names.len() {
                write!(out, "{:1$}", "", column_width - widths[index])?;
            }
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The least number of rows with which the columns are no wider than `width`, and how wide each column is.
fn layout(widths: &[usize], width: usize) -> (usize, Vec<usize>) {
    for rows in 1..widths.len() {
        let columns: Vec<usize> =
            widths.chunks(rows).map(|column| column.iter().max().copied().unwrap_or(0) + GAP).collect();
        if columns.iter().sum::<usize>() <= width + GAP {
            return (rows, columns);
        }
    }
    (widths.len(), vec![width])
}

/// How many columns the terminal on standard output has.
pub(super) fn terminal_width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let asked = || Some(usize::from(rustix::termios::tcgetwinsize(io::stdout()).ok()?.ws_col));
    said.or_else(asked).filter(|&width| width > 0).unwrap_or(USUAL_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn human_lengths_are_those_of_ls() {
        let cases = [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (1025, "1.1K"),
            (10 * 1024, "10K"),
            (10 * 1024 - 1, "10K"),
            (1023 * 1024 + 1, "1.0M"),
            (1 << 20, "1.0M"),
            (1 << 60, "1.0E"),
            (u64::MAX, "16E"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(human(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn names_stand_in_as_few_rows_as_fit() {
        let names: Vec<Vec<u8>> = ["a", "bb", "ccc", "d", "e"].iter().map(|name| name.as_bytes().to_vec()).collect();
        let written = |width| {
            let mut out = Vec::new();
            side_by_side(&mut out, Style { is_terminal: true }, &names, width).expect("memory can be written");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(written(80), "a  bb  ccc  d  e\n");
        assert_eq!(written(16), "a  bb  ccc  d  e\n");
        assert_eq!(written(12), "a   ccc  e\nbb  d\n");
        assert_eq!(written(1), "a\nbb\nccc\nd\ne\n");
    }
}
