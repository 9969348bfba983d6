//! The fixed trees that paths are walked in, and the slow walk over them: a plain reading of `path_resolution(7)` and
//! `openat2(2)` on a table, one component after the other, without caches.

use vfs::{Errno, Resolve};

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory with these permission bits, owned by root.
    Dir(u32),
    /// A regular file.
    File,
    /// A symbolic link with this body.
    Link(&'static str),
}

/// A node of the table.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The number of the directory that has the node. A root has its own number here.
    pub parent: usize,
    /// The name of the node in the directory.
    pub name: &'static str,
    /// The kind of the node.
    pub kind: Kind,
}

/// The node on which the second file system is mounted, and the root of the second file system.
pub const MOUNT: (usize, usize) = (8, 13);

/// Directories that walks start from.
pub const STARTS: [usize; 6] = [0, 1, 2, 4, 13, 15];

const N255: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
    0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
    0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";

const fn node(parent: usize, name: &'static str, kind: Kind) -> Node {
    Node { parent, name, kind }
}

/// All nodes of both file systems; parents come first.
pub const NODES: &[Node] = &[
    node(0, "", Kind::Dir(0o755)),
    node(0, "a", Kind::Dir(0o755)),
    node(1, "b", Kind::Dir(0o755)),
    node(1, "f", Kind::File),
    node(1, "a-directory-whose-name-is-longer-than-a-line", Kind::Dir(0o755)),
    node(0, "l1", Kind::Link("/a/b")),
    node(2, "l2", Kind::Link("../f")),
    node(0, "loop", Kind::Link("loop")),
    node(0, "m", Kind::Dir(0o755)),
    node(0, "priv", Kind::Dir(0o700)),
    node(9, "x", Kind::File),
    node(1, "l3", Kind::Link("b/../b/")),
    node(0, "lm", Kind::Link("m/up")),
    node(13, "", Kind::Dir(0o755)),
    node(13, "up", Kind::Link("../a")),
    node(13, "d", Kind::Dir(0o755)),
    node(13, "abs", Kind::Link("/l1")),
    node(15, N255, Kind::File),
    node(0, "dead", Kind::Link("nothing")),
    node(2, "sixteen-bytes-16", Kind::File),
    node(2, "seventeen-bytes-7", Kind::Dir(0o755)),
    node(20, "exactly-thirty-two-bytes-of-name", Kind::File),
    node(20, "exactly-thirty-three-bytes-of-nam", Kind::Link("../seventeen-bytes-7/..//./l2")),
    node(1, "self", Kind::Link(".")),
    node(15, "fslash", Kind::Link("../../a/f/")),
    node(0, "root", Kind::Link("/")),
];

/// Pieces of paths that raw bytes hardly hit.
pub const PIECES: &[&str] = &[
    "a",
    "b",
    "f",
    "a-directory-whose-name-is-longer-than-a-line",
    "l1",
    "l2",
    "loop",
    "m",
    "priv",
    "x",
    "l3",
    "lm",
    "up",
    "d",
    "abs",
    N255,
    "dead",
    "sixteen-bytes-16",
    "seventeen-bytes-7",
    "exactly-thirty-two-bytes-of-name",
    "exactly-thirty-three-bytes-of-nam",
    "self",
    "fslash",
    "root",
    "..",
    ".",
    "/",
    "//",
    "nothing",
    "/../",
    "/./",
    "self/self/self/self/self/self/self/self/",
];

/// One walk follows at most this many symbolic links.
const MAX_LINKS: u32 = 40;

/// A walk over the table of nodes.
pub struct SlowWalk {
    /// The node where the walk started, if the walk is scoped. Otherwise the root of the tree.
    root: usize,
    resolve: Resolve,
    /// Whether the walk may search directories that only root may search.
    is_root: bool,
    links: u32,
}

