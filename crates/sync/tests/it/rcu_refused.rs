//! Domains in a process to which the system refuses what it granted before, or that was forked. Each case runs in a
//! separate process: this program again, with the name of the test.
#![allow(unsafe_code, reason = "fork, and seccomp filters")]

use lightfoot_sync::PerCpuOwner;
use lightfoot_sync::rcu::{RcuDomain, ReaderMode, Refused};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Barrier};
use std::thread;

/// In a process that hangs a test ends after this time, and fails.
const LIMIT: Timespec = Timespec { tv_sec: 120, tv_nsec: 0 };

/// Waits for a child. `Err`: it hung, and was killed.
fn ends(child: Pid) -> Result<(), &'static str> {
    let handle = pidfd_open(child, PidfdFlags::empty()).expect("it was not waited for");
    let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&LIMIT)).expect("not interrupted");
    if ended == 0 {
        let _ = kill_process(child, Signal::KILL);
        return Err("it hangs");
    }
    Ok(())
}

/// Runs `body` in a separate process, for the test `name`.
fn alone(name: &str, body: fn()) {
    const MARK: &str = "LIGHTFOOT_SYNC_ALONE";
    if std::env::var_os(MARK).is_some() {
        return body();
    }
    let program = std::env::current_exe().expect("of a test");
    let child = Command::new(program)
        .args(["--exact", name, "--nocapture"])
        .env(MARK, "1")
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be run");
    let ended = ends(Pid::from_child(&child));
    let output = child.wait_with_output().expect("a child");
    let (text, status) = (String::from_utf8_lossy(&output.stdout), output.status);
    assert!(ended.is_ok() && status.success() && text.contains("1 passed"), "{name}: {ended:?}, {status}\n{text}");
}

/// Makes these system calls fail with `EPERM` from now on, in the calling thread or in all threads.
fn refuse(calls: &[i64], flags: libc::c_ulong) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for &call in calls {
        let is_call = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        program.push(libc::sock_filter { code: is_call as u16, jt: 0, jf: 1, k: call as u32 });
        program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: it reads its arguments only.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the filter lives during the call, and `len` is its length.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// A domain whose reclaimer runs, with a compiler fence in its readers, and a callback that counts. `None` where the
/// system refuses `membarrier(2)` from the start.
fn running() -> Option<(RcuDomain, Arc<AtomicUsize>)> {
    let domain = RcuDomain::new();
    if domain.stats().reader_mode == ReaderMode::Fence {
        return None;
    }
    domain.defer(0, || {});
    domain.barrier();
    Some((domain, Arc::default()))
}

fn count_later(domain: &RcuDomain, count: &Arc<AtomicUsize>) {
    let count = count.clone();
    domain.defer(100, move || {
        count.fetch_add(1, Relaxed);
    });
}

/// Calls `f` while other threads enter and leave sections.
fn among_readers(domain: &RcuDomain, f: impl FnOnce()) {
    let (is_over, begun) = (AtomicBool::new(false), Barrier::new(3));
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                drop(domain.read());
                begun.wait();
                while !is_over.load(Relaxed) {
                    drop(domain.read());
                }
            });
        }
        begun.wait();
        f();
        is_over.store(true, Relaxed);
    });
}

#[test]
fn readers_execute_fences_once_membarrier_is_refused() {
    alone("rcu_refused::readers_execute_fences_once_membarrier_is_refused", || {
        let Some((domain, count)) = running() else { return };
        let owner = PerCpuOwner::new(1, false);
        let share = owner.share();
        refuse(&[libc::SYS_membarrier], libc::SECCOMP_FILTER_FLAG_TSYNC);
        among_readers(&domain, || {
            count_later(&domain, &count);
            assert_eq!(domain.try_barrier(), Ok(()));
            domain.synchronize();
        });
        assert_eq!(count.load(Relaxed), 1);
        assert_eq!((domain.stats().reader_mode, domain.stats().refusals), (ReaderMode::Fence, 0));
        assert_eq!(owner.seal(), 1);
        drop(share);
        assert_eq!(owner.seal(), 0);
    });
}

