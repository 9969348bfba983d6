//! Settings of a workload: numbers with names, units, bounds and defaults.
//!
//! Not a configuration format: values arrive one by one, from a command line or a job. There is nothing to lock.

use core::fmt;
use std::collections::BTreeMap;

/// One number that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The parameter's name on the command line; the name ends with the unit: see
    /// [`unit`](Self::unit).
    pub name: &'static str,
    /// Its default value.
    pub default: u64,
    /// The least and the greatest value that make sense.
    pub bounds: (u64, u64),
    /// Its meaning, and the source of the default.
    pub what: &'static str,
}

impl Parameter {
    /// Returns the parameter's unit; an empty string for a plain count.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        let last = self.name.rsplit('_').next().unwrap_or_default();
        ["ns", "permille", "hundredths"].into_iter().find(|&unit| unit == last).unwrap_or_default()
    }

    /// Returns a length of time in nanoseconds, at most ten seconds.
    pub(super) const fn time(name: &'static str, default: u64, what: &'static str) -> Self {
        Self { name, default, bounds: (0, 10_000_000_000), what }
    }

    /// Returns a count between `least` and `most`.
    pub(super) const fn count(name: &'static str, default: u64, (least, most): (u64, u64), what: &'static str) -> Self {
        Self { name, default, bounds: (least, most), what }
    }
}

/// The requested values; the rest are defaults.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    known: &'static [Parameter],
    asked: BTreeMap<&'static str, u64>,
}

/// A type of the value of a parameter.
pub(super) trait Setting {
    fn of(value: u64) -> Self;
}

impl Setting for u64 {
    fn of(value: u64) -> Self {
        value
    }
}

impl Setting for usize {
    fn of(value: u64) -> Self {
        usize::try_from(value).unwrap_or(usize::MAX)
    }
}

impl Setting for bool {
    fn of(value: u64) -> Self {
        value == 1
    }
}

/// Defines a load by its parameters, `NAME: type = kind(default, ..)`, and by the other differences
/// of its entries in the catalogue. Each parameter is a field of the load.
macro_rules! load {
    ($load:ident $(($($other:ident: $of:ty),*))? { $($name:ident: $type:ty = $kind:ident($($value:expr),* $(,)?);)* }) => {
        const PARAMETERS: &[Parameter] = &[$(Parameter::$kind(stringify!($name), $($value),*)),*];

        #[derive(Clone, Copy)]
        struct $load {
            $($name: $type,)*
            $($($other: $of,)*)?
        }

        impl $load {
            fn new(parameters: &Parameters $($(, $other: $of)*)?) -> Self {
                Self { $($name: parameters.get(stringify!($name)),)* $($($other,)*)? }
            }
        }
    };
}
pub(super) use load;

impl Parameters {
    /// Takes the requested values; the last value of a name counts.
    ///
    /// # Errors
    /// The name is not among `known`, or the value is out of bounds.
    pub(super) fn new<'a>(
        known: &'static [Parameter],
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<Self, Refused> {
        let mut asked = BTreeMap::new();
        for (name, value) in values {
            let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
                return Err(Refused::Unknown { name: name.into(), known });
            };
            let (least, most) = parameter.bounds;
            if !(least..=most).contains(&value) {
                return Err(Refused::OutOfBounds { parameter: *parameter, value });
            }
            asked.insert(parameter.name, value);
        }
        Ok(Self { known, asked })
    }

    /// Returns the value of the parameter `name`; 0 if the load does not have it.
    pub(super) fn get<T: Setting>(&self, name: &str) -> T {
        let default = || self.known.iter().find(|parameter| parameter.name == name).map_or(0, |known| known.default);
        T::of(self.asked.get(name).copied().unwrap_or_else(default))
    }
}

/// Why a value cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No parameter of that name.
    Unknown {
        /// The requested name.
        name: String,
        /// The parameters that the load has.
        known: &'static [Parameter],
    },
    /// A value that makes no sense.
    OutOfBounds {
        /// The parameter.
        parameter: Parameter,
        /// The requested value.
        value: u64,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } => {
                write!(f, "there is no parameter {name:?}; there are ")?;
                for (index, parameter) in known.iter().enumerate() {
                    write!(f, "{}{}", if index == 0 { "" } else { ", " }, parameter.name)?;
                }
                Ok(())
            }
            Self::OutOfBounds { parameter: Parameter { name, bounds: (least, most), .. }, value } => {
                write!(f, "{name} cannot be {value}; it lies between {least} and {most}")
            }
        }
    }
}

impl core::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Parameter] =
        &[Parameter::time("think_ns", 7, "time"), Parameter::count("files", 3, (1, 9), "files")];

    #[track_caller]
    fn check(values: &[(&str, u64)], expected: Result<(u64, u64), &str>) {
        let parameters = Parameters::new(KNOWN, values.iter().copied());
        let got = parameters.as_ref().map(|p| (p.get("think_ns"), p.get("files")));
        assert_eq!(got.map_err(|refused| refused.to_string()), expected.map_err(String::from), "{values:?}");
    }

    #[test]
    fn what_is_not_asked_for_is_the_default_and_the_last_value_counts() {
        check(&[], Ok((7, 3)));
        check(&[("files", 4)], Ok((7, 4)));
        check(&[("think_ns", 1), ("think_ns", 2)], Ok((2, 3)));
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_a_sentence_that_says_what_would() {
        check(&[("thnk", 1)], Err("there is no parameter \"thnk\"; there are think_ns, files"));
        check(&[("files", 0)], Err("files cannot be 0; it lies between 1 and 9"));
        check(&[("files", 10)], Err("files cannot be 10; it lies between 1 and 9"));
    }
}
