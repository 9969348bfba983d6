//! Asymmetric barriers: a cheap side that is a compiler fence, an expensive side that makes every running thread of
//! this process execute a full fence (`membarrier(2)`, `PRIVATE_EXPEDITED`).
//!
//! # A later refusal
//! A system that has granted `membarrier(2)` may refuse it later: the program installs a seccomp
//! filter. Then [`Asymmetric::expensive`] changes the instance to full fences on both sides.
//! Sections that began before this change, with a compiler fence only, need one last barrier: the
//! calling thread runs once on every CPU on which a thread of the process may run
//! (`sched_setaffinity(2)`). So each other thread is switched out at some moment, and the
//! scheduler's switch is a full fence: `membarrier(2)` itself relies on it for threads that do not
//! run. If the system refuses `sched_setaffinity(2)`, the barrier fails, and the caller must free
//! nothing.
//!
//! Source: liburcu's `memb` flavour; `membarrier(2)`; the tour of all CPUs is `synchronize_sched` of Linux 2.6.

use crate::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};

/// Registers the process for [`all_threads`]. Returns `false` if the kernel lacks the call or refuses it (seccomp), and
/// under loom, which cannot model it: use full fences on both sides then.
#[must_use]
pub fn register() -> bool {
    #[cfg(not(loom))]
    return rustix::thread::membarrier(rustix::thread::MembarrierCommand::RegisterPrivateExpedited).is_ok();
    #[cfg(loom)]
    return false;
}

/// Makes every thread of this process that runs now execute a full fence before this returns.
///
/// Takes about 0.3 us with idle CPUs, 11 us with a busy one. Returns `false` if the kernel refuses: after [`register`]
/// returned `true` only because of a seccomp filter that was installed since.
#[must_use]
pub fn all_threads() -> bool {
    #[cfg(not(loom))]
    return rustix::thread::membarrier(rustix::thread::MembarrierCommand::PrivateExpedited).is_ok();
    #[cfg(loom)]
    return false;
}

/// The result of [`Asymmetric::expensive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expensive {
    /// Every thread has executed a full fence.
    Done,
    /// The cheap side executes full fences: the caller must execute one too.
    Fence,
    /// The system refuses: nothing is ordered.
    Refused,
}

/// An asymmetric barrier of one instance, and whether its cheap side must execute a full fence.
#[derive(Debug)]
#[repr(C)]
pub struct Asymmetric {
    /// The cheap side executes a full fence. Never cleared.
    is_fence: AtomicBool,
    /// Every thread sees `is_fence`, and its earlier stores are seen. Never cleared.
    all_fence: AtomicBool,
}

impl Asymmetric {
    /// Returns a barrier whose cheap side is a compiler fence if the system allows that, unless
    /// `fences` is set.
    #[must_use]
    pub fn new(fences: bool) -> Self {
        let fences = fences || !register();
        Self { is_fence: AtomicBool::new(fences), all_fence: AtomicBool::new(fences) }
    }

    /// Returns whether the cheap side must execute a full fence. It calls this after a compiler
    /// fence that follows its store.
    #[inline(always)]
    #[must_use]
    pub fn is_fence(&self) -> bool {
        // A model need not choose.
        cfg!(loom) || is_set(&self.is_fence)
    }

    /// Executes the expensive side: orders the calling thread's earlier accesses against other threads'
    /// accesses on the cheap side.
    pub fn expensive(&self) -> Expensive {
        // ORDERING: Acquire pairs with the Release below: the thread that made the last barrier has made it, and what
        // others stored before it is seen.
        if self.all_fence.load(Acquire) {
            return Expensive::Fence;
        }
        if all_threads() {
            return Expensive::Done;
        }
        // Relaxed: the tour makes it seen.
        self.is_fence.store(true, Relaxed);
        if !run_on_every_cpu() {
            return Expensive::Refused;
        }
        // ORDERING: Release pairs with the Acquire above.
        self.all_fence.store(true, Release);
        Expensive::Fence
    }
}

/// Returns whether the flag is set, by a relaxed load. `Asymmetric::expensive` makes every thread see the change, or fails.
#[cfg(any(loom, not(target_arch = "x86_64")))]
#[inline(always)]
fn is_set(word: &AtomicBool) -> bool {
    word.load(Relaxed)
}

/// As above, in one instruction, where the compiler uses two for an atomic: every walk begins with it.
#[cfg(all(not(loom), target_arch = "x86_64"))]
#[inline(always)]
fn is_set(word: &AtomicBool) -> bool {
    // SAFETY: it reads one byte, which lives; such a read is atomic on x86.
    unsafe {
        core::arch::asm!(
            "cmp byte ptr [{word}], 0",
            "jne {set}",
            word = in(reg) word.as_ptr(),
            set = label { return true },
            options(nostack, readonly),
        );
    }
    false
}

/// Runs the calling thread once on every CPU on which a thread of this process may run. `false` if the system refuses
/// one of them.
#[cfg(not(loom))]
#[cold]
fn run_on_every_cpu() -> bool {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let (Ok(own), Some(wanted)) = (sched_getaffinity(None), cpus_of_all_threads()) else { return false };
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| wanted.is_set(cpu));
    let went_to_all = cpus.all(|cpu| {
        let mut one = CpuSet::new();
        one.set(cpu);
        // Returns when the thread runs there.
        sched_setaffinity(None, &one).is_ok()
    });
    // The thread had these CPUs; if it loses one meanwhile, the system keeps it on the others.
    let _ = sched_setaffinity(None, &own);
    went_to_all
}

/// Returns the CPUs on which any thread of this process may run now. A thread that is started, or
/// gets other CPUs, later, is switched out for that.
#[cfg(not(loom))]
fn cpus_of_all_threads() -> Option<rustix::thread::CpuSet> {
    let mut cpus = rustix::thread::CpuSet::new();
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let id = thread.ok()?.file_name().to_str()?.parse().ok().and_then(rustix::thread::Pid::from_raw)?;
        match rustix::thread::sched_getaffinity(Some(id)) {
            Ok(own) => {
                (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| own.is_set(cpu)).for_each(|cpu| cpus.set(cpu))
            }
            // The thread has ended.
            Err(rustix::io::Errno::SRCH) => {}
            Err(_) => return None,
        }
    }
    Some(cpus)
}

#[cfg(loom)]
fn run_on_every_cpu() -> bool {
    false
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_run_on_every_cpu_may_use_its_own_as_before() {
        let own = || rustix::thread::sched_getaffinity(None).expect("of the calling thread");
        let before = own();
        assert!(run_on_every_cpu());
        assert!(before == own());
    }

    #[test]
    fn full_fences_on_both_sides_need_no_system_call() {
        let barrier = Asymmetric::new(true);
        assert!(barrier.is_fence());
        assert_eq!(barrier.expensive(), Expensive::Fence);
    }
}
