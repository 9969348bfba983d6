//! The memory of forks.

use hostfs::{HostFs, HostOptions};
use lightfoot_workspaces::{CommitOptions, ForkLimits, Workspaces};
use std::fs;
use vfs::{Base, Budget, Context, OpenFlags, Vfs};

/// Bytes of memory of this process.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// It measures the memory of its process.
#[test]
fn an_idle_fork_with_its_mount_takes_less_than_18_kib() {
    const FORKS: usize = 1000;
    if testkit::ran_alone("memory::an_idle_fork_with_its_mount_takes_less_than_18_kib") {
        return;
    }
    let spaces = Workspaces::over(Vfs::new(ramfs::RamFs::new()).context(), true).unwrap();
    let fork = |number: usize| spaces.fork("base", &number.to_string(), ForkLimits::default()).unwrap();
    fork(0);
    let before = resident();
    (1..=FORKS).for_each(fork);
    let each = (resident() - before) / FORKS;
    assert!(each < 18 << 10, "{each} bytes a fork");
}

/// Looks up all files of the base in a fork, and changes some: 3 of 10 have a name for a moment, 1 stays.
fn use_fork(context: &Context, fork: &str, files: u32) {
    let flags = OpenFlags::RDWR.union(OpenFlags::CREAT);
    for file in 0..files {
        context.attr(Base::CWD, format!("{fork}/{file}").as_bytes(), true).unwrap();
        let made = format!("{fork}/made{file}").into_bytes();
        if file % 10 < 4 {
            context.open(Base::CWD, &made, flags, 0o644).unwrap().write_at(0, b"text").unwrap();
        }
        if file % 10 < 3 {
            let open = context.open(Base::CWD, &made, flags, 0o644).unwrap();
            context.unlink(Base::CWD, &made).unwrap();
            assert_eq!(open.attr().unwrap().size, 4);
        }
    }
}

#[test]
fn forks_keep_to_one_budget_beside_commits() {
    const FILES: u32 = 1_500;
    let dir = tempfile::tempdir().unwrap();
    (0..FILES).for_each(|file| fs::write(dir.path().join(file.to_string()), file.to_string()).unwrap());
    // 4,096 entries.
    let budget = Budget { entries: 0, negatives: 0, listings: 0 };
    let base = Vfs::with_budget(HostFs::new(dir.path(), &HostOptions::default()).unwrap(), budget);
    let spaces = Workspaces::over(base.context(), true).unwrap();
    let forks: Vec<String> = (0..6).map(|fork| fork.to_string()).collect();
    forks.iter().for_each(|fork| spaces.fork("base", fork, ForkLimits::default()).unwrap());
    std::thread::scope(|scope| {
        for half in forks.chunks(3) {
            let context = spaces.tree().context();
            scope.spawn(move || half.iter().for_each(|fork| use_fork(&context, &format!("/w/{fork}"), FILES)));
        }
        scope.spawn(|| {
            let context = spaces.tree().context();
            for round in 0..60 {
                let (of, child) = (&forks[round % forks.len()], format!("child{round}"));
                spaces.fork(of, &child, ForkLimits::default()).unwrap();
                context.mkdir(Base::CWD, format!("/w/{child}/dir{round}").as_bytes(), 0o755).unwrap();
                spaces.commit(&child, CommitOptions::default()).unwrap();
                spaces.discard(&child, false).unwrap();
            }
        });
    });
    let context = spaces.tree().context();
    let stats = context.mounts().into_iter().filter_map(|mount| spaces.tree().stats_of(mount.dev));
    let used: u64 = stats.filter(|stats| stats.budget.is_some()).map(|stats| stats.entry_bytes).sum();
    assert!((512 << 10..=1 << 20).contains(&used), "{used}");
    for (number, fork) in forks.iter().enumerate() {
        let changes = spaces.changes(fork).unwrap().len();
        assert_eq!(changes, FILES as usize / 10 + 60 / forks.len(), "fork {number}");
    }
    // The space of the files without names is free again.
    let after = spaces.list().into_iter().map(|fork| fork.inodes).collect::<Vec<_>>();
    assert_eq!(after, vec![u64::from(FILES) / 10 + 10; 6]);
}
