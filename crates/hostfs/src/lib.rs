//! A host directory as a file system for `lightfoot-vfs`.

#![forbid(unsafe_code)]
