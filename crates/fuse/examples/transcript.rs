//! Mounts an empty tree in memory until it is unmounted, and prints a line for each request that changes the kernel's nodes or
//! handles: `transcript MOUNTPOINT`. `crates/fuse/tests/it/transcripts` has its output, which `tools/check/transcript` records.

use std::fmt::{Debug, Write};
use std::io::Write as _;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Prints the lines of a transcript, and warnings.
struct Recorder;

/// The text of an event.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "lightfoot_fuse::transcript" || *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let _ = writeln!(std::io::stdout().lock(), "{}", text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mountpoint = std::env::args_os().nth(1).ok_or("usage: transcript MOUNTPOINT")?;
    tracing::subscriber::set_global_default(Recorder)?;
    let tree = vfs::Vfs::new(ramfs::RamFs::new());
    let session = lightfoot_fuse::SessionOptions {
        ttls: lightfoot_fuse::Ttls::LONG,
        ..lightfoot_fuse::SessionOptions::default()
    };
    // One thread, so that lines stand in the order of what was done.
    let options = lightfoot_fuse::MountOptions {
        session,
        threads: Some(1),
        clone_fd: false,
        ..lightfoot_fuse::MountOptions::default()
    };
    lightfoot_fuse::mount(&tree, mountpoint.as_ref(), &options)?.wait()?;
    Ok(())
}
