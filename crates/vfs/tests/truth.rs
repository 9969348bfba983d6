//! A file system that is the truth, and the VFS in front of it: stale attributes, opens that it gets, listings by cookie,
//! observers, held places.

#[path = "truth/age.rs"]
mod age;
#[path = "truth/estale.rs"]
mod estale;
#[path = "truth/held.rs"]
mod held;
#[path = "truth/listing.rs"]
mod listing;
#[path = "truth/observers.rs"]
mod observers;
#[path = "truth/opens.rs"]
mod opens;
#[path = "truth/reported.rs"]
mod reported;
#[path = "truth/returned.rs"]
mod returned;
#[path = "truth/set_ids.rs"]
mod set_ids;
#[path = "truth/stale.rs"]
mod stale;
#[path = "truth/store.rs"]
mod store;
