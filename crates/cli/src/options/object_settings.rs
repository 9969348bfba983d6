//! The values that options set for an object store; `None`: the default of `objectfs`.

use std::time::Duration;

/// See the [module documentation](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectSettings {
    /// The URL of the server.
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
    /// Bytes of contents that are cached.
    pub(crate) cache_bytes: Option<u64>,
    /// Objects do not keep attributes: listings are enough.
    pub(crate) without_attributes: bool,
    /// Some objects stand for symbolic links.
    pub(crate) symlinks: bool,
    /// Directories are renamed by copies.
    pub(crate) copies_directories: bool,
    /// How long one try of a request may take.
    pub(crate) timeout: Option<Duration>,
    /// How long answers are used, by Lightfoot and the kernel together.
    pub(crate) ttl: Option<Duration>,
}

impl ObjectSettings {
    /// Half of the ttl: the kernel and Lightfoot each use an answer for that long.
    pub(crate) fn half_ttl(&self) -> Duration {
        self.ttl.unwrap_or(DEFAULT_TTL) / 2
    }
}

/// How long answers are used without an option.
const DEFAULT_TTL: Duration = Duration::from_secs(5);
