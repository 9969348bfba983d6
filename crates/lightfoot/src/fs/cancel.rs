//! Ends of calls: deadlines and cancellation.

/// Wraps a file system that may hang, and ends each call at its deadline.
///
/// ```
/// use lightfoot::fs::{Bounded, Layer, Open, Request};
/// use lightfoot::{Errno, RamFs, Vfs};
/// use std::io::ErrorKind;
/// use std::time::Duration;
///
/// /// Its disk is dead: no read returns.
/// struct Dead(RamFs);
///
/// impl Layer for Dead {
///     type Inner = RamFs;
///
///     fn inner(&self) -> &RamFs {
///         &self.0
///     }
///
///     fn read(&self, _: &Request, _: &Open<'_>, _: u64, _: &mut [u8]) -> Result<usize, Errno> {
///         loop {
///             std::thread::park();
///         }
///     }
/// }
///
/// let dead = Dead(RamFs::new());
/// let ctx = Vfs::new(Bounded::of(Box::new(dead), Duration::from_millis(100))).context();
/// ctx.write("/file", "hello")?;
/// assert_eq!(ctx.read("/file").unwrap_err().kind(), ErrorKind::TimedOut);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Bounded;

/// Lets other threads cancel the calls of a thread on a tree. Cancelling ends only calls on file
/// systems that can stop, such as a file system inside of [`Bounded`].
///
/// ```
/// use lightfoot::fs::{Bounded, Cancel};
/// use lightfoot::{RamFs, Vfs};
/// use std::time::Duration;
///
/// let bounded = Bounded::of(Box::new(RamFs::new()), Duration::from_secs(30));
/// let ctx = Vfs::new(bounded).context();
/// ctx.write("/file", "hello")?;
/// let cancel = Cancel::new();
/// assert_eq!(cancel.scope(|| ctx.read("/file"))?, b"hello");
/// cancel.cancel(); // By any thread, also while a call runs.
/// assert!(cancel.scope(|| ctx.read("/file")).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Cancel;

/// For a file system that can stop: calls a function when the caller of the file system is
/// cancelled.
///
/// ```
/// use lightfoot::fs::{Cancel, CancelWatch};
/// use std::sync::mpsc::channel;
///
/// let (cancel, (sender, receiver)) = (Cancel::new(), channel());
/// let watch: CancelWatch<'_> = cancel.watch(move || sender.send("cancelled").unwrap());
/// cancel.cancel();
/// assert_eq!(receiver.recv(), Ok("cancelled"));
/// # drop(watch);
/// ```
pub use vfs::CancelWatch;
