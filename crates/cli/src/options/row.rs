//! A row of the table of options.

use super::Settings;
use std::fmt;

/// One option.
pub(super) struct Row {
    /// Its name; for an option with a value, the part before `=`.
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// The value without it.
    pub(super) default: &'static str,
    /// Its effect, in one sentence or two.
    pub(super) help: &'static str,
}

/// Options of the same objects.
pub(super) struct Section {
    pub(super) heading: &'static str,
    /// The objects that each is an option of.
    pub(super) valid: &'static [Owner],
    pub(super) rows: &'static [Row],
}

/// How an option is written, and what it sets.
pub(super) enum Form {
    /// See [`switch`].
    Switch { off: &'static str, set: fn(&mut Settings, bool) },
    /// See [`value`]; with an example of the value.
    Value { shape: &'static str, example: &'static str, set: fn(&mut Settings, &str) -> Option<()> },
}

/// The object of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The mount: valid with `-o`.
    Mount,
    /// A tree in memory.
    Ram,
    Directory,
    /// An object store.
    Objects,
}

/// Returns an option that is a name alone, and the name that takes it back, which may
/// be empty.
pub(super) const fn switch(name: &'static str, off: &'static str, set: fn(&mut Settings, bool)) -> Row {
    Row { name, form: Form::Switch { off, set }, default: "", help: "" }
}

/// Returns an option that is written `name=VALUE`. `set` returns `None` for a value
/// that it cannot use.
pub(super) const fn value(
    name: &'static str,
    shape: &'static str,
    example: &'static str,
    set: fn(&mut Settings, &str) -> Option<()>,
) -> Row {
    Row { name, form: Form::Value { shape, example, set }, default: "", help: "" }
}

impl Row {
    pub(super) const fn by_default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    pub(super) const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    /// Returns its name, and the one that takes it back.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let off = if let Form::Switch { off, .. } = self.form { off } else { "" };
        [self.name, off].into_iter().filter(|name| !name.is_empty())
    }

    /// Returns how the option is written.
    pub(super) fn usage(&self, separator: &str) -> String {
        match self.form {
            Form::Switch { off: "", .. } => self.name.into(),
            Form::Switch { off, .. } => format!("{}{separator}{off}", self.name),
            Form::Value { shape, .. } => format!("{}={shape}", self.name),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mount => "the mount, after -o",
            Self::Ram => "ram:",
            Self::Directory => "a directory",
            Self::Objects => "s3:",
        })
    }
}
