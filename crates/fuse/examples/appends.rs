//! Measures appends to a file of a mounted host directory, with pages and with `SessionOptions::direct_appends`: the time by
//! the clock, and the processor time of client and server. Root only; about a minute.

use hostfs::{HostFs, HostOptions, Revalidate};
use lightfoot_fuse::{MountOptions, Mounted, SessionOptions, Ttls};
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("lightfoot-appends-{}", std::process::id()));
    for watch in [true, false] {
        let mounts = [mounted(&dir.join("pages"), watch, false)?, mounted(&dir.join("direct"), watch, true)?];
        for (len, count) in [(100, 20_000), (4096, 10_000)] {
            let mut results = [Vec::new(), Vec::new()];
            for round in 0..ROUNDS {
                for which in [round % 2, (round + 1) % 2] {
                    results[which].push(appended(&mounts[which].1, len, count)?);
                }
            }
            let [clock, processor] =
                [|one: &[f64; 2]| one[0], |one: &[f64; 2]| one[1]].map(|of: fn(&[f64; 2]) -> f64| {
                    let [pages, direct] = results.each_ref().map(|all| median(all.iter().map(of).collect()));
                    format!("{pages:.1}, {direct:.1} us, ratio {:.2}", direct / pages)
                });
            println!(
                "{}, {len} bytes, with pages and direct: clock {clock}; processor {processor}",
                if watch { "watch" } else { "always" }
            );
        }
    }
    Ok(fs::remove_dir_all(dir)?)
}

fn mounted(dir: &Path, watch: bool, direct_appends: bool) -> Result<(Mounted, PathBuf), Box<dyn Error>> {
    let (source, at) = (dir.join("source"), dir.join("mount"));
    [&source, &at].into_iter().try_for_each(fs::create_dir_all)?;
    let policy = if watch { Revalidate::Ttl(Duration::from_secs(1)) } else { Revalidate::Always };
    let ttls = if watch { Ttls::LONG } else { Ttls::all(Duration::ZERO) };
    let session = SessionOptions { ttls, reports_changes: watch, direct_appends, ..SessionOptions::default() };
    let vfs = vfs::Vfs::new(HostFs::new(&source, &HostOptions { policy, watch, ..HostOptions::default() })?);
    Ok((lightfoot_fuse::mount(&vfs, &at, &MountOptions { session, ..MountOptions::default() })?, at))
}

/// Returns the time and the processor time of one of `count` appends of `len` bytes, in microseconds.
fn appended(at: &Path, len: usize, count: u32) -> std::io::Result<[f64; 2]> {
    let (path, record) = (at.join("log"), vec![b'x'; len]);
    let mut file = File::options().append(true).create(true).open(&path)?;
    let (processor, clock) = (processor_us()?, Instant::now());
    (0..count).try_for_each(|_| file.write_all(&record))?;
    let times = [clock.elapsed().as_secs_f64() * 1e6, processor_us()? - processor];
    drop(file);
    fs::remove_file(path)?;
    Ok(times.map(|us| us / f64::from(count)))
}

/// Returns the processor time of all threads of this process.
fn processor_us() -> std::io::Result<f64> {
    let mut sum = 0.0;
    for thread in fs::read_dir("/proc/self/task")? {
        let times = fs::read_to_string(thread?.path().join("schedstat"))?;
        sum += times.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e3;
    }
    Ok(sum)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
