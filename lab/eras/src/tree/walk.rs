//! The walk that counts each step: every era's way but the fastwalk's and the store-free one's, and the way on which those
//! end when they cannot go on.

use super::Tree;
use super::fs_struct::FsStruct;
use super::mount::Mounts;
use super::name::Name;
use super::scheme::Scheme;
use crate::era::{Error, Result};
use crate::path::{Component, Components, Route};

/// Walks the route from its beginning; returns the end, counted, and with it the mount.
pub(crate) fn counted_walk<S: Scheme>(tree: &Tree<S>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
    let start = S::start(tree, fs, route.is_absolute);
    go_on(tree, start, route.components, route.to_directory)
}

/// Continues from the counted entry `at`, whose reference and mount it takes over; returns the end
/// with a reference and a mount.
pub(crate) fn go_on<S: Scheme>(
    tree: &Tree<S>,
    mut at: u32,
    components: Components<'_>,
    to_directory: bool,
) -> Result<u32> {
    for component in components {
        let next = step(tree, at, component);
        S::put(tree, at);
        at = next.inspect_err(|_| tree.mounts.put())?;
    }
    if to_directory && !tree.inode(at).is_directory() {
        S::put(tree, at);
        tree.mounts.put();
        return Err(Error::NotDirectory);
    }
    Ok(at)
}

fn step<S: Scheme>(tree: &Tree<S>, at: u32, component: Component<'_>) -> Result<u32> {
    match tree.look(at, component)? {
        None => Ok(S::dot_dot(tree, at)),
        Some(name) => S::child(tree, at, &name).ok_or(Error::NoEntry),
    }
}

impl<S: Scheme> Tree<S> {
    /// Takes the first steps of every walk for a component in `at`: checks that the walk may look
    /// the component up, and hashes the name. Returns `None` for `..`.
    pub(crate) fn look<'p>(&self, at: u32, component: Component<'p>) -> Result<Option<Name<'p>>> {
        if !self.inode(at).is_directory() {
            return Err(Error::NotDirectory);
        }
        prim::cost(self.options.permission_ns);
        match component {
            Component::Parent => Ok(None),
            Component::Name(bytes) => {
                prim::cost(self.options.component_ns);
                Name::new(bytes).map(Some)
            }
        }
    }
}
