//! `lightfoot mount`: a source becomes a mount, until somebody unmounts it or a signal asks for the end.
//!
//! # What it is
//! The order of things: words are understood, signals listened to, the source opened, the tree mounted; then whoever waits
//! is told ([`notify`], [`daemon`]), and the main thread waits. A first signal unmounts, so that who has files open may end
//! first; a second one ends at once.
//!
//! # Where it comes from
//! `mount(8)`, `mount.fuse(8)`, `daemon(7)`.

mod alias;
mod daemon;
mod failure;
mod metrics;
mod notify;
mod options;
mod place;
mod signals;
mod table;

pub(crate) use alias::arguments;
pub(crate) use failure::Failure;
pub(crate) use table::{Entry, devices};

use crate::control::{Control, Served};
use crate::error::Error;
use crate::logging::{self, LogArguments};
use crate::source::Source;
use clap::Args;
use daemon::Report;
use fuse::Mounted;
use metrics::{Address, Listener, Socket};
use options::Words;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signals::{Signals, Woken};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// What `lightfoot mount` is asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct Mount {
    /// ram:[WORD,WORD..], a directory of this machine, or a TOML file that names several mounts
    #[arg(value_name = "SOURCE")]
    source: OsString,

    /// The directory to mount on
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    /// Options, as in /etc/fstab; docs/mounting.md has them all. Of the mount: ro, allow_other, own_permissions, uid=N, gid=N,
    /// umask=N, ttl=TIME, entry_timeout=S, attr_timeout=S, negative_timeout=S, threads=N, no_clone_fd, writeback,
    /// passthrough, noacl, locks, nosuid, nodev, noexec, noatime, nonempty, max_names=N, max_write=BYTES. Of SOURCE: see
    /// `lightfoot ls --help`
    #[arg(short = 'o', long = "options", value_name = "WORD,WORD..")]
    options: Vec<String>,

    /// Go to the background once it is mounted
    #[arg(long)]
    daemon: bool,

    /// Serve metrics for Prometheus over HTTP: an address and a port, a port of 127.0.0.1, or unix:PATH
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<Address>,

    /// Do everything but mount
    #[arg(short, long)]
    fake: bool,

    /// Leave out options that nobody knows
    #[arg(long)]
    sloppy: bool,

    /// Say to the parent how it went.
    #[arg(long, hide = true)]
    reporting: bool,

    #[command(flatten)]
    log: LogArguments,
}

/// Mounts, and returns when the mount has gone; with `--daemon`, when it is there. `arguments` are the command's own, to be
/// said again to a process in the background.
pub(crate) fn run(mount: &Mount, arguments: &[OsString]) -> Result<(), Error> {
    if mount.reporting {
        let mut report = Report::begin();
        let result = serve(mount, Some(&mut report));
        return report.ended(result);
    }
    if mount.daemon && !mount.fake { Ok(daemon::start(arguments)?) } else { serve(mount, None) }
}

fn serve(mount: &Mount, report: Option<&mut Report>) -> Result<(), Error> {
    logging::start(
        &mount.log,
        if report.is_some() { "warn,fuser::session=error" } else { "info,fuser::session=error" },
    )?;
    let mut words = Words::parse(&mount.options, mount.sloppy)?;
    raise_open_files();
    // Before there is something to leave behind.
    let mut signals = Signals::listen().map_err(|error| Failure::Signals(error.into()))?;
    let source = words.source_of(&mount.source)?;
    place::check(&source, &mount.mountpoint)?;
    let metrics = mount.metrics.as_ref().map(Listener::bind).transpose()?;
    if mount.fake {
        return Ok(());
    }
    // Callers' umasks have been applied when modes come here.
    rustix::process::umask(rustix::fs::Mode::empty());
    let mut hosts = Vec::new();
    let tree = source.open_telling(&mut |host| hosts.push(host))?;
    if words.mount.session.no_open && !hosts.is_empty() {
        tracing::warn!("directories of the host must know what is opened: no_open is left out");
        words.mount.session.no_open = false;
    }
    words.mount.session.ttls = words.ttls(source.ttls());
    words.mount.session.max_nodes = words.max_names(source.max_names());
    if words.mount.name.is_empty() {
        words.mount.name = name(mount, &source);
    }
    let mounted = fuse::mount(&tree, &mount.mountpoint, &words.mount).map_err(Failure::Fuse)?;
    // A name that leads back here would have the file system ask itself.
    hosts.iter().for_each(|host| host.exclude_dev(mounted.device()));
    if !words.mount.allow_other {
        tracing::info!("only {} may use it; with -o allow_other everybody", rustix::process::geteuid().as_raw());
    }
    let hosts = source.host_dirs().map(|host| host.path.to_path_buf()).zip(hosts).collect();
    let served = Arc::new(Served {
        session: mounted.session().clone(),
        source: words.mount.name.clone(),
        mountpoint: mounted.mountpoint().into(),
        budget: source.budget(),
        hosts,
    });
    let _answering = answer(&served, metrics, mounted.device());
    if let Some(report) = report
        && let Err(error) = report.mounted()
    {
        tracing::warn!(%error, "not wholly in the background");
    }
    notify::ready(&format!("{} is mounted", mounted.mountpoint().display()));
    wait(mounted, &mut signals)
}

/// Answers those who ask how it is; until what it gives is dropped.
fn answer(served: &Arc<Served>, metrics: Option<Listener>, device: u64) -> (Option<Control>, Option<Socket>) {
    let numbers = (rustix::fs::major(device), rustix::fs::minor(device));
    let control = Control::serve(Arc::downgrade(served), numbers).inspect_err(|error| {
        tracing::warn!(%error, "there is no control socket: lightfoot stats and top cannot ask");
    });
    let socket = metrics.map(|listener| listener.serve(Arc::downgrade(served))).transpose().inspect_err(|error| {
        tracing::warn!(%error, "no thread serves metrics");
    });
    (control.ok(), socket.ok().flatten().flatten())
}

/// Waits until the mount has gone, and unmounts it at a signal.
fn wait(mounted: Mounted, signals: &mut Signals) -> Result<(), Error> {
    let mut is_ending = false;
    loop {
        match signals.wait(mounted.end()).map_err(|error| Failure::Signals(error.into()))? {
            Woken::Ended => break,
            Woken::Signal(signal) if is_ending => return Err(Failure::Forced(signal).into()),
            Woken::Signal(signal) => {
                is_ending = true;
                notify::stopping();
                tracing::info!(signal, "unmounting");
                if let Err(error) = mounted.unmount() {
                    tracing::error!(%error, "cannot unmount; another signal ends the process, and leaves a dead mount");
                }
            }
        }
    }
    notify::stopping();
    mounted.wait().map_err(|error| Failure::Server(error.into()))?;
    tracing::info!("unmounted");
    Ok(())
}

/// What stands first in a list of mounts: what was said for a tree in memory, so that `mount -a` knows it again.
fn name(mount: &Mount, source: &Source) -> String {
    let said = mount.source.to_string_lossy();
    let name = if said.starts_with("ram:") { said } else { source.name().to_string_lossy() };
    // `fusermount3` has a comma for the end of it.
    name.split(',').next().unwrap_or_default().into()
}

/// Lets the process have as many open files as it may have: a host directory keeps many.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::debug!(%error, "the limit of open files stays");
    }
}
