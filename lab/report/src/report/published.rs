//! The published figures: `published.toml`, read once, looked up by table, row and column.
//!
//! A figure that is requested and is missing is a mistake of the experiment that requests it, and a test requests all of
//! them; so these functions panic.

use toml::{Table, Value};

/// All published tables.
#[derive(Debug)]
pub struct Published(Table);

impl Default for Published {
    fn default() -> Self {
        Self::new()
    }
}

impl Published {
    /// Returns the tables that this crate carries.
    ///
    /// # Panics
    /// Never: the file is part of the program, and a test reads it.
    #[must_use]
    pub fn new() -> Self {
        Self(include_str!("../../published.toml").parse().expect("published.toml is TOML"))
    }

    /// Returns the source of table `name`: the authors, the date and the machine.
    ///
    /// # Panics
    /// If the table does not exist.
    #[must_use]
    pub fn source(&self, name: &str) -> String {
        let table = self.table(name);
        let machine = table.get("machine").and_then(Value::as_str);
        let source = table["source"].as_str().expect("a source is text");
        machine.map_or(source.to_owned(), |machine| format!("{source}; {machine}"))
    }

    /// Returns the figure in `column` of the row of table `name` in which each key of `keys` has
    /// its value.
    ///
    /// # Panics
    /// If the figure does not exist.
    #[must_use]
    pub fn figure(&self, name: &str, keys: &[(&str, Key<'_>)], column: &str) -> f64 {
        let rows = self.table(name)["rows"].as_array().expect("rows are a list");
        let row = rows.iter().find(|row| keys.iter().all(|(key, value)| value.is(&row[key])));
        let row = row.unwrap_or_else(|| panic!("published.toml has no row {keys:?} in [{name}]"));
        number(row.get(column).unwrap_or_else(|| panic!("published.toml has no {column} in [{name}]")))
    }

    /// Returns the figure at `path` of table `name`, outside its rows.
    ///
    /// # Panics
    /// If the figure does not exist.
    #[must_use]
    pub fn single(&self, name: &str, path: &[&str]) -> f64 {
        let table = Value::Table(self.table(name).clone());
        number(path.iter().fold(&table, |value, key| &value[*key]))
    }

    fn table(&self, name: &str) -> &Table {
        let table = self.0.get(name).unwrap_or_else(|| panic!("published.toml has no table [{name}]"));
        table.as_table().expect("a table")
    }
}

/// The key of a row.
#[derive(Clone, Copy, Debug)]
pub enum Key<'a> {
    /// A name.
    Text(&'a str),
    /// A number.
    Number(i64),
}

impl Key<'_> {
    fn is(self, value: &Value) -> bool {
        match self {
            Key::Text(text) => value.as_str() == Some(text),
            Key::Number(number) => value.as_integer() == Some(number),
        }
    }
}

fn number(value: &Value) -> f64 {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64)).expect("a figure is a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_row_and_column() {
        let published = Published::new();
        let users = [("users", Key::Text("200-1000")), ("nodes", Key::Number(8))];
        assert_eq!(published.figure("aim7_short_2013", &users, "gain_percent"), 594.6);
        assert_eq!(published.single("aim7_short_2013", &["spinlock_percent", "before"]), 79.0);
        assert!(published.source("lockmeter_2002").contains("Pentium III"));
    }
}
