//! Handles and mounts: a plug-in gets a directory that it cannot leave, on its own file system with a limit, and
//! an error is explained.
//!
//! Run it with `cargo run --release -p lightfoot --example handles`.

use lightfoot::{Dir, Errno, MountFlags, RamFs, RamLimits, UnmountFlags, Vfs};
use std::io;

fn main() -> io::Result<()> {
    let ctx = Vfs::ram().context();
    ctx.create_dir_all("/srv/plugin")?;
    ctx.write("/srv/secret", "not for plug-ins")?;
    let limits = RamLimits { bytes: Some(64 << 10), ..RamLimits::none() };
    ctx.mount(RamFs::with_limits(limits), "/srv/plugin", MountFlags::NODEV)?;

    // Everything that a plug-in does goes through its handle, which has the host's user but none of its capabilities.
    let home = ctx.open_dir("/srv/plugin")?.confined();
    plugin(&home)?;
    println!("the plug-in left {:?} in {}", ctx.read_to_string("/srv/plugin/out/result")?, home.path().display());

    // Where a path goes wrong.
    ctx.symlink("plugin/results/latest", "/srv/latest")?;
    if let Some(failure) = ctx.explain("/srv/latest") {
        println!("{failure}");
    }

    // The handle keeps the file system busy, and can be found.
    let busy = ctx.unmount("/srv/plugin", UnmountFlags::default());
    assert_eq!(busy.unwrap_err().raw_os_error(), Some(Errno::EBUSY.raw()));
    for holder in ctx.holders("/srv/plugin")? {
        println!("held: {} by {} references", holder.path.display(), holder.references);
    }
    drop(home);
    ctx.unmount("/srv/plugin", UnmountFlags::default())
}

/// What a plug-in may try.
fn plugin(home: &Dir) -> io::Result<()> {
    home.create_dir("out")?;
    home.write("out/result", "42")?;
    home.symlink("/srv/secret", "way-out")?;
    for escape in ["../secret", "/srv/secret", "way-out"] {
        let refused = home.read(escape).expect_err("it leads out");
        println!("the plug-in reads {escape}: {refused}");
    }
    let refused = home.write("big", vec![0; 1 << 20]).expect_err("there is no room");
    println!("the plug-in writes a mebibyte: {refused}");
    home.create_dir("more")?;
    let refused = home.mount(RamFs::new(), "more", MountFlags::default()).expect_err("it would pass the limit");
    println!("the plug-in mounts a file system without a limit: {refused}");
    let refused = home.unmount(".", UnmountFlags::DETACH).expect_err("it is the host's");
    println!("the plug-in unmounts its file system: {refused}");
    Ok(())
}
