//! Listings while names come, go and change.

use crate::namespace::rng::Rng;
use crate::races::names::{make, name, tree};
use crate::races::race::Race;
use crate::tree_kind::TreeKind;
use std::collections::BTreeMap;

/// Names that stay: more than one batch of a listing.
const STAYING: u64 = 150;

/// The name that comes and goes under `number`; its length follows from the number, so that a mixture of two is none.
fn coming(number: u64) -> String {
    format!("c{}", name(number, [3, 15, 31, 40][(number % 4) as usize]))
}

/// Makes, removes or renames a name that does not stay.
fn churn(context: &lightfoot::Context, numbers: std::ops::Range<u64>, rng: &mut Rng) {
    let mut pick =
        || format!("/d/{}", coming(numbers.start + rng.below((numbers.end - numbers.start) as usize) as u64));
    let (path, other) = (pick(), pick());
    // No two threads share a number, so a thread can predict which of its files exist.
    if rng.below(2) == 0 && context.exists(&path) {
        return context.rename(path, other).unwrap();
    }
    if context.mknod(&path, 0o644, 0).is_err() {
        context.remove_file(&path).unwrap();
    }
}

pub(crate) fn a_listing_gives_what_stays_exactly_once_and_no_name_that_never_was(kind: TreeKind) {
    let (_vfs, context) = tree(kind, &["/d"]);
    let staying: BTreeMap<String, u64> = (0..STAYING)
        .map(|number| name(number, 5))
        .map(|name| (name.clone(), make(&context, &format!("/d/{name}"))))
        .collect();
    let (context, staying) = (&context, &staying);
    let reader = || {
        move |_: &mut Rng| {
            let mut listed = BTreeMap::new();
            for entry in context.read_dir("/d").unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                assert!(listed.insert(name.clone(), entry.ino()).is_none(), "{name} was given twice");
            }
            for (name, ino) in staying {
                assert_eq!(listed.remove(name), Some(*ino), "{name}");
            }
            for name in listed.keys() {
                let digits = name.trim_start_matches('c').trim_end_matches('n');
                assert_eq!(*name, coming(digits.parse().unwrap()), "a name that never was");
            }
        }
    };
    Race::default()
        .writer(25_000, move |_, rng| churn(context, 0..60, rng))
        .writer(25_000, move |_, rng| churn(context, 100..160, rng))
        .reader(reader())
        .reader(reader())
        .run();
}
