//! The budget of a listing of several pages, which travels in the token that names the next page.
//!
//! # What it is
//! The server returns a token with each page but the last, and the client sends the token with its next
//! request. The transport puts its counts of the listing before the server's token. So a listing
//! without an end costs no memory here, and each listing has its own budget.
//!
//! # Where it comes from
//! Tokens that repeat: R. P. Brent, "An improved Monte Carlo factorization algorithm" (1980), which
//! finds a cycle with one token in memory.

use core::hash::{BuildHasher, BuildHasherDefault};
use opendal::{Error, ErrorKind};
use std::hash::DefaultHasher;

/// The most names of a listing.
const MAX_NAMES: u64 = 4 << 20;

/// The most pages of a listing that have no names.
const MAX_EMPTY: u64 = 1000;

/// See the [module documentation](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cursor {
    names: u64,
    pages: u64,
    empty_pages: u64,
    /// The hash of a token before, and the number of its page, a power of two.
    saved: (u64, u64),
}

impl Cursor {
    /// Returns the cursor in front of a token, and the server's token.
    pub(crate) fn parse(token: &str) -> (Self, String) {
        let mut parts = token.splitn(6, '.');
        let mut number = || parts.next().and_then(|part| u64::from_str_radix(part, 16).ok()).unwrap_or(0);
        let (names, pages, empty_pages) = (number(), number(), number());
        let saved = (number(), number());
        (Self { names, pages, empty_pages, saved }, parts.next().unwrap_or_default().to_owned())
    }

    /// Notes a page with so many names, and the server's token for the next page. Returns the token
    /// with the cursor before it.
    ///
    /// # Errors
    /// If the listing seems to have no end.
    pub(crate) fn next(mut self, names: u64, token: &str) -> opendal::Result<String> {
        self.pages += 1;
        self.names += names;
        self.empty_pages += u64::from(names == 0);
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(token);
        let has_been_seen = self.saved.1 > 0 && hash == self.saved.0;
        if self.names > MAX_NAMES || self.empty_pages > MAX_EMPTY || has_been_seen {
            return Err(Error::new(ErrorKind::Unexpected, "the listing of the store does not end"));
        }
        if self.pages.is_power_of_two() {
            self.saved = (hash, self.pages);
        }
        let Self { names, pages, empty_pages, saved } = self;
        Ok(format!("{names:x}.{pages:x}.{empty_pages:x}.{:x}.{:x}.{token}", saved.0, saved.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages of a listing whose tokens come from `token`, until an error.
    fn pages(names: u64, token: impl Fn(u64) -> String) -> u64 {
        let mut cursor = Cursor::default();
        for page in 0..20_000 {
            let Ok(next) = cursor.next(names, &token(page)) else { return page };
            let (parsed, sent) = Cursor::parse(&next);
            assert_eq!(sent, token(page));
            cursor = parsed;
        }
        20_000
    }

    #[test]
    fn a_listing_ends_when_a_token_repeats_also_after_others() {
        for (before, cycle) in [(0, 1), (0, 2), (5, 3), (100, 50)] {
            let page = pages(1, |page| {
                let number = if page < before { page } else { before + (page - before) % cycle };
                format!("a.b/{number}=")
            });
            assert!(page <= 4 * (before + cycle), "{before} {cycle}: {page}");
        }
    }

    #[test]
    fn a_listing_has_a_budget_of_names_and_of_empty_pages() {
        let new = |page: u64| format!("token {page}");
        assert_eq!(pages(1000, new), MAX_NAMES / 1000);
        assert_eq!(pages(0, new), MAX_EMPTY);
        assert_eq!(pages(1, new), 20_000);
    }
}