#[test]
fn a_filter_of_one_thread_does_not_disturb_the_reclaimer() {
    alone("rcu_refused::a_filter_of_one_thread_does_not_disturb_the_reclaimer", || {
        let Some((domain, count)) = running() else { return };
        refuse(&[libc::SYS_membarrier, libc::SYS_sched_setaffinity], 0);
        count_later(&domain, &count);
        assert_eq!(domain.try_barrier(), Ok(()));
        assert_eq!(count.load(Relaxed), 1);
        let refused = catch_unwind(AssertUnwindSafe(|| domain.synchronize()));
        assert!(refused.is_err());
    });
}

#[test]
fn what_cannot_be_freed_any_more_is_reported_and_kept() {
    alone("rcu_refused::what_cannot_be_freed_any_more_is_reported_and_kept", || {
        let Some((domain, count)) = running() else { return };
        let owner = PerCpuOwner::new(1, false);
        refuse(&[libc::SYS_membarrier, libc::SYS_sched_setaffinity], libc::SECCOMP_FILTER_FLAG_TSYNC);
        for round in 1..=3 {
            count_later(&domain, &count);
            assert_eq!(domain.try_barrier(), Err(Refused::Membarrier));
            let stats = domain.stats();
            assert!(stats.refusals >= round);
            assert_eq!((stats.deferred_callbacks, stats.deferred_bytes), (round, 100 * round));
        }
        assert!(catch_unwind(AssertUnwindSafe(|| domain.barrier())).is_err());
        assert_eq!(count.load(Relaxed), 0);
        assert_eq!(owner.seal(), i64::MAX);
        assert!(owner.borrow().to_arc().is_some(), "it is not sealed");
        drop(owner);
        // Without readers no grace period is needed.
        drop(domain);
        assert_eq!(count.load(Relaxed), 3);
    });
}

/// Forks; the child runs `body` and ends. Whether it returned.
fn child_returns(body: impl FnOnce()) -> Result<(), &'static str> {
    // SAFETY: the child calls what must work there, and ends without destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // It ends with its parent, should that be killed.
        // SAFETY: no memory is involved.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let result = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: no memory is involved.
        unsafe { libc::_exit(i32::from(result.is_err())) };
    }
    let child = Pid::from_raw(child).expect("it was forked");
    let ended = ends(child);
    let status = waitpid(Some(child), WaitOptions::empty()).expect("a child").expect("it has ended").1;
    ended.and(if status.exit_status() == Some(0) { Ok(()) } else { Err("it failed") })
}

#[test]
fn in_the_child_of_a_fork_a_domain_refuses_and_a_new_one_works() {
    alone("rcu_refused::in_the_child_of_a_fork_a_domain_refuses_and_a_new_one_works", || {
        for new in [RcuDomain::new, RcuDomain::with_fences, RcuDomain::without_reclaimer] {
            let (domain, count) = (new(), Arc::<AtomicUsize>::default());
            domain.defer(0, || {});
            domain.barrier();
            count_later(&domain, &count);
            let (owner, is_over, inside) = (PerCpuOwner::new(1, false), AtomicBool::new(false), Barrier::new(2));
            thread::scope(|s| {
                // In the child it never leaves.
                s.spawn(|| {
                    let _section = domain.read();
                    inside.wait();
                    while !is_over.load(Relaxed) {
                        thread::yield_now();
                    }
                });
                inside.wait();
                let returned = child_returns(|| {
                    assert_eq!(domain.try_barrier(), Err(Refused::Forked));
                    assert!(catch_unwind(AssertUnwindSafe(|| domain.barrier())).is_err());
                    assert!(catch_unwind(AssertUnwindSafe(|| domain.synchronize())).is_err());
                    (0..3000).for_each(|_| count_later(&domain, &count));
                    domain.flush();
                    assert_eq!(owner.seal(), i64::MAX);
                    // SAFETY: the child ends without destructors, so this is the one drop of its copy.
                    drop(unsafe { std::ptr::read(&raw const owner) });
                    // SAFETY: as above.
                    drop(unsafe { std::ptr::read(&raw const domain) });
                    assert_eq!(count.load(Relaxed), 0);
                    let own = new();
                    count_later(&own, &count);
                    own.barrier();
                    own.synchronize();
                    assert_eq!(count.load(Relaxed), 1);
                });
                is_over.store(true, Relaxed);
                assert_eq!(returned, Ok(()));
            });
            domain.barrier();
            assert_eq!(count.load(Relaxed), 1);
        }
    });
}
