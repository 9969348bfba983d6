//! `lightfoot mount`: mounts a tree and serves it, until it is unmounted or a signal arrives.
//!
//! # What it is
//! The order of steps: parse options, listen for signals, create the mount point, open the source,
//! mount. After these steps the command reports that the mount is ready ([`notify`], [`daemon`],
//! [`hints`]), and the main thread waits. The first signal unmounts, and leaves programs that have
//! files open time to close them; the second ends the process at once.
//!
//! # Where it comes from
//! `mount(8)`, `mount.fuse(8)`, `daemon(7)`.

mod alias;
mod daemon;
mod error;
mod hints;
mod http;
mod mountpoint;
mod notify;
mod overlap;
mod remount;

pub(crate) use alias::arguments;

use crate::control::{ControlSocket, ServedMount};
use crate::logging::{self, LogArguments};
use crate::options;
use crate::signals::{Signals, Woken};
use crate::source::{Handles, Source, SourceAndSettings, StoreHandle};
use clap::Args;
use daemon::Report;
use error::ServeError;
use fuse::Mounted;
use http::{Address, HttpListener, SocketFile};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use vfs::Foreign;

/// Arguments of `lightfoot mount`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = options::help())]
pub(crate) struct Mount {
    /// ram:[OPTION,..] for a tree in memory, a directory, or a TOML file that combines several of both
    ///
    /// A TOML file has the mounts of one tree:
    ///
    ///     [[mount]]
    ///     at = "/"
    ///     source = "ram:size=1g"
    ///
    ///     [[mount]]
    ///     at = "/src"
    ///     source = "/home/x/src"
    ///     options = "ro,ttl=1s"
    #[arg(value_name = "SOURCE", verbatim_doc_comment)]
    source: OsString,

    /// The directory to mount on; created if it is missing, and removed again at the end
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    /// Options, as in /etc/fstab; --help lists them. The later of two that contradict each other holds
    #[arg(short = 'o', long = "options", value_name = "OPTION,..")]
    options: Vec<String>,

    /// Go to the background once it is mounted
    #[arg(long)]
    daemon: bool,

    /// Serve metrics for Prometheus over HTTP on ADDRESS:PORT, on PORT of 127.0.0.1, or on unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<Address>,

    /// Fail if the mount point does not exist, as mount(8) does
    #[arg(long)]
    no_create: bool,

    /// Check everything, but do not mount
    #[arg(short, long)]
    fake: bool,

    /// Ignore unknown options
    #[arg(long)]
    sloppy: bool,

    /// Report to the parent process when it is mounted.
    #[arg(long, hide = true)]
    reporting: bool,

    #[command(flatten)]
    workspaces: crate::workspaces_server::WorkspaceArguments,

    #[command(flatten)]
    log: LogArguments,
}

/// Mounts, and returns when the mount has ended; with `--daemon`, when it is ready. `arguments` are
/// this process's arguments, with which the one in the background is started.
pub(crate) fn run(mount: &Mount, arguments: &[OsString]) -> Result<(), ServeError> {
    if remount::is_requested(&mount.options) {
        return remount::run(&mount.mountpoint, &mount.options);
    }
    let (program, arguments) = arguments.split_at(1.min(arguments.len()));
    if mount.reporting {
        let mut report = Report::begin();
        let result = serve(mount, Ready::Report(&mut report));
        return report.ended(result);
    }
    if mount.daemon && !mount.fake {
        return daemon::start(arguments);
    }
    serve(mount, Ready::Hints(program.first().map_or("lightfoot".as_ref(), OsString::as_os_str)))
}

