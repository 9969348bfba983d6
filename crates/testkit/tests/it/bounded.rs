//! The test cases over a store whose every call runs on another thread.

use core::time::Duration;
use lightfoot_testkit::{Features, Store, StoreOptions, Subject, suite};
use vfs::Bounded;

/// What a store has: all but holes, reflinks and `statfs(2)`.
const FEATURES: Features = Features { holes: false, reflinks: false, statfs: false, ..Features::all() };

/// No call takes so long.
const LONG: Duration = Duration::from_secs(3600);

fn bounded() -> Subject {
    let options = StoreOptions {
        reports_attributes: true,
        returns_attributes: true,
        answers_ahead: true,
        ..StoreOptions::default()
    };
    let store = Store::new(options);
    Subject::from(Bounded::of(Box::new(store), LONG))
}

suite!(bounded, FEATURES);
