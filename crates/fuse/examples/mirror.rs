//! Mounts a host directory on another: `mirror SOURCE MOUNTPOINT [exclusive] [writeback|passthrough]`. With `exclusive` nobody else
//! changes it meanwhile; else what was learned is good for a second.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let [source, mountpoint, more @ ..] = words.as_slice() else { return Err("say what and where".into()) };
    let has = |word: &str| more.iter().any(|more| more == word);
    let ttl = std::time::Duration::from_secs(1);
    let is_exclusive = has("exclusive");
    let policy = if is_exclusive { hostfs::Revalidate::Exclusive } else { hostfs::Revalidate::Ttl(ttl) };
    let options = hostfs::HostOptions { policy, ..hostfs::HostOptions::default() };
    let tree = vfs::Vfs::new(hostfs::HostFs::new(source, &options)?);
    let (writeback, passthrough) = (has("writeback"), has("passthrough"));
    let ttls = if is_exclusive { fuse::Ttls::LONG } else { fuse::Ttls::all(ttl) };
    let session = fuse::SessionOptions { ttls, writeback, passthrough, ..fuse::SessionOptions::default() };
    let options = fuse::MountOptions { session, allow_other: true, ..fuse::MountOptions::default() };
    fuse::mount(&tree, mountpoint.as_ref(), &options)?.wait()?;
    Ok(())
}
