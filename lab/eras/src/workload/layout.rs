//! Making the trees that workloads begin with.
//!
//! Everything here is done through a process of the era, as a program would. Setting up is
//! single-threaded.

use crate::era::{Error, Process, Result};

/// Makes a directory and all above it; one that is there is as good.
pub(super) fn directories(process: &dyn Process, path: &str) -> Result<()> {
    for (end, _) in path.match_indices('/').filter(|&(end, _)| end > 0).chain([(path.len(), "")]) {
        match process.make_directory(&path.as_bytes()[..end]) {
            Ok(()) | Err(Error::Exists) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes an empty file.
pub(super) fn file(process: &dyn Process, path: &str) -> Result<()> {
    let handle = process.create(path.as_bytes())?;
    process.close(handle);
    Ok(())
}

/// Makes `files` empty files `PATH/fN` and returns their paths.
pub(super) fn files(process: &dyn Process, path: &str, files: usize) -> Result<Vec<String>> {
    (0..files)
        .map(|index| {
            let name = format!("{path}/f{index}");
            file(process, &name).map(|()| name)
        })
        .collect()
}
