//! What a program can have checked before it opens a file: the bits of `faccessat(2)`.

/// Checks that [`View::access`](crate::View::access) makes: search or execute.
pub const X_OK: u32 = vfs::MAY_EXEC;
/// Checks that [`View::access`](crate::View::access) makes: write.
pub const W_OK: u32 = vfs::MAY_WRITE;
/// Checks that [`View::access`](crate::View::access) makes: read.
pub const R_OK: u32 = vfs::MAY_READ;
/// Checks that [`View::access`](crate::View::access) makes: that the file exists.
pub const F_OK: u32 = 0;
