//! Checkers of permissions: the kernel or the session, for each request under each set of options.
//!
//! # What it is
//! [`Right`] is the action for which a request needs a permission, [`right`] names it for each
//! request, and [`checker`] is the table: which side checks that right under a set of options. A
//! set of options that leaves a right to nobody is refused ([`refusal`]), by
//! [`Session::new`](crate::Session::new) and by [`mount`](crate::mount).
//!
//! # What it is not
//! The checks: `session/callers.rs` has the session's checks, and chooses the credentials of each
//! request.
//!
//! # Where it comes from
//! Linux's `fs/fuse/dir.c`: `fuse_permission`, `fuse_allow_current_process`; `default_permissions` and `allow_other` in
//! `mount.fuse(8)`.

use crate::metrics::{Op, named};
use crate::options::{Checks, MountOptions, SessionOptions};

named! {
    /// The action for which a request needs a permission.
    Right {
        Search = "searching directories", "To search a directory for a name.";
        CachedName = "the use of names that the kernel has cached", "To use a name that the kernel has cached. It sends no request.";
        Open = "opening files", "To open a file or directory, also to execute it.";
        Contents = "reading and writing without an open", "To read and write contents, after the open.";
        Special = "opening FIFOs, sockets and devices", "To open a FIFO, a socket or a device. The kernel sends no request.";
        Names = "creating and removing names", "To create, remove and rename names.";
        Attributes = "changing attributes", "To change attributes, extended ones too.";
        Xattrs = "reading extended attributes", "To read extended attributes.";
        AclEntries = "entries of ACLs", "All of the above, as far as the entries of a POSIX ACL decide.";
    }
}

/// The side that checks a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checker {
    /// The kernel, before it sends the request: `default_permissions`.
    Kernel,
    /// The session, with the credentials of the caller and its groups.
    Session,
    /// The kernel lets only the user who has mounted in, and the session acts with the rights of that user.
    OneUser,
    /// Neither. Such options are refused.
    Nobody,
}

/// The options that decide which side checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedOptions {
    /// [`SessionOptions::checks`].
    pub checks: Checks,
    /// [`SessionOptions::no_open`].
    pub no_open: bool,
    /// [`MountOptions::allow_other`].
    pub allow_other: bool,
    /// [`SessionOptions::acl`].
    pub acl: bool,
    /// [`SessionOptions::idmap`].
    pub idmap: bool,
    /// Whether [`SessionOptions::shown`] names an owner.
    pub shows_owner: bool,
    /// Whether a file system of the tree checks callers itself ([`vfs::FsTraits::checks_callers`]): a host directory.
    pub is_host: bool,
}

impl CheckedOptions {
    /// Returns the options of a session whose transport lets one user in, or has a kernel that
    /// checks ACLs.
    fn of_session(session: &SessionOptions) -> Self {
        let SessionOptions { checks, no_open, acl, idmap, .. } = *session;
        let shows_owner = session.shown.uid.or(session.shown.gid).is_some();
        Self { checks, no_open, allow_other: false, acl, idmap, shows_owner, is_host: false }
    }

    fn of_mount(options: &MountOptions, is_host: bool) -> Self {
        Self { allow_other: options.allow_other, is_host, ..Self::of_session(&options.session) }
    }
}

/// Returns the right that a request needs. `None`: it needs no right, or the right was checked by
/// an earlier request (a listing needs an open directory).
#[must_use]
pub const fn right(op: Op) -> Option<Right> {
    match op {
        Op::Lookup | Op::Readdirplus => Some(Right::Search),
        Op::Open | Op::Opendir | Op::Access => Some(Right::Open),
        Op::Read | Op::Write | Op::Fallocate | Op::Lseek | Op::Fsync | Op::CopyFileRange => Some(Right::Contents),
        Op::Create
        | Op::Tmpfile
        | Op::Mknod
        | Op::Mkdir
        | Op::Symlink
        | Op::Link
        | Op::Unlink
        | Op::Rmdir
        | Op::Rename => Some(Right::Names),
        Op::Setattr | Op::Setxattr | Op::Removexattr | Op::Ioctl => Some(Right::Attributes),
        Op::Getxattr | Op::Listxattr => Some(Right::Xattrs),
        // The caller has the name, or an open file.
        Op::Getattr | Op::Statx | Op::Readlink | Op::Statfs | Op::Readdir | Op::Fsyncdir => None,
        Op::Getlk | Op::Setlk | Op::Flush | Op::Release | Op::Releasedir | Op::Forget | Op::BatchForget => None,
        // Not served.
        Op::Bmap | Op::Poll => None,
    }
}