/// The action when the mount is ready.
enum Ready<'a> {
    /// Report to the parent process.
    Report(&'a mut Report),
    /// Print what to try next, with this name of the program.
    Hints(&'a std::ffi::OsStr),
}

fn serve(mount: &Mount, ready: Ready<'_>) -> Result<(), ServeError> {
    let is_in_background = matches!(ready, Ready::Report(_));
    logging::start(&mount.log, is_in_background)?;
    let SourceAndSettings { source, mut settings } = Source::parse(&mount.source, &mount.options, mount.sloppy)?;
    fuse::check_options(&settings.mount, source.directories().next().is_some())?;
    raise_open_files();
    // Before there is anything that a signal would leave behind.
    let mut signals = Signals::listen().map_err(|error| ServeError::Signals(error.into()))?;
    let metrics = mount.metrics.as_ref().map(HttpListener::bind).transpose()?;
    if mount.fake {
        return overlap::check(&source, &mount.mountpoint);
    }
    let _created = if mount.no_create { None } else { mountpoint::create(&mount.mountpoint)? };
    overlap::check(&source, &mount.mountpoint)?;
    // The kernel has applied the umask of the caller to the modes in its requests.
    rustix::process::umask(rustix::fs::Mode::empty());
    let mut handles = Handles::default();
    let tree = signals.cancel(|| source.open(&mut handles)).map_err(ServeError::Interrupted)??;
    let (tree, forks) = mount.workspaces.over(tree, &source)?;
    let Handles { hosts, stores } = handles;
    if settings.mount.session.no_open && !source.is_in_memory() {
        tracing::warn!("no_open ignored: a directory or a store must be notified when files are opened");
        settings.mount.session.no_open = false;
    }
    source.forbid(&mut settings.mount);
    settings.mount.session.writeback = settings.writeback(source.is_in_memory() && !mount.workspaces.is_set());
    settings.mount.session.ttls = settings.ttls(source.ttls());
    settings.mount.session.reports_changes = source.reports_changes();
    settings.mount.session.tree_changes |= mount.workspaces.is_set();
    settings.mount.session.direct_appends = source.is_shared_with_host();
    settings.mount.session.max_nodes = settings.max_names(source.max_names());
    if settings.mount.name.is_empty() {
        settings.mount.name = name(mount, &source);
    }
    let mounted = fuse::mount(&tree, &mount.mountpoint, &settings.mount)?;
    // A request of ours that entered our own mount would wait for itself.
    hosts.iter().for_each(|host| host.exclude_dev(mounted.device()));
    if !settings.mount.allow_other {
        tracing::info!("only user {} may use the mount (-o allow_other lets others)", geteuid().as_raw());
    }
    let hosts = source.directories().map(|host| host.path.to_path_buf()).zip(hosts).collect();
    let served = Arc::new(ServedMount {
        session: mounted.session().clone(),
        source: settings.mount.name.clone(),
        is_read_only: settings.mount.read_only,
        mountpoint: mounted.mountpoint().into(),
        began: SystemTime::now(),
        transport_kind: mounted.transport_kind().clone(),
        sources: source.sources(),
        hosts,
        stores,
        forks,
    });
    let _reporting = report_status(&served, metrics, mounted.device());
    match ready {
        Ready::Report(report) => {
            if let Err(error) = report.mounted() {
                tracing::warn!(%error, "cannot close the terminal or leave the directory");
            }
        }
        Ready::Hints(program) => hints::print(program, &served),
    }
    notify::ready(&format!("{} is mounted", Foreign::of(mounted.mountpoint())));
    wait(mounted, &mut signals, &served.stores)
}

/// Files of sockets that other processes request the status from, as long as this is kept.
struct StatusSockets {
    _control: Option<ControlSocket>,
    _http: Option<SocketFile>,
}

fn report_status(mount: &Arc<ServedMount>, metrics: Option<HttpListener>, device: u64) -> StatusSockets {
    let control = ControlSocket::serve(Arc::downgrade(mount), device).inspect_err(|error| {
        tracing::warn!(%error, "no control socket: lightfoot stats and top cannot show this mount");
    });
    let http = metrics.map(|listener| listener.serve(Arc::downgrade(mount))).transpose().inspect_err(|error| {
        tracing::warn!(%error, "no thread for metrics");
    });
    StatusSockets { _control: control.ok(), _http: http.ok().flatten().flatten() }
}

/// Waits until the mount has ended, and unmounts it at a signal.
fn wait(mounted: Mounted, signals: &mut Signals, stores: &[StoreHandle]) -> Result<(), ServeError> {
    let mut is_ending = false;
    loop {
        match signals.wait(mounted.end()).map_err(|error| ServeError::Signals(error.into()))? {
            Woken::Ended => break,
            Woken::Signal(signal) if is_ending => return Err(ServeError::Killed(signal)),
            Woken::Signal(signal) => {
                is_ending = true;
                notify::stopping();
                tracing::info!(signal, "unmounting");
                stores.iter().for_each(StoreHandle::end);
                if let Err(error) = mounted.unmount() {
                    tracing::error!(%error, "cannot unmount (a second signal ends the process and leaves a dead mount)");
                }
            }
        }
    }
    notify::stopping();
    stores.iter().for_each(StoreHandle::end);
    mounted.wait().map_err(|error| ServeError::Server(error.into()))?;
    tracing::info!("unmounted");
    Ok(())
}

/// Returns the name in a list of mounts: a tree in memory as it was given, so that `mount -a`
/// recognizes it.
fn name(mount: &Mount, source: &Source) -> String {
    let given = mount.source.to_string_lossy();
    let name = if given.starts_with("ram:") { given } else { source.name().to_string_lossy() };
    // `fusermount3` takes a comma for the end of the name.
    name.split(',').next().unwrap_or_default().into()
}

/// Raises the limit of open files to the hard limit: a directory keeps many open.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::debug!(%error, "cannot raise the limit of open files");
    }
}
