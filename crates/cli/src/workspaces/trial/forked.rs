//! The fork that the command runs in, and the process that serves it.

use super::runner::Inherited;
use super::{TrialError, failed, namespace};
use crate::control::{self, ControlError};
use crate::output::report;
use crate::source::{Handles, Source, SourceAndSettings};
use crate::workspaces::{WorkspacesError, comparing, exchange, shows_progress, write_back};
use crate::workspaces_server::{ChangeLine, Forks, NO_FORKS, Reply, Request, Winner};
use fuse::message::show;
use fuse::mountinfo::{self, MountInfo};
use fuse::{MountError, Mounted};
use rustix::mount::mount_bind;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::Child;
use workspaces::BASE;

/// A fork of a directory.
pub(super) struct Forked {
    dir: PathBuf,
    name: String,
    server: Server,
    inherited: Inherited,
}

/// The process that serves the fork.
enum Server {
    /// This process, in its own mount namespace. `mount` shows the tree of forks in the place of the directory.
    Own { forks: Forks, mounted: Mounted, mount: Mounting },
    /// The process of a mount. `rest`: the path of the directory in the fork.
    Of { mount: MountInfo, rest: PathBuf },
}

type Mounting = Box<dyn Fn(&Forks) -> Result<Mounted, TrialError>>;

impl Forked {
    /// Makes a fork of `dir`, an absolute path without symbolic links. `kept`: the name under which it will be kept.
    ///
    /// # Errors
    /// If it cannot be made or mounted, or not be kept.
    pub(super) fn new(dir: &Path, kept: Option<&str>) -> Result<Self, TrialError> {
        let name = kept.map_or_else(|| format!("try-{}", std::process::id()), Into::into);
        let inherited = Inherited::take();
        let server = match (served(dir, &name)?, kept) {
            (Some(server), _) => server,
            (None, Some(kept)) => return Err(TrialError::CannotKeep { name: kept.into(), dir: dir.into() }),
            (None, None) => serve(dir, &name)?,
        };
        Ok(Self { dir: dir.into(), name, server, inherited })
    }

    /// Starts the command with the fork over the directory.
    ///
    /// # Errors
    /// If this program cannot be started again.
    pub(super) fn start(&self, working_dir: &Path, command: &[OsString]) -> Result<Child, TrialError> {
        let fork = self.path();
        self.inherited.start(working_dir, fork.as_deref().map(|fork| (fork, &*self.dir)), command)
    }

    /// Writes back what the kernel has collected. Uncovers the directory for this process, if it serves the fork; programs that the
    /// command has left behind lose the fork.
    pub(super) fn detach(&self) {
        match &self.server {
            Server::Own { mounted, .. } => {
                write_back(&self.dir);
                // The fork over the tree of forks, and that tree.
                for _ in 0..2 {
                    if let Err(error) = mounted.unmount() {
                        tracing::debug!(%error, "unmount");
                    }
                }
            }
            Server::Of { mount, .. } => write_back(&mount.mountpoint),
        }
    }

    /// Returns the changes, of the whole fork.
    ///
    /// # Errors
    /// If the directory cannot be read, or the process of the mount does not reply.
    pub(super) fn changes(&self) -> Result<Vec<ChangeLine>, TrialError> {
        Ok(comparing::listed(self.server(&|request| self.request(request)), self.name.clone(), None)?)
    }

    /// Applies the changes to the directory, and leaves the fork.
    ///
    /// # Errors
    /// If they cannot be applied; the fork is unchanged.
    pub(super) fn apply(&self, privileged: bool) -> Result<(), TrialError> {
        let (name, conflicts, progress) = (self.name.clone(), Winner::Refuse, shows_progress());
        match self.request(&Request::Commit { name, check: false, conflicts, privileged, reads: false, progress })? {
            Reply::Changes(_) => Ok(()),
            Reply::Conflicts(conflicts) => {
                conflicts.iter().for_each(report);
                Err(TrialError::NotApplied)
            }
            _ => Err(WorkspacesError::other_reply().into()),
        }
    }

    /// Returns whether the fork can outlive this process.
    pub(super) fn can_keep(&self) -> bool {
        matches!(self.server, Server::Of { .. })
    }

    /// Shows the path of the fork, which stays.
    pub(super) fn keep(&self) {
        if let Some(path) = self.path() {
            report(format_args!("kept: {}", show(&path)));
        }
    }

    /// Writes the changes to an archive, if the fork ends with this process.
    ///
    /// # Errors
    /// If it cannot be written, or the fork not be read.
    pub(super) fn save(&self) -> Result<(), TrialError> {
        let Server::Own { forks, mount, .. } = &self.server else { return Ok(()) };
        let (file, path) = archive().map_err(failed("make an archive of the changes"))?;
        let mounted = mount(forks)?;
        let written = comparing::archive(self.server(&|request| self.request(request)), &self.name, file);
        if let Err(error) = mounted.unmount() {
            tracing::debug!(%error, "unmount");
        }
        if written.is_ok() {
            report(format_args!("the changes are in {} (an archive as of `lightfoot diff --tar`)", show(&path)));
        } else {
            let _ = fs::remove_file(path);
        }
        Ok(written?)
    }

