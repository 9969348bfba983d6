//! Constant properties of a file system, and their parts.

/// The properties of a file system that the VFS needs before its first call.
///
/// ```
/// use lightfoot::fs::{FsTraits, NameStore, OwnNames, Valid};
///
/// // A file system over the network: other machines change it, so answers are valid for a second.
/// let names = OwnNames { valid: Valid::For(1_000_000_000), remote: true, ..OwnNames::default() };
/// let names = NameStore::FileSystem(names);
/// let traits = FsTraits { type_name: "mynetfs".into(), names, ..FsTraits::default() };
/// # assert_eq!(traits.names, names);
/// ```
pub use vfs::FsTraits;

/// Where names and attributes live: in the cache alone, or in the file system.
///
/// ```
/// use lightfoot::fs::{FsTraits, NameStore, OwnNames};
///
/// assert_eq!(FsTraits::default().names, NameStore::FileSystem(OwnNames::default()));
/// ```
pub use vfs::NameStore;

/// Properties of a file system that leaves its names to the cache, as a file system in memory can.
///
/// ```
/// use lightfoot::fs::{CachedNames, FileSystem, NameStore};
/// use lightfoot::RamFs;
///
/// let NameStore::Cache(names) = RamFs::new().traits().names else { panic!("a RAM file system stores no names") };
/// let CachedNames { never_waits, changes_in_parallel, .. } = names;
/// assert!(never_waits && changes_in_parallel);
/// ```
pub use vfs::CachedNames;

/// Properties of a file system that keeps its own names.
///
/// ```
/// use lightfoot::fs::{OwnNames, Valid};
///
/// // A directory of this machine that other programs change, and whose changes nobody reports.
/// let names = OwnNames { valid: Valid::For(0), ..OwnNames::default() };
/// # assert!(!names.remote && !names.keeps_listings);
/// ```
pub use vfs::OwnNames;

/// The keeper of links, lengths and times: the VFS, or the file system.
///
/// ```
/// use lightfoot::fs::{Attributes, OwnNames};
///
/// // A server counts links and sets times itself, and its replies to changes have the attributes.
/// let attributes = Attributes::FileSystem { with_changes: true };
/// let names = OwnNames { attributes, ..OwnNames::default() };
/// # assert_ne!(names, OwnNames::default());
/// ```
pub use vfs::Attributes;

/// The keeper of modes and ACLs: the VFS, or the file system.
///
/// ```
/// use lightfoot::fs::{Modes, OwnNames};
///
/// // A server clears set-id bits and applies default ACLs itself, and the VFS obeys its ACLs.
/// let names = OwnNames { modes: Modes::FileSystem { applies_acls: true }, ..OwnNames::default() };
/// # assert_ne!(names, OwnNames::default());
/// ```
pub use vfs::Modes;

/// Whether the VFS calls a file system when files are opened and closed.
///
/// ```
/// use lightfoot::fs::{FsTraits, Opens};
///
/// // `open`, `release`, and `flush` at each `close(2)`.
/// let traits = FsTraits { opens: Opens::Yes { flush: true }, ..FsTraits::default() };
/// # assert_ne!(traits.opens, Opens::No);
/// ```
pub use vfs::Opens;

/// How long an answer of a file system is valid.
///
/// ```
/// use lightfoot::fs::Valid;
/// use std::time::Duration;
///
/// let for_a_minute = Valid::For(Duration::from_secs(60).as_nanos() as u64);
/// assert_ne!(for_a_minute, Valid::UntilInvalidated); // The default: you report changes by an `Invalidator`.
/// ```
pub use vfs::Valid;

/// How names are compared, if not byte by byte.
///
/// ```
/// use lightfoot::fs::NameRules;
/// use std::hash::{DefaultHasher, Hash, Hasher};
///
/// /// Names that differ only in the case of ASCII letters are the same name.
/// struct IgnoreCase;
///
/// impl NameRules for IgnoreCase {
///     fn hash(&self, key: u64, name: &[u8]) -> u64 {
///         let mut hasher = DefaultHasher::new();
///         (key, name.to_ascii_lowercase()).hash(&mut hasher);
///         hasher.finish()
///     }
///
///     fn equal(&self, a: &[u8], b: &[u8]) -> bool {
///         a.eq_ignore_ascii_case(b)
///     }
/// }
/// # use lightfoot::fs::FsTraits;
///
/// let traits = FsTraits { name_rules: Some(Box::new(IgnoreCase)), ..FsTraits::default() };
/// # assert_eq!(IgnoreCase.hash(1, b"A"), IgnoreCase.hash(1, b"a"));
/// ```
pub use vfs::NameRules;