impl SlowWalk {
    /// Returns the node that `path` leads to from `start`. If the path ends at a link and `follow`
    /// is unset, returns the link.
    ///
    /// # Errors
    /// Fails with the errno with which a walk of the tree fails.
    pub fn walk(start: usize, path: &[u8], follow: bool, resolve: Resolve, is_root: bool) -> Result<usize, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        if path.len() > vfs::PATH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let is_scoped = resolve.contains(Resolve::BENEATH) || resolve.contains(Resolve::IN_ROOT);
        let mut walk = Self { root: if is_scoped { start } else { 0 }, resolve, is_root, links: 0 };
        let at = match path[0] {
            b'/' if resolve.contains(Resolve::BENEATH) => return Err(Errno::EXDEV),
            b'/' => walk.root,
            _ => start,
        };
        walk.run(at, path, follow)
    }

    fn run(&mut self, mut at: usize, path: &[u8], follow: bool) -> Result<usize, Errno> {
        let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).collect();
        let slash = path.ends_with(b"/") && !parts.is_empty();
        for (n, part) in parts.iter().enumerate() {
            let last = n + 1 == parts.len();
            let dir = at;
            at = self.step(dir, part)?;
            if let Kind::Link(body) = NODES[at].kind
                && (!last || follow || slash)
            {
                at = self.follow(dir, at, body)?;
            }
            if last && slash && !matches!(NODES[at].kind, Kind::Dir(_)) {
                return Err(Errno::ENOTDIR);
            }
        }
        Ok(at)
    }

    fn step(&self, dir: usize, name: &[u8]) -> Result<usize, Errno> {
        match NODES[dir].kind {
            Kind::Dir(mode) if mode & 1 != 0 || self.is_root => {}
            Kind::Dir(_) => return Err(Errno::EACCES),
            _ => return Err(Errno::ENOTDIR),
        }
        match name {
            b"." => Ok(dir),
            b".." if dir == self.root => self.leave_root(dir),
            b".." if dir == MOUNT.1 && self.resolve.contains(Resolve::NO_XDEV) => Err(Errno::EXDEV),
            b".." if dir == MOUNT.1 => Ok(NODES[MOUNT.0].parent),
            b".." => Ok(NODES[dir].parent),
            name if name.len() > vfs::NAME_MAX => Err(Errno::ENAMETOOLONG),
            name => self.child(dir, name),
        }
    }

    fn leave_root(&self, root: usize) -> Result<usize, Errno> {
        if self.resolve.contains(Resolve::BENEATH) { Err(Errno::EXDEV) } else { Ok(root) }
    }

    fn child(&self, dir: usize, name: &[u8]) -> Result<usize, Errno> {
        match find(dir, name) {
            None => Err(Errno::ENOENT),
            Some(node) if node == MOUNT.0 && self.resolve.contains(Resolve::NO_XDEV) => Err(Errno::EXDEV),
            Some(node) if node == MOUNT.0 => Ok(MOUNT.1),
            Some(node) => Ok(node),
        }
    }

    fn follow(&mut self, dir: usize, link: usize, body: &str) -> Result<usize, Errno> {
        if self.links >= MAX_LINKS || self.resolve.contains(Resolve::NO_SYMLINKS) {
            return Err(Errno::ELOOP);
        }
        self.links += 1;
        let start = match body.starts_with('/') {
            true if self.resolve.contains(Resolve::BENEATH) => return Err(Errno::EXDEV),
            true if self.resolve.contains(Resolve::NO_XDEV) && is_second(self.root) != is_second(link) => {
                return Err(Errno::EXDEV);
            }
            true => self.root,
            false => dir,
        };
        self.run(start, body.as_bytes(), true)
    }
}

/// Returns the node with the name `name` in the directory `dir`.
#[must_use]
pub fn find(dir: usize, name: &[u8]) -> Option<usize> {
    NODES.iter().position(|node| node.parent == dir && !node.name.is_empty() && node.name.as_bytes() == name)
}

/// Returns whether `node` is in the second file system.
#[must_use]
pub fn is_second(mut node: usize) -> bool {
    while NODES[node].parent != node {
        node = NODES[node].parent;
    }
    node == MOUNT.1
}

/// Returns the path of `node` from the root of its file system, without a slash at the beginning.
#[must_use]
pub fn path_of(node: usize) -> String {
    let parent = NODES[node].parent;
    match (parent == node, path_of_parent(parent, node)) {
        (true, _) => String::new(),
        (false, above) if above.is_empty() => NODES[node].name.to_owned(),
        (false, above) => format!("{above}/{}", NODES[node].name),
    }
}

fn path_of_parent(parent: usize, node: usize) -> String {
    if parent == node { String::new() } else { path_of(parent) }
}
