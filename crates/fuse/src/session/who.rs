//! The user of a request, or the fact that the request names none.
//!
//! # What it is
//! Linux names the user in the header of a request. With [`SessionOptions::idmap`](crate::SessionOptions::idmap) it does so only
//! if the request makes a file; the header of any other request has all ones. An unknown user gets nothing that depends on the
//! user: it is not root, owns no file, keeps no set-id bits, makes no files. All unknown users share one [`Account`].
//!
//! No other module reads the numbers in a header, or compares the number of a caller (`tidy: who-asks`).
//!
//! # Where it comes from
//! `FUSE_INVALID_UIDGID` in `linux/fuse.h`; `fuse_get_req` and `fuse_force_creds` in Linux's `fs/fuse/dev.c`.

use vfs::Errno;

/// A user and its group, by their numbers in the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct User {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
}

/// The user of a request, if the request names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// The request names this user.
    Known(User),
    /// The request names no user.
    Unknown,
}

/// The number in a header that names no user or group.
const NOBODY: u32 = u32::MAX;

impl Who {
    /// Root.
    pub const ROOT: Self = Self::Known(User { uid: 0, gid: 0 });

    /// Returns the user with these numbers. All ones in either of them name no user.
    #[must_use]
    pub const fn of(uid: u32, gid: u32) -> Self {
        if uid == NOBODY || gid == NOBODY { Self::Unknown } else { Self::Known(User { uid, gid }) }
    }

    /// Returns whether it is known to be root.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.is(0)
    }

    /// Returns whether it is known to be the user `uid`.
    #[must_use]
    pub const fn is(&self, uid: u32) -> bool {
        matches!(self, Self::Known(user) if user.uid == uid)
    }

    /// Returns whether it is known to be a user other than root and `owner`.
    pub(crate) const fn is_other_than(&self, owner: u32) -> bool {
        matches!(self, Self::Known(_)) && !self.is_root() && !self.is(owner)
    }

    /// Returns the user and group that new files get.
    ///
    /// # Errors
    /// `EOVERFLOW` for an unknown user, as Linux has it for a user without a mapping.
    pub(crate) const fn maker(&self) -> Result<User, Errno> {
        match self {
            Self::Known(user) => Ok(*user),
            Self::Unknown => Err(Errno::EOVERFLOW),
        }
    }

    /// Returns the account that is charged.
    pub(crate) const fn account(&self) -> Account {
        match self {
            Self::Known(user) => Account::Of(user.uid),
            Self::Unknown => Account::OfUnknown,
        }
    }
}

/// An account for what a user pins: memory, locks, waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Account {
    /// Of one user.
    Of(u32),
    /// Of all unknown users.
    OfUnknown,
}

impl Account {
    /// Returns whether the account has limits: it is neither root's nor the mounting user's (`own`).
    pub(crate) const fn is_limited(self, own: u32) -> bool {
        match self {
            Self::Of(uid) => uid != 0 && uid != own,
            Self::OfUnknown => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ones_in_either_number_name_no_user_and_an_unknown_user_is_nobody() {
        for (uid, gid) in [(NOBODY, NOBODY), (0, NOBODY), (NOBODY, 0)] {
            let who = Who::of(uid, gid);
            assert_eq!((who, who.maker(), who.account()), (Who::Unknown, Err(Errno::EOVERFLOW), Account::OfUnknown));
            let is_anybody = who.is_root() || who.is(5) || who.is(NOBODY) || who.is_other_than(5);
            assert!(!is_anybody && who.account().is_limited(0), "{uid} {gid}");
        }
        let [root, user] = [Who::ROOT, Who::of(5, 6)];
        assert!(root.is_root() && user.is(5) && !user.is_root());
        assert_eq!([user.is_other_than(5), user.is_other_than(6), root.is_other_than(6)], [false, true, false]);
        let is_limited = |who: Who, own| who.account().is_limited(own);
        assert_eq!([is_limited(root, 5), is_limited(user, 5), is_limited(user, 6)], [false, false, true]);
    }
}
