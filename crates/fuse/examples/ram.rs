//! Mounts an empty tree in memory on the directory that is named, until somebody unmounts it.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mountpoint = std::env::args_os().nth(1).ok_or("say where to mount: ram MOUNTPOINT")?;
    let writeback = std::env::args().any(|word| word == "writeback");
    let tree = vfs::Vfs::new(ramfs::RamFs::new());
    let session = fuse::SessionOptions { ttls: fuse::Ttls::LONG, writeback, ..fuse::SessionOptions::default() };
    let options = fuse::MountOptions { session, allow_other: true, ..fuse::MountOptions::default() };
    fuse::mount(&tree, mountpoint.as_ref(), &options)?.wait()?;
    Ok(())
}
