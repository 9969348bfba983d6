//! Mounts a host directory on another: `mirror SOURCE MOUNTPOINT [exclusive] [writeback|passthrough]`. `exclusive`: no other
//! process changes the source meanwhile. Otherwise the kernel caches for a second.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let [source, mountpoint, more @ ..] = words.as_slice() else {
        return Err("usage: mirror SOURCE MOUNTPOINT [exclusive] [writeback|passthrough]".into());
    };
    let has = |word: &str| more.iter().any(|more| more == word);
    let ttl = std::time::Duration::from_secs(1);
    let is_exclusive = has("exclusive");
    let policy = if is_exclusive { hostfs::Revalidate::Exclusive } else { hostfs::Revalidate::Ttl(ttl) };
    let options = hostfs::HostOptions { policy, ..hostfs::HostOptions::default() };
    let tree = vfs::Vfs::new(hostfs::HostFs::new(source, &options)?);
    let (writeback, passthrough) = (has("writeback"), has("passthrough"));
    let ttls = if is_exclusive { lightfoot_fuse::Ttls::LONG } else { lightfoot_fuse::Ttls::all(ttl) };
    let session =
        lightfoot_fuse::SessionOptions { ttls, writeback, passthrough, ..lightfoot_fuse::SessionOptions::default() };
    let options =
        lightfoot_fuse::MountOptions { session, allow_other: true, ..lightfoot_fuse::MountOptions::default() };
    lightfoot_fuse::mount(&tree, mountpoint.as_ref(), &options)?.wait()?;
    Ok(())
}
