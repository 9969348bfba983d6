//! Ids of files that stay valid across restarts.

use crate::base::errno::Errno;

/// An id that identifies a file of one file system for as long as the file exists, also after the
/// file system ended and began again: [`FileSystem::id`](crate::FileSystem::id). At most
/// [`FileId::MAX`] bytes, whose meaning is private to the file system. Another file never gets the
/// id of a file that was removed. A file may have several ids, for instance with hints where it
/// was.
///
/// ```
/// use lightfoot_vfs::FileId;
///
/// let id = FileId::new(&7_u64.to_le_bytes())?;
/// assert_eq!(id.as_bytes(), [7, 0, 0, 0, 0, 0, 0, 0]);
/// assert!(FileId::new(&[0; 65]).is_err());
/// # Ok::<(), lightfoot_vfs::Errno>(())
/// ```
#[derive(Clone, Copy)]
pub struct FileId {
    len: u8,
    bytes: [u8; Self::MAX],
}

impl FileId {
    /// The most bytes of an id.
    pub const MAX: usize = 64;

    /// Returns an id of these bytes.
    ///
    /// # Errors
    /// `EOVERFLOW` for more than [`FileId::MAX`] bytes, as `name_to_handle_at(2)`.
    pub fn new(bytes: &[u8]) -> Result<Self, Errno> {
        let mut id = Self { len: 0, bytes: [0; Self::MAX] };
        id.bytes.get_mut(..bytes.len()).ok_or(Errno::EOVERFLOW)?.copy_from_slice(bytes);
        id.len = bytes.len() as u8;
        Ok(id)
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for FileId {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for FileId {}

impl core::fmt::Debug for FileId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "FileId(")?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, ")")
    }
}
