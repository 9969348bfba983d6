//! Attributes of many paths at once.

use super::View;
use crate::error::error;
use crate::metadata::Metadata;
use crate::path::AsPath;
use std::io;
use vfs::Errno;

impl View {
    /// Attributes of each path, in the order of `paths`; symbolic links are followed, as in [`View::metadata`].
    ///
    /// The walks take turns, so that one waits for memory while another computes. That is faster than one call after the
    /// other if the paths are not in the processor's caches, or if neighbours in `paths` lie in one directory. Each
    /// result is right at some moment during the call; the results are not one snapshot.
    ///
    /// ```
    /// let ctx = lightfoot::Vfs::ram().context();
    /// ctx.write("/a", "one")?;
    /// ctx.write("/b", "three")?;
    /// let lengths = ctx.metadata_many(&["/a", "/b", "/c"]).into_iter().map(|found| found.map(|meta| meta.len()).ok());
    /// assert_eq!(lengths.collect::<Vec<_>>(), [Some(3), Some(5), None]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Each result has the error of its walk.
    #[must_use]
    pub fn metadata_many(&self, paths: &[impl AsPath]) -> Vec<io::Result<Metadata>> {
        let bytes: Vec<&[u8]> = paths.iter().map(AsPath::as_path_bytes).collect();
        // The core reports each path once, in no order.
        let mut found = vec![Err(Errno::ENOENT); bytes.len()];
        self.inner.attr_many(self.base(), &bytes, true, |at, result| {
            found[at] = result.map(|(attr, dev)| Metadata::new(attr, dev));
        });
        found.into_iter().map(|result| result.map_err(error)).collect()
    }
}
