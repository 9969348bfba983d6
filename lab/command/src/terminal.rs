//! The terminal's width, and tables that fit into it.

use comfy_table::{ContentArrangement, Table};
use std::io::{self, IsTerminal as _};

/// Lets `table` break its cells where the terminal is narrower than it. Elsewhere, as in a file, it stays as wide as it is.
pub(crate) fn fit(table: &mut Table) {
    if let Some(width) = width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
}

/// The columns of the terminal that standard output goes to.
pub(crate) fn width() -> Option<u16> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out)).and_then(Result::ok)?;
    (size.ws_col > 0).then_some(size.ws_col)
}
