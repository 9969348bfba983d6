//! With whose rights the host is changed.
//!
//! # What it is
//! Every call that changes the host takes an [`Acting`] ([`crate::calls`]). While the `Acting`
//! exists, a thread of a root process has the caller's user, group and supplementary groups, and
//! none of root's capabilities. So the host itself checks each change by its present owners, modes
//! and ACLs, gives new files to the caller, charges the caller's quota, clears set-id bits, and
//! lets directories pass on their group. If the host refuses the switch, the change fails with
//! `EPERM`.
//!
//! Where a thread cannot act as the caller (the process is not root's, or
//! [`crate::Ownership::Daemon`]), the change has the rights of the process. In that case files
//! never get set-id bits on behalf of other users, and the thread drops root's right to keep these
//! bits.
//!
//! # What it is not
//! Capabilities of callers that are not root: a caller with access only by a capability is refused by the host.
//!
//! # How it is locked
//! Linux keeps credentials for each thread. These are the kernel's calls, not the C library's,
//! which change all threads. An [`Acting`] stays on its thread.
//!
//! # Where it comes from
//! `setresuid(2)`, `setgroups(2)`: "C library/kernel differences"; `capabilities(7)`: "Effect of user ID changes on
//! capabilities"; `nfsd_setuser` in Linux.

use crate::options::Ownership;
use crate::system::{self, Right};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rustix::fs::{Gid, Uid};
use rustix::io::Errno as HostErrno;
use rustix::thread::{CapabilitySet, CapabilitySets};
use vfs::{Capabilities, Errno, Request, S_IFDIR, S_IFMT};

/// Set-user-id and set-group-id.
const SET_IDS: u32 = 0o6000;

/// The VFS's capabilities and the host's.
const CAPABILITIES: [(Capabilities, CapabilitySet); 11] = [
    (Capabilities::CHOWN, CapabilitySet::CHOWN),
    (Capabilities::DAC_OVERRIDE, CapabilitySet::DAC_OVERRIDE),
    (Capabilities::DAC_READ_SEARCH, CapabilitySet::DAC_READ_SEARCH),
    (Capabilities::FOWNER, CapabilitySet::FOWNER),
    (Capabilities::FSETID, CapabilitySet::FSETID),
    (Capabilities::MKNOD, CapabilitySet::MKNOD),
    (Capabilities::SYS_ADMIN, CapabilitySet::SYS_ADMIN),
    (Capabilities::SYS_CHROOT, CapabilitySet::SYS_CHROOT),
    (Capabilities::SYS_RESOURCE, CapabilitySet::SYS_RESOURCE),
    (Capabilities::SETFCAP, CapabilitySet::SETFCAP),
    (Capabilities::LINUX_IMMUTABLE, CapabilitySet::LINUX_IMMUTABLE),
];

/// The user and groups of the process.
#[derive(Debug)]
pub(crate) struct Daemon {
    uid: Uid,
    gid: Gid,
    groups: Box<[Gid]>,
    /// Whether threads act as their callers.
    is_switching: bool,
    /// Whether the kernel leaves a thread its capabilities when it changes its user (`SECBIT_NO_SETUID_FIXUP`).
    keeps_capabilities: bool,
    /// A thread could not switch back; its rights are unknown, so nothing is changed any more.
    is_stuck: AtomicBool,
}

/// The right to change the host, as a caller or as the process; dropping it gives a thread the process's rights again.
#[derive(Debug)]
pub(crate) struct Acting<'d> {
    daemon: &'d Daemon,
    has_uid: bool,
    has_gid: bool,
    has_groups: bool,
    /// The thread's capabilities before.
    capabilities: Option<CapabilitySets>,
    /// Files get no set-id bits.
    strips: bool,
    _thread: PhantomData<*const ()>,
}

impl Daemon {
    pub(crate) fn new(ownership: Ownership) -> Result<Self, HostErrno> {
        let (uid, gid) = (system::user(), system::group());
        Ok(Self {
            uid,
            gid,
            groups: system::groups()?.into(),
            is_switching: ownership == Ownership::Caller && uid.is_root(),
            keeps_capabilities: system::keeps_capabilities(),
            is_stuck: AtomicBool::new(false),
        })
    }

