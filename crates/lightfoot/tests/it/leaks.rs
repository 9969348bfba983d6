//! Nothing of a file system or an open file stays after its end, however it was used.

use lightfoot::fs::{FileSystem, Inode, Layer, NewNode, Request, Valid};
use lightfoot::{
    Context, Credentials, Errno, LockKind, LockWait, MountFlags, OpenOptions, Permissions, RamFs, Scope, SetXattr,
    UnmountFlags, Vfs,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use testkit::{Counting, Store, StoreOptions};

const O_TMPFILE: u32 = 0o20_200_000;
const NONE: MountFlags = MountFlags::empty();

/// Panics in `set_attr` and in `evict` while `panics` is set.
struct Panicking<F> {
    inner: F,
    panics: Arc<AtomicBool>,
}

impl<F: FileSystem> Layer for Panicking<F> {
    type Inner = F;

    fn inner(&self) -> &F {
        &self.inner
    }

    fn create(&self, by: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        assert!(!self.panics.load(Relaxed), "a panic in create");
        FileSystem::create(&self.inner, by, dir, name, new)
    }

    fn evict(&self, inode: &Inode) {
        FileSystem::evict(&self.inner, inode);
        assert!(!self.panics.load(Relaxed), "a panic in evict");
    }
}

/// Uses the mount at `/m` in every way.
fn use_it(root: &Context) {
    root.create_dir_all("/m/d/e").unwrap();
    root.set_permissions("/m/d", Permissions::from_mode(0o755)).unwrap();
    for number in 0..200 {
        root.write(format!("/m/d/{number}"), "x").unwrap();
        assert!(!root.exists(format!("/m/d/none-{number}")));
        assert!(!root.exists(format!("/m/d/no-{number}-name-of-more-than-thirty-two-bytes")));
    }
    root.write("/m/d/a-name-of-more-than-thirty-two-bytes-in-it", "x").unwrap();
    root.symlink("a-text-that-is-kept-beside-its-inode", "/m/d/link").unwrap();
    root.hard_link("/m/d/1", "/m/d/alias").unwrap();
    root.rename("/m/d/2", "/m/d/e/moved").unwrap();
    let _ = root.set_xattr("/m/d/1", "user.a", "value", SetXattr::Any);
    let user = root.with_credentials(Credentials::user(1001, 1001, &[7]));
    assert!(user.write("/m/d/refused", "").is_err());
    user.set_current_dir("/m/d").unwrap();
    assert_eq!(user.read_dir(".").unwrap().count(), 203);
    let (watch, all) = (root.watch("/m/d", Scope::Directory).unwrap(), user.watch("/m", Scope::Subtree).unwrap());
    let open = |path: &str| OpenOptions::new().read(true).write(true).open(root, path).unwrap();
    let (one, other) = (open("/m/d/3"), open("/m/d/4"));
    one.lock().unwrap();
    other.lock_range(LockKind::Exclusive, 0..10, LockWait::Never).unwrap();
    let unnamed = OpenOptions::new().read(true).write(true).custom_flags(O_TMPFILE).open(root, "/m/d");
    root.remove_file("/m/d/3").unwrap();
    root.write("/m/d/5", "y").unwrap();
    let dir = root.open_dir("/m/d/e").unwrap();
    let confined = dir.confined();
    assert!(confined.read_to_string("moved").is_ok() && confined.read_to_string("../4").is_err());
    root.remove_file("/m/d/e/moved").unwrap();
    root.remove_dir("/m/d/e").unwrap();
    assert!(watch.try_next().is_some() && all.try_next().is_some());
    drop((one, other, unnamed, dir, confined, watch, all));
    // Left behind: a directory and many names in it.
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// What the tree has left when nothing runs in it: dentries, holders, bytes of slots, what RCU has to free, and threads.
fn left(vfs: &Vfs) -> [usize; 5] {
    vfs.barrier();
    let stats = vfs.cache_stats();
    let deferred = usize::try_from(vfs.rcu_stats().deferred_bytes).unwrap();
    [stats.live_dentries, stats.held, stats.slot_bytes, deferred, threads()]
}

fn check<F: FileSystem>(make: fn() -> F) {
    let (fs, of_root) = Counting::of(Box::new(RamFs::new()));
    let vfs = Vfs::new(fs);
    let root = vfs.context();
    root.create_dir("/m").unwrap();
    let panics = Arc::new(AtomicBool::new(false));
    let mut before = None;
    for round in 0..12 {
        let (fs, counts) = Counting::of(Box::new(Panicking { inner: make(), panics: panics.clone() }));
        root.mount(fs, "/m", NONE).unwrap();
        use_it(&root);
        let (is_lazy, has_panics) = (round % 2 == 1, round % 3 == 2);
        let kept = is_lazy.then(|| (root.open("/m/d/6").unwrap(), root.open_dir("/m/d").unwrap()));
        if has_panics {
            panics.store(true, Relaxed);
            assert!(catch_unwind(AssertUnwindSafe(|| root.write("/m/d/new", ""))).is_err());
        }
        root.unmount("/m", if is_lazy { UnmountFlags::DETACH } else { UnmountFlags::default() }).unwrap();
        drop(kept);
        panics.store(false, Relaxed);
        // A caller that detaches does not wait for the end.
        vfs.barrier();
        assert_eq!((counts.alive(), counts.evicted_twice(), Arc::strong_count(&counts)), (0, vec![], 1), "{round}");
        let now = left(&vfs);
        // The first round starts the reclaimer, and grows the table.
        if round > 0 {
            assert_eq!(*before.get_or_insert(now), now, "{round}");
        }
    }
    drop((root, vfs));
    assert!(of_root.ends_within(Duration::from_secs(60)));
    assert_eq!((of_root.alive(), of_root.evicted_twice()), (0, vec![]));
}

/// It counts the threads of its process.
#[test]
fn a_file_system_leaves_nothing_however_it_was_used() {
    if testkit::ran_alone("leaks::a_file_system_leaves_nothing_however_it_was_used") {
        return;
    }
    check(RamFs::new);
    check(|| Store::new(StoreOptions { keeps_listings: true, ..StoreOptions::default() }));
    check(|| Store::new(StoreOptions { remote: true, ..StoreOptions::default() }));
    check(|| Store::new(StoreOptions { valid: Valid::For(0), ..StoreOptions::default() }));
}
