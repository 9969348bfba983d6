//! Options of mounts, and reports of a mount: types of `lightfoot-fuse`, each with an example.

/// The options of a mount, as in `mount.fuse(8)`.
///
/// ```
/// use lightfoot::fuse::MountOptions;
///
/// let options = MountOptions { read_only: true, name: "assets".into(), ..MountOptions::default() };
/// assert!(options.nosuid && options.nodev); // Unless you ask otherwise.
/// ```
pub use ::fuse::MountOptions;

/// How the tree is served; a part of [`MountOptions`].
///
/// ```
/// use lightfoot::fuse::{MountOptions, SessionOptions};
///
/// let session = SessionOptions { writeback: true, ..SessionOptions::default() }; // The kernel collects small writes.
/// let options = MountOptions { session, ..MountOptions::default() };
/// # assert!(options.session.acl);
/// ```
pub use ::fuse::SessionOptions;

/// How long the kernel may cache answers.
///
/// ```
/// use lightfoot::fuse::{MountOptions, Ttls};
/// use std::time::Duration;
///
/// let mut options = MountOptions::default();
/// options.session.ttls = Ttls { negative: Duration::ZERO, ..Ttls::LONG };
/// # assert!(options.session.ttls.entry > Duration::from_secs(3600));
/// ```
pub use ::fuse::Ttls;

/// Which side checks permissions, the kernel or Lightfoot.
///
/// ```
/// use lightfoot::fuse::{Checks, MountOptions};
///
/// let mut options = MountOptions::default();
/// options.session.checks = Checks::Own; // Saves requests. Only for mounts that other users cannot use.
/// assert!(!options.allow_other);
/// ```
pub use ::fuse::Checks;

/// One owner or one mode for all files, whatever the tree has.
///
/// ```
/// use lightfoot::fuse::{MountOptions, Shown};
///
/// let mut options = MountOptions::default();
/// options.session.shown = Shown { uid: Some(1000), umask: Some(0o022), ..Shown::default() };
/// # assert_eq!(options.session.shown.gid, None);
/// ```
pub use ::fuse::Shown;

/// Whether requests come through io_uring.
///
/// ```
/// use lightfoot::fuse::{MountOptions, Uring};
///
/// let options = MountOptions { uring: Uring::Required, ..MountOptions::default() }; // Else mounting fails.
/// # assert_eq!(MountOptions::default().uring, Uring::IfOffered);
/// # drop(options);
/// ```
pub use ::fuse::Uring;

/// The transport of a mount's requests: [`Mount::transport_kind`](super::Mount::transport_kind).
///
/// ```
/// use lightfoot::fuse::{TransportKind, NoRing};
///
/// /// A hint for the log.
/// fn hint(transport_kind: &TransportKind) -> Option<&str> {
///     match transport_kind {
///         TransportKind::Device { reason: NoRing::NotOffered, .. } => Some("Linux 6.14 with io_uring is faster"),
///         _ => None,
///     }
/// }
///
/// assert_eq!(hint(&TransportKind::Device { threads: 2, reason: NoRing::NotWanted }), None);
/// ```
pub use ::fuse::TransportKind;

/// Why requests do not come through io_uring.
///
/// ```
/// use lightfoot::fuse::NoRing;
///
/// assert_eq!(NoRing::NotOffered.to_string(), "the kernel does not offer it");
/// ```
pub use ::fuse::NoRing;

/// Why a mount failed, with the cure in its text.
///
/// ```
/// use lightfoot::Vfs;
/// use lightfoot::fuse::{MountError, MountOptions};
///
/// match Vfs::ram().mount("/does/not/exist", &MountOptions::default()) {
///     Ok(_) => unreachable!(),
///     Err(MountError::NoDevice) => println!("install FUSE"),
///     Err(other) => println!("{other}"),
/// }
/// ```
pub use ::fuse::MountError;
