//! A file system tells its caches that something changed behind them.

/// The means of telling a tree's caches that something changed behind them.
#[derive(Clone, Debug)]
pub struct Invalidator {}
