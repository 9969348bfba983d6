//! The table of options as text: for `--help` and the manual page, and as a table of Markdown for the document.

use super::row::Row;
use super::table::SECTIONS;
use crate::paragraph;

/// Spaces before the effect of an option.
const INDENT: usize = 10;

/// Notes that apply to several options.
const NOTES: &str = "\
BYTES and N can have a suffix k, m, g or t of 1024, sizes of ram: also % of
memory. TIME has us, ms, s, m or h, or is in seconds. Options for mount(8) and
systemd are ignored, such as defaults, noauto, nofail, _netdev and x-...
";

/// Returns the options under headings.
pub(crate) fn help() -> String {
    let mut text = String::new();
    for section in &SECTIONS {
        text += &format!("{}:\n", section.heading);
        section.rows.iter().for_each(|row| text += &entry(row));
        text.push('\n');
    }
    text + NOTES
}

fn entry(row: &Row) -> String {
    let default = if row.default.is_empty() { String::new() } else { format!(" [default: {}]", row.default) };
    let effect = paragraph::lines(format!("{}{default}", row.help).split(' ').map(String::from), INDENT);
    let effect: String = effect.iter().map(|line| format!("{:INDENT$}{line}\n", "")).collect();
    format!("  {}\n{effect}", row.usage(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::row::Owner;
    use crate::options::table::rows;
    use crate::paragraph::COLUMNS;
    use std::env;
    use std::fs;

    const BEGIN: &str = "<!-- options: begin (LIGHTFOOT_WRITE_DOCS=1 cargo test -p lightfoot-cli rewrites this) -->\n";
    const END: &str = "<!-- options: end -->\n";

    /// Returns the table of `docs/mounting.md`.
    fn markdown() -> String {
        let mut text = "| option | valid for | default | what it does |\n|---|---|---|---|\n".to_owned();
        for (valid, row) in rows() {
            let valid = match valid {
                [Owner::Mount, Owner::Ram, Owner::Directory, Owner::Objects] => "all".into(),
                valid => valid.iter().map(|owner| short(*owner)).collect::<Vec<_>>().join(", "),
            };
            text += &format!("| `{}` | {valid} | {} | {} |\n", row.usage("`, `"), row.default, row.help);
        }
        text
    }

    fn short(owner: Owner) -> &'static str {
        match owner {
            Owner::Mount => "mount",
            Owner::Ram => "`ram:`",
            Owner::Directory => "directory",
            Owner::Objects => "`s3:`",
        }
    }

    #[test]
    fn help_fits_the_terminal_and_has_each_option() {
        let help = help();
        assert!(help.lines().all(|line| line.chars().count() <= COLUMNS), "{help}");
        for (_, row) in rows() {
            assert!(help.contains(&format!("\n  {}\n", row.usage(", "))), "{}", row.name);
        }
    }

    #[test]
    fn the_document_has_the_table_of_options() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mounting.md");
        let document = fs::read_to_string(path).expect("the document");
        let (before, rest) = document.split_once(BEGIN).expect("the beginning of the table");
        let (table, after) = rest.split_once(END).expect("the end of the table");
        if env::var_os("LIGHTFOOT_WRITE_DOCS").is_some() {
            fs::write(path, [before, BEGIN, &markdown(), END, after].concat()).expect("the document can be written");
        } else {
            assert!(
                table == markdown(),
                "the table of options has changed: LIGHTFOOT_WRITE_DOCS=1 cargo test -p lightfoot-cli"
            );
        }
    }
}