    /// Lets this thread change names, attributes and contents for the caller of `request`. The host
    /// looks at the groups for changes of contents as well: a write clears a set-group-id bit
    /// without an execute bit unless the writer is in the file's group, and blocks may be reserved
    /// for a group (`resgid` of ext4).
    ///
    /// # Errors
    /// `EPERM` if the host refuses the switch.
    pub(crate) fn act(&self, request: &Request) -> Result<Acting<'_>, Errno> {
        let mut acting = self.begin(request)?;
        if self.switches_to(request) {
            acting.switch_groups(request)?;
            acting.switch_user(request)?;
        } else {
            acting.without_capabilities(self.lacking(request))?;
        }
        Ok(acting)
    }

    fn begin(&self, request: &Request) -> Result<Acting<'_>, Errno> {
        // Relaxed: the thread that failed has too few rights, not too many.
        if self.is_stuck.load(Relaxed) {
            return Err(Errno::EPERM);
        }
        let is_other = request.uid != self.uid.as_raw() && !request.capabilities.contains(Capabilities::FSETID);
        Ok(Acting {
            daemon: self,
            has_uid: false,
            has_gid: false,
            has_groups: false,
            capabilities: None,
            strips: is_other && !self.switches_to(request),
            _thread: PhantomData,
        })
    }

    fn switches_to(&self, request: &Request) -> bool {
        self.is_switching && !(request.uid == self.uid.as_raw() && request.gid == self.gid.as_raw())
    }

    /// Returns the capabilities that the process has and the caller does not have. A caller other
    /// than root that is not acted for has the process's rights, except for set-id bits.
    fn lacking(&self, request: &Request) -> CapabilitySet {
        if !self.uid.is_root() {
            return CapabilitySet::empty();
        }
        let is_root = request.uid == self.uid.as_raw();
        let lacks = |capability| !request.capabilities.contains(capability);
        let lacking =
            CAPABILITIES.iter().filter(|(ours, _)| lacks(*ours) && (is_root || *ours == Capabilities::FSETID));
        lacking.fold(CapabilitySet::empty(), |set, (_, hosts)| set | *hosts)
    }
}

impl Acting<'_> {
    /// Returns the mode for a new file, or for a change of mode.
    pub(crate) fn allowed(&self, mode: u32) -> u32 {
        // A directory's set-group-id bit gives no rights.
        let is_dir = mode & S_IFMT == S_IFDIR;
        if self.strips && !is_dir { mode & !SET_IDS } else { mode }
    }

    /// Returns the user that owns new files of the thread.
    pub(crate) fn uid(&self) -> Uid {
        system::user()
    }

    /// Takes the caller's groups. This comes before the change of the user, since only root may
    /// change groups. If the caller is root, the groups stay: root has all rights without them.
    fn switch_groups(&mut self, request: &Request) -> Result<(), Errno> {
        let daemon = self.daemon;
        if request.uid != daemon.uid.as_raw() && !is_same(request.groups(), &daemon.groups) {
            let groups: Vec<Gid> = request.groups().iter().map(|&gid| gid_of(gid)).collect::<Result<_, _>>()?;
            system::switch(Right::Groups(&groups)).map_err(refused)?;
            self.has_groups = true;
        }
        if request.gid != daemon.gid.as_raw() {
            system::switch(Right::Group(gid_of(request.gid)?)).map_err(refused)?;
            self.has_gid = true;
        }
        Ok(())
    }

    /// Takes the caller's user, and drops the capabilities that the caller does not have.
    fn switch_user(&mut self, request: &Request) -> Result<(), Errno> {
        let daemon = self.daemon;
        if request.uid == daemon.uid.as_raw() {
            return self.without_capabilities(daemon.lacking(request));
        }
        // All ones mean "as it is" to the host.
        if request.uid == u32::MAX {
            return Err(Errno::EPERM);
        }
        system::switch(Right::User(Uid::from_raw(request.uid))).map_err(refused)?;
        self.has_uid = true;
        if daemon.keeps_capabilities { self.without_capabilities(CapabilitySet::all()) } else { Ok(()) }
    }

    fn without_capabilities(&mut self, lacking: CapabilitySet) -> Result<(), Errno> {
        if lacking.is_empty() {
            return Ok(());
        }
        let before = system::capabilities().map_err(refused)?;
        let effective = before.effective - lacking;
        if effective != before.effective {
            system::switch(Right::Capabilities(CapabilitySets { effective, ..before })).map_err(refused)?;
            self.capabilities = Some(before);
        }
        Ok(())
    }

    /// Gives the thread the process's rights again. Restores the user first, since root's
    /// capabilities return with the user.
    fn restore(&self) -> Result<(), HostErrno> {
        if self.has_uid {
            system::switch_back(Right::User(self.daemon.uid))?;
        }
        if let Some(before) = self.capabilities {
            system::switch_back(Right::Capabilities(before))?;
        }
        if self.has_gid {
            system::switch_back(Right::Group(self.daemon.gid))?;
        }
        if self.has_groups {
            system::switch_back(Right::Groups(&self.daemon.groups))?;
        }
        Ok(())
    }
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        // The saved user is root's, so this fails only under a system call filter that allows the way there alone.
        if let Err(error) = self.restore() {
            // Relaxed: see `begin`.
            self.daemon.is_stuck.store(true, Relaxed);
            tracing::error!(%error, "setresuid: a thread could not switch back to the user of the process: all changes fail from now on");
        }
    }
}

/// Returns whether these are the same groups in the same order.
fn is_same(groups: &[u32], hosts: &[Gid]) -> bool {
    groups.iter().copied().eq(hosts.iter().map(|gid| gid.as_raw()))
}

/// Returns a group; not "as it is", which all ones mean to the host.
fn gid_of(gid: u32) -> Result<Gid, Errno> {
    if gid == u32::MAX { Err(Errno::EPERM) } else { Ok(Gid::from_raw(gid)) }
}

/// Returns the error for a switch that the host refused.
#[cold]
fn refused(error: HostErrno) -> Errno {
    tracing::warn!(%error, "a thread could not take the rights of a caller: the change is refused");
    Errno::EPERM
}
