//! Mounts a host directory, which nobody else changes meanwhile, on another: `mirror SOURCE MOUNTPOINT [writeback|passthrough]`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let [source, mountpoint, more @ ..] = words.as_slice() else { return Err("say what and where".into()) };
    let has = |word: &str| more.iter().any(|more| more == word);
    let options = hostfs::HostOptions { policy: hostfs::Revalidate::Exclusive, ..hostfs::HostOptions::default() };
    let tree = vfs::Vfs::new(hostfs::HostFs::new(source, &options)?);
    let (writeback, passthrough) = (has("writeback"), has("passthrough"));
    let session =
        fuse::SessionOptions { ttls: fuse::Ttls::LONG, writeback, passthrough, ..fuse::SessionOptions::default() };
    let options = fuse::MountOptions { session, allow_other: true, ..fuse::MountOptions::default() };
    fuse::mount(&tree, mountpoint.as_ref(), &options)?.wait()?;
    Ok(())
}