/// Returns the table: which side checks `right` under `options`.
#[must_use]
pub const fn checker(options: CheckedOptions, right: Right) -> Checker {
    let CheckedOptions { checks, no_open, allow_other, acl, idmap, shows_owner, is_host } = options;
    match (checks, right) {
        // Few requests name the caller.
        (Checks::Own, _) if idmap => Checker::Nobody,
        // For the kernel the shown owner of a file is its owner. The session refuses set-id bits to
        // that user, so it needs the caller's number.
        (_, Right::Attributes) if idmap && shows_owner => Checker::Nobody,
        // A file that nobody has opened and a user without a number: the session cannot distinguish a
        // writer from a user who strips another's set-id bits.
        (_, Right::Attributes) if idmap && no_open => Checker::Nobody,
        // The host has changes that the kernel does not have in its caches. It checks the caller once
        // more, so it needs the caller's number.
        (_, Right::Names) if idmap && allow_other && is_host => Checker::Nobody,
        // Without `FUSE_POSIX_ACL` the kernel checks modes only.
        (Checks::Kernel, Right::AclEntries) if !acl => {
            if allow_other {
                Checker::Nobody
            } else {
                Checker::OneUser
            }
        }
        (Checks::Kernel, _) => Checker::Kernel,
        // No request names the caller, and no request comes before it that does.
        (Checks::Own, Right::Contents) if no_open => Checker::Nobody,
        // The kernel does this without a request, and checks nothing without `default_permissions`.
        (Checks::Own, Right::CachedName | Right::Special) => {
            if allow_other {
                Checker::Nobody
            } else {
                Checker::OneUser
            }
        }
        (Checks::Own, _) => Checker::Session,
    }
}

/// Returns the side that checks where no option decides. For a mount that only root can reach, this
/// is the session. A check of root's rights refuses only the execution of a file that is not
/// executable, which both sides refuse anyway, and the kernel's checks cost a GETATTR after each
/// change of a directory. A root process that has dropped `CAP_DAC_OVERRIDE` is not checked in this
/// case.
#[must_use]
pub fn default_checks(options: &MountOptions) -> Checks {
    default_checks_of(rustix::process::geteuid().is_root(), options)
}

fn default_checks_of(is_root: bool, options: &MountOptions) -> Checks {
    let own = SessionOptions { checks: Checks::Own, ..options.session.clone() };
    let is_checked = mount_refusal(&MountOptions { session: own, ..options.clone() }, false).is_none();
    if is_root && is_checked { Checks::Own } else { Checks::Kernel }
}

/// Returns the first right that `options` leave to nobody.
fn unchecked(options: CheckedOptions) -> Option<Right> {
    Right::ALL.iter().copied().find(|&right| checker(options, right) == Checker::Nobody)
}

/// Options that were refused because neither the kernel nor Lightfoot would check a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("options {option} and {with}: nobody would check {} (omit one of them)", .right.name())]
pub struct Refusal {
    /// The option that changes which side checks.
    pub option: &'static str,
    /// The option that it cannot be combined with.
    pub with: &'static str,
    /// The right that nobody would check.
    pub right: Right,
}

/// Returns why a session with these options is refused.
pub(crate) fn session_refusal(options: &SessionOptions) -> Option<Refusal> {
    refusal(CheckedOptions::of_session(options))
}

/// Returns why a mount with these options is refused; `is_host`: of a tree with a host directory.
pub(crate) fn mount_refusal(options: &MountOptions, is_host: bool) -> Option<Refusal> {
    refusal(CheckedOptions::of_mount(options, is_host))
}

