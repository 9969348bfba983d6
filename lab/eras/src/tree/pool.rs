//! Free numbers of a table of fixed size: per-CPU magazines in front of one depot.
//!
//! # What it is
//! A thread takes numbers from its CPU's magazine and returns them to it, so that making and
//! removing files shares no cache line. An empty magazine gets 32 numbers from the depot; a full
//! magazine gives 32 to the depot. After a grace period a number is returned to the CPU that freed
//! it and has it in its caches, as the kernel runs RCU callbacks on the CPU that queued them. This
//! is Linux's slab allocator as far as an era needs it. All eras have the same allocator.
//!
//! # How it is locked
//! Each magazine has a spinlock, which only the magazine's owner takes, except for numbers that
//! return after a grace period and when the table is nearly full. The depot has a spinlock. A
//! thread holds only one of these locks at a time.
//!
//! # Source
//! J. Bonwick, J. Adams, "Magazines and Vmem" (USENIX ATC 2001).

use prim::PerCpu;
use sync::SpinLock;

/// Numbers that go to or come from the depot at a time.
const BATCH: usize = 32;

/// The length at which a magazine gives some numbers to the depot, and takes no more after a grace
/// period.
const LOADED: usize = 512;

/// See the [module documentation](self).
pub(crate) struct Pool {
    own: PerCpu<Magazine>,
    depot: SpinLock<Vec<Vec<u32>>>,
}

#[repr(align(128))]
struct Magazine(SpinLock<Vec<u32>>);

impl Pool {
    /// Returns a pool in which all numbers below `count` are free.
    pub(crate) fn new(count: usize) -> Self {
        let count = u32::try_from(count).expect("a table of less than 2^32 entries");
        let batches = (0..count).step_by(BATCH).map(|first| {
            let end = count.min(first + BATCH as u32);
            (first..end).rev().collect()
        });
        let depot = batches.rev().collect();
        Self { own: PerCpu::new(|| Magazine(SpinLock::new(Vec::new()))), depot: SpinLock::new(depot) }
    }

    /// Returns a free number, which is not free any more.
    pub(crate) fn take(&self) -> Option<u32> {
        let own = &self.own.this().0;
        if let Some(number) = own.lock().pop() {
            return Some(number);
        }
        // Batches are not empty, but one may have been given so.
        loop {
            let Some(mut batch) = self.depot.lock().pop() else { return self.steal() };
            let number = batch.pop();
            own.lock().append(&mut batch);
            if number.is_some() {
                return number;
            }
        }
    }

    /// Makes `number`, which was taken, free again.
    pub(crate) fn give(&self, number: u32) {
        let surplus = {
            let mut own = self.own.this().0.lock();
            own.push(number);
            let at = own.len() - own.len().min(BATCH);
            if own.len() < LOADED { Vec::new() } else { own.split_off(at) }
        };
        if !surplus.is_empty() {
            self.depot.lock().push(surplus);
        }
    }

    /// As [`give`](Self::give), for many, for the CPU index `cpu`: they are in the caches of the
    /// CPU that freed them.
    pub(crate) fn give_all(&self, cpu: usize, mut numbers: Vec<u32>) {
        let mut own = self.own.get(cpu).0.lock();
        if own.len() < LOADED {
            own.append(&mut numbers);
        }
        drop(own);
        if !numbers.is_empty() {
            self.depot.lock().push(numbers);
        }
    }

    /// Numbers that are free.
    pub(crate) fn free(&self) -> usize {
        let in_depot: usize = self.depot.lock().iter().map(Vec::len).sum();
        in_depot + self.own.iter().map(|magazine| magazine.0.lock().len()).sum::<usize>()
    }

    /// From another CPU's magazine: the depot is empty.
    #[cold]
    fn steal(&self) -> Option<u32> {
        self.own.iter().find_map(|magazine| magazine.0.lock().pop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_given_out_once_until_it_comes_back() {
        for count in [0, 1, 31, 32, 33, 100, 1000] {
            let pool = Pool::new(count);
            for _ in 0..2 {
                let mut taken: Vec<u32> = core::iter::from_fn(|| pool.take()).collect();
                assert_eq!(pool.free(), 0);
                taken.sort_unstable();
                assert!(taken.iter().copied().eq(0..count as u32), "{count}: {taken:?}");
                taken.into_iter().for_each(|number| pool.give(number));
                assert_eq!(pool.free(), count);
            }
        }
    }

    #[test]
    fn what_is_given_to_a_cpu_is_taken_there_first() {
        let pool = Pool::new(1000);
        let mut taken: Vec<u32> = core::iter::from_fn(|| pool.take()).collect();
        let own = taken.split_off(500);
        pool.give_all(prim::cpu::id() + 1, taken.clone());
        pool.give_all(prim::cpu::id(), own.clone());
        assert!((0..500).all(|_| pool.take().is_some_and(|number| own.contains(&number))));
        pool.give_all(prim::cpu::id() + 1, own);
        assert_eq!(pool.free(), 1000);
        assert_eq!(core::iter::from_fn(|| pool.take()).count(), 1000);
    }

    #[test]
    fn what_another_thread_gave_back_can_be_taken() {
        let pool = Pool::new(10);
        let taken: Vec<u32> = core::iter::from_fn(|| pool.take()).collect();
        std::thread::scope(|s| {
            let giver = s.spawn(|| taken.iter().for_each(|&number| pool.give(number)));
            giver.join().unwrap();
            assert!(pool.take().is_some());
        });
    }
}