    fn server<'s>(&'s self, request: &'s dyn Fn(&Request) -> Result<Reply, WorkspacesError>) -> comparing::Server<'s> {
        comparing::Server { mountpoint: &self.dir, request }
    }

    /// Discards the fork. (A fork that this process serves ends with it.)
    pub(super) fn discard(&self) {
        if self.can_keep()
            && let Err(error) =
                self.request(&Request::Discard { name: self.name.clone(), lazy: true, wait: false, progress: false })
        {
            report(error);
        }
    }

    /// Returns the path of the directory in a fork of a mount.
    fn path(&self) -> Option<PathBuf> {
        match &self.server {
            Server::Own { .. } => None,
            Server::Of { mount, rest } => Some(mount.mountpoint.join("w").join(&self.name).join(rest)),
        }
    }

    fn request(&self, request: &Request) -> Result<Reply, WorkspacesError> {
        match &self.server {
            Server::Own { forks, .. } => match forks.done(request.clone()) {
                Reply::Refused { error } => Err(WorkspacesError::Refused(error)),
                reply => Ok(reply),
            },
            Server::Of { mount, .. } => exchange(mount, request),
        }
    }
}

/// Makes a file for an archive, for the user alone.
fn archive() -> io::Result<(File, PathBuf)> {
    let path = std::env::temp_dir().join(format!("lightfoot-try-{}.tar", std::process::id()));
    Ok((OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?, path))
}

/// Makes the fork in a mount whose tree contains the directory. `None`: no mount has it.
fn served(dir: &Path, name: &str) -> Result<Option<Server>, TrialError> {
    let mounts = mountinfo::list().unwrap_or_default();
    for mount in mounts.into_iter().rev().filter(MountInfo::is_lightfoot) {
        let Some((from, rest)) = place(&mount, dir) else { continue };
        match exchange(&mount, &Request::fork(from, name)) {
            Ok(_) => return Ok(Some(Server::Of { mount, rest })),
            Err(WorkspacesError::Refused(error)) if error == NO_FORKS => {}
            Err(WorkspacesError::Control(ControlError::NoReply { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Returns the fork, or base, of the mount that shows the directory, and the path of the directory in it.
fn place(mount: &MountInfo, dir: &Path) -> Option<(String, PathBuf)> {
    // Not a file system that is mounted below.
    let is_same =
        |root: &Path| fs::metadata(root).ok().map(|root| root.dev()) == fs::metadata(dir).ok().map(|dir| dir.dev());
    if let Ok(rest) = dir.strip_prefix(&mount.mountpoint) {
        let mut parts = rest.components();
        let from = match (parts.next()?, parts.clone().next()) {
            (Component::Normal(first), Some(Component::Normal(name))) if first == "w" => {
                parts.next();
                name.to_str()?.into()
            }
            (Component::Normal(first), _) if first == BASE => BASE.into(),
            _ => return None,
        };
        return Some((from, parts.as_path().into())).filter(|_| is_same(&mount.mountpoint));
    }
    let status = control::status(mount).ok()?;
    let [host] = &status.hosts[..] else { return None };
    let rest = dir.strip_prefix(&host.path).ok()?;
    Some((BASE.into(), rest.into())).filter(|_| is_same(Path::new(&host.path)))
}

/// Enters a namespace, and serves a fork there.
fn serve(dir: &Path, name: &str) -> Result<Server, TrialError> {
    namespace::enter()?;
    // Programs of root may act as another user. Another user's namespace has one group, and its user could not change a file
    // whose group it does not have.
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let options = if user.is_root() { "allow_other".into() } else { format!("gid={group}") };
    let SourceAndSettings { source, mut settings } = Source::parse(dir.as_os_str(), &[options], false)?;
    let mut handles = Handles::default();
    let tree = source.open(&mut handles)?;
    let forks = Forks::over(&tree, false, Some(dir.into()), None)?;
    if let Reply::Refused { error } = forks.done(Request::fork(BASE, name)) {
        return Err(WorkspacesError::Refused(error).into());
    }
    settings.mount.session.ttls = settings.ttls(source.ttls());
    settings.mount.session.max_nodes = settings.max_names(source.max_names());
    settings.mount.name = source.name().to_string_lossy().into();
    // This process mounts the tree of forks over the directory, and the fork over that. So it makes no mount point, and removes none.
    settings.mount.nonempty = true;
    let at = dir.to_path_buf();
    let mount: Mounting = Box::new(move |forks| {
        let mounted =
            fuse::mount(forks.tree().unwrap_or(&tree), &at, &settings.mount).map_err(|error| match error {
                // The helper has no rights in a user namespace.
                MountError::NoHelper | MountError::Refused { .. } | MountError::NotPermitted(_) => {
                    namespace::refused(io::ErrorKind::PermissionDenied.into())
                }
                error => error.into(),
            })?;
        // A request of ours that entered our own mount would wait for itself.
        handles.hosts.iter().for_each(|host| host.exclude_dev(mounted.device()));
        Ok(mounted)
    });
    let mounted = mount(&forks)?;
    let fork = dir.join("w").join(name);
    mount_bind(fork, dir).map_err(io::Error::from).map_err(failed("mount the fork over the directory"))?;
    Ok(Server::Own { forks, mounted, mount })
}