/// Returns why `options` are refused: the right that nobody would check, and the pair of options
/// that causes it.
#[must_use]
pub fn refusal(options: CheckedOptions) -> Option<Refusal> {
    let right = unchecked(options)?;
    let (option, with) = match (options.checks, right) {
        (_, Right::Attributes) if options.idmap && options.shows_owner => ("idmap", "uid= or gid="),
        (Checks::Own, _) if options.idmap => ("own_permissions", "idmap"),
        (_, Right::Attributes) if options.idmap => ("idmap", "no_open"),
        (_, Right::Names) if options.idmap => ("idmap", "allow_other on a directory"),
        (Checks::Own, Right::Contents) => ("own_permissions", "no_open"),
        (Checks::Own, _) => ("own_permissions", "allow_other"),
        (Checks::Kernel, _) => ("noacl", "allow_other"),
    };
    Some(Refusal { option, with, right })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_options() -> impl Iterator<Item = CheckedOptions> {
        (0..128).map(|bits| CheckedOptions {
            checks: if bits & 1 == 0 { Checks::Kernel } else { Checks::Own },
            no_open: bits & 2 != 0,
            allow_other: bits & 4 != 0,
            acl: bits & 8 != 0,
            idmap: bits & 16 != 0,
            shows_owner: bits & 32 != 0,
            is_host: bits & 64 != 0,
        })
    }

    #[test]
    fn every_set_of_options_is_refused_or_has_a_checker_for_each_request() {
        for options in all_options() {
            let refused = refusal(options);
            let rights = Op::ALL.iter().filter_map(|&op| right(op)).chain(Right::ALL.iter().copied());
            let has_nobody = rights.map(|right| checker(options, right)).any(|checker| checker == Checker::Nobody);
            assert_eq!(refused.is_some(), has_nobody, "{options:?}");
            // If several users may use the mount, no right depends on having one user only.
            let depends = Right::ALL.iter().any(|&right| checker(options, right) == Checker::OneUser);
            assert!(!(options.allow_other && depends), "{options:?}");
        }
    }

    #[test]
    fn the_refused_sets_are_these() {
        for options in all_options() {
            let CheckedOptions { checks, no_open, allow_other, acl, idmap, shows_owner, is_host } = options;
            let is_refused = match checks {
                Checks::Own => no_open || allow_other || idmap,
                Checks::Kernel => allow_other && !acl || idmap && (shows_owner || no_open || allow_other && is_host),
            };
            assert_eq!(refusal(options).is_some(), is_refused, "{options:?}");
        }
    }

    #[test]
    fn the_session_checks_what_only_root_can_reach() {
        let of = |is_root, allow_other, no_open| {
            let session = SessionOptions { no_open, ..SessionOptions::default() };
            default_checks_of(is_root, &MountOptions { session, allow_other, ..MountOptions::default() })
        };
        assert_eq!(of(true, false, false), Checks::Own);
        for (is_root, allow_other, no_open) in [(false, false, false), (true, true, false), (true, false, true)] {
            assert_eq!(of(is_root, allow_other, no_open), Checks::Kernel, "{is_root} {allow_other} {no_open}");
        }
    }

    #[test]
    fn a_refusal_names_both_options() {
        let none = CheckedOptions {
            checks: Checks::Kernel,
            no_open: false,
            allow_other: false,
            acl: true,
            idmap: false,
            shows_owner: false,
            is_host: false,
        };
        let own = CheckedOptions { checks: Checks::Own, no_open: true, ..none };
        let cases = [
            (own, "own_permissions and no_open: nobody would check reading"),
            (CheckedOptions { no_open: false, allow_other: true, ..own }, "own_permissions and allow_other"),
            (CheckedOptions { allow_other: true, acl: false, ..none }, "noacl and allow_other"),
            (CheckedOptions { checks: Checks::Own, idmap: true, ..none }, "own_permissions and idmap"),
            (CheckedOptions { idmap: true, shows_owner: true, ..none }, "idmap and uid= or gid="),
            (CheckedOptions { idmap: true, no_open: true, ..none }, "idmap and no_open"),
            (CheckedOptions { idmap: true, allow_other: true, is_host: true, ..none }, "idmap and allow_other on a"),
        ];
        for (options, part) in cases {
            let text = refusal(options).map(|refusal| refusal.to_string()).unwrap_or_default();
            assert!(text.contains(part) && text.contains("(omit one of them)"), "{text}: {part}");
        }
    }

    #[test]
    fn every_request_that_names_a_file_of_another_user_needs_a_right() {
        let without: Vec<_> = Op::ALL.iter().filter(|&&op| right(op).is_none()).map(|op| op.name()).collect();
        let expected = [
            "forget",
            "batch_forget",
            "getattr",
            "readlink",
            "statfs",
            "release",
            "flush",
            "readdir",
            "releasedir",
            "fsyncdir",
            "getlk",
            "setlk",
            "bmap",
            "poll",
            "statx",
        ];
        assert_eq!(without, expected);
    }
}
