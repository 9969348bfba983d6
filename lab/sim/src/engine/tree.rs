//! The ready queue: a winner tree over the CPUs' clocks. The least (time, CPU) is one load away, changing one costs the
//! depth of the tree at most.

use core::cell::Cell;

/// The time of a CPU that waits for something.
pub(crate) const NEVER: u64 = u64::MAX;

const CPU_BITS: u32 = 10;

/// Clocks by CPU.
pub(crate) struct Tree {
    keys: Box<[Cell<u64>]>,
    leaves: usize,
    /// Changes the order of CPUs whose clocks are equal.
    pub(crate) tie: Cell<u64>,
}

impl Tree {
    pub(crate) fn new(cpus: usize) -> Self {
        let leaves = cpus.next_power_of_two().max(2);
        Self { keys: (0..2 * leaves).map(|_| Cell::new(NEVER)).collect(), leaves, tie: Cell::new(0) }
    }

    /// Sets the clock of a CPU.
    #[inline]
    pub(crate) fn set(&self, cpu: usize, time: u64) {
        let mut place = self.leaves + cpu;
        let key = if time == NEVER { NEVER } else { time << CPU_BITS | (cpu as u64 ^ self.tie.get()) };
        self.keys[place].set(key);
        while place > 1 {
            place /= 2;
            let least = self.keys[2 * place].get().min(self.keys[2 * place + 1].get());
            if self.keys[place].get() == least {
                break;
            }
            self.keys[place].set(least);
        }
    }

    /// Returns the clock of a CPU.
    #[inline]
    pub(crate) fn time_of(&self, cpu: usize) -> u64 {
        let key = self.keys[self.leaves + cpu].get();
        if key == NEVER { NEVER } else { key >> CPU_BITS }
    }

    /// Returns the least clock.
    #[inline]
    pub(crate) fn time(&self) -> u64 {
        let key = self.keys[1].get();
        if key == NEVER { NEVER } else { key >> CPU_BITS }
    }

    /// Returns the CPU that has the least clock. The result is meaningless if that clock is
    /// [`NEVER`].
    #[inline]
    pub(crate) fn cpu(&self) -> usize {
        ((self.keys[1].get() & ((1 << CPU_BITS) - 1)) ^ self.tie.get()) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Random;

    #[test]
    fn the_root_is_the_least_clock_after_any_changes() {
        let random = Random::new(7, 0);
        for cpus in [1, 2, 3, 80, 1024] {
            let tree = Tree::new(cpus);
            let mut plain = vec![NEVER; cpus];
            for _ in 0..2000 {
                let cpu = random.below(cpus as u64) as usize;
                let time = if random.below(4) == 0 { NEVER } else { random.below(1000) };
                tree.set(cpu, time);
                plain[cpu] = time;
                let (who, when) = plain.iter().enumerate().min_by_key(|(_, time)| **time).unwrap();
                assert_eq!(tree.time(), *when, "seed 7, {cpus} CPUs");
                assert!(*when == NEVER || tree.cpu() == who, "the lower CPU goes first");
                assert_eq!(tree.time_of(cpu), time);
            }
        }
    }
}
