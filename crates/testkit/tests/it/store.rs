//! The store, run through the cases for file systems.

use lightfoot_testkit::{Features, Quota, Store, StoreOptions, StoreQuota, Subject};
use vfs::Valid;

/// What a store has: all but holes, reflinks and `statfs(2)`.
const FEATURES: Features = Features { holes: false, reflinks: false, statfs: false, ..Features::all() };

/// A store that the cases can change from outside, too.
fn subject(options: StoreOptions) -> Subject {
    let store = Store::new(options);
    let again = store.clone();
    Subject::with_outside(store.clone(), store).restarting(move || again.clone())
}

lightfoot_testkit::suite!(|| subject(StoreOptions::default()), FEATURES);

/// The same where changes reserve names, with answers that are good forever, and for no time.
mod slow {
    use super::*;

    lightfoot_testkit::suite!(|| subject(StoreOptions { remote: true, ..StoreOptions::default() }), FEATURES);
}

/// The same where changes return attributes.
mod returning {
    use super::*;

    const OPTIONS: StoreOptions = StoreOptions {
        names_in_cache: false,
        keeps_listings: false,
        reports_attributes: true,
        returns_attributes: true,
        lists_attributes: true,
        answers_ahead: false,
        remote: false,
        valid: Valid::UntilInvalidated,
        quota: None,
    };

    lightfoot_testkit::suite!(|| subject(OPTIONS), FEATURES);

    mod slow {
        use super::*;

        lightfoot_testkit::suite!(|| subject(StoreOptions { remote: true, ..OPTIONS }), FEATURES);
    }
}

mod slow_at_once_stale {
    use super::*;

    lightfoot_testkit::suite!(
        || subject(StoreOptions { remote: true, valid: Valid::For(0), ..StoreOptions::default() }),
        FEATURES
    );
}

/// The same where users have quotas.
mod limited {
    use super::*;

    const BYTES: u64 = 256 << 10;
    const FILES: Option<u64> = Some(20);
    const QUOTA: Quota = Quota { user: 1001, other: 1002, bytes: BYTES, files: FILES, follows_owner: true };
    const LIMITED: Features = Features { quota: Some(QUOTA), ..FEATURES };

    fn limited(options: StoreOptions) -> Subject {
        subject(StoreOptions { quota: Some(StoreQuota { bytes: BYTES, files: FILES }), ..options })
    }

    lightfoot_testkit::suite!(|| limited(StoreOptions::default()), LIMITED);

    #[test]
    fn with_any_options_it_passes_all_cases() {
        let returns = StoreOptions { reports_attributes: true, returns_attributes: true, ..StoreOptions::default() };
        let slow = StoreOptions { remote: true, ..returns };
        let stale = StoreOptions { remote: true, valid: Valid::For(0), ..StoreOptions::default() };
        for options in [returns, slow, stale] {
            let report = lightfoot_testkit::run(|| limited(options), LIMITED);
            assert!(report.is_ok(), "{options:?}: {report}");
        }
    }
}

#[test]
fn with_any_options_it_passes_all_cases() {
    for (names_in_cache, keeps_listings) in [(false, false), (false, true), (true, false)] {
        for valid in [Valid::UntilInvalidated, Valid::For(0), Valid::For(1000)] {
            let options = StoreOptions { names_in_cache, keeps_listings, valid, ..StoreOptions::default() };
            let options = StoreOptions { remote: valid == Valid::For(1000), ..options };
            let make = || if names_in_cache { Store::new(options).into() } else { subject(options) };
            let report = lightfoot_testkit::run(make, FEATURES);
            assert!(report.is_ok(), "{options:?}: {report}");
        }
    }
}
