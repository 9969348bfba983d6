//! A file system that is the truth, and the VFS in front of it: stale attributes, opens that it gets, listings by cookie,
//! observers, held places.

mod age;
mod estale;
mod held;
mod listing;
mod observers;
mod opens;
mod reported;
mod returned;
mod set_ids;
mod stale;
mod store;
