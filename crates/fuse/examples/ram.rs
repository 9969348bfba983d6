//! Mounts an empty tree in memory until it is unmounted: `ram MOUNTPOINT [writeback]`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mountpoint = std::env::args_os().nth(1).ok_or("usage: ram MOUNTPOINT [writeback]")?;
    let writeback = std::env::args().any(|word| word == "writeback");
    let tree = vfs::Vfs::new(ramfs::RamFs::new());
    let session = lightfoot_fuse::SessionOptions {
        ttls: lightfoot_fuse::Ttls::LONG,
        writeback,
        ..lightfoot_fuse::SessionOptions::default()
    };
    let options =
        lightfoot_fuse::MountOptions { session, allow_other: true, ..lightfoot_fuse::MountOptions::default() };
    lightfoot_fuse::mount(&tree, mountpoint.as_ref(), &options)?.wait()?;
    Ok(())
}
