//! A tree of files in memory, used as a program would use `std::fs`: directories, contents, links, an open file whose
//! name moves, a listing, and what the tree takes in memory.
//!
//! Run it with `cargo run --release -p lightfoot --example embed`.

use lightfoot::{Context, OpenOptions, Vfs};
use std::io::{self, Read, Seek, SeekFrom, Write};

fn main() -> io::Result<()> {
    let vfs = Vfs::ram();
    let ctx = vfs.context();

    ctx.create_dir_all("/srv/site/pages")?;
    ctx.write("/srv/site/pages/index.html", "<h1>hello</h1>\n")?;
    ctx.write("/srv/site/pages/about.html", "<h1>about</h1>\n")?;
    ctx.symlink("pages/index.html", "/srv/site/home")?;
    ctx.hard_link("/srv/site/pages/about.html", "/srv/site/pages/imprint.html")?;

    // Paths are walked as Linux walks them.
    println!("home is {:?}", ctx.read_to_string("/srv/site/home")?.trim_end());
    println!("home leads to {}", ctx.canonicalize("/srv/./site/pages/../home")?.display());
    println!("about has {} names", ctx.metadata("/srv/site/pages/about.html")?.nlink());

    // An open file stays what it is when its name moves, and when its name goes.
    let mut log = OpenOptions::new().read(true).append(true).create(true).open(&ctx, "/srv/log")?;
    log.write_all(b"first\n")?;
    ctx.rename("/srv/log", "/srv/log.1")?;
    log.write_all(b"second\n")?;
    println!("the log is now {}", log.path(&ctx).display());
    ctx.remove_file("/srv/log.1")?;
    let mut text = String::new();
    log.seek(SeekFrom::Start(0))?;
    log.read_to_string(&mut text)?;
    println!("the log is now {} and says {text:?}", log.path(&ctx).display());

    // Errors carry the number that Linux answers.
    let error = ctx.read_dir("/srv/site/home").expect_err("it is not a directory");
    assert_eq!(error.raw_os_error(), Some(20));
    println!("listing a file: {error}");

    list(&ctx, "/", 0)?;
    drop(log);
    let stats = vfs.cache_stats();
    println!("{} names in use, {} KiB of dentries and inodes", stats.live_dentries, stats.slot_bytes >> 10);
    Ok(())
}

/// Prints the tree below `dir`.
fn list(ctx: &Context, dir: &str, depth: usize) -> io::Result<()> {
    let mut entries: Vec<_> = ctx.read_dir(dir)?.collect::<io::Result<_>>()?;
    // A listing comes in no particular order.
    entries.sort_by_key(lightfoot::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let metadata = entry.metadata()?;
        let indent = 2 * depth;
        let mode = metadata.mode() & 0o7777;
        println!("  {mode:04o} {:>6}  {:indent$}{}", metadata.len(), "", name.display());
        if metadata.is_dir() {
            list(ctx, &path.to_string_lossy(), depth + 1)?;
        }
    }
    Ok(())
}
