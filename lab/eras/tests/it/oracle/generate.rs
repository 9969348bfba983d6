//! Random operations, few names, so that they meet.

use crate::oracle::driver::{Op, PROCESSES};
use random::Random;

/// Draws operations; the seed is the test's.
pub(crate) struct Generator(Random);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed, 0))
    }

    fn below(&self, bound: usize) -> usize {
        self.0.index(bound)
    }

    pub(crate) fn ops(&self, count: usize) -> Vec<(usize, Op)> {
        (0..count).map(|_| (self.below(PROCESSES), self.op())).collect()
    }

    fn op(&self) -> Op {
        let slot = self.below(4);
        match self.below(32) {
            0..5 => Op::Create(self.path(), slot),
            5..9 => Op::MakeDirectory(self.path()),
            9..13 => Op::Unlink(self.path()),
            13..18 => Op::Rename(self.path(), self.path()),
            18..21 => Op::Stat(self.path()),
            21 => Op::Open(self.path(), slot),
            22 => Op::Close(slot),
            23 => Op::List(self.path()),
            24 => Op::ChangeDirectory(self.path()),
            25 | 26 => Op::ReversePath(slot),
            27 => Op::HoldParent(slot),
            28 => Op::Status(self.path()),
            29 => Op::Read(slot),
            30 => Op::Write(slot),
            _ => Op::Stat("/".into()),
        }
    }

    fn path(&self) -> String {
        let long = |len: usize| "long-".repeat(len.div_ceil(5))[..len].to_owned();
        let mut path = String::from(if self.below(2) == 0 { "/" } else { "" });
        for index in 0..1 + self.below(3) {
            if index > 0 {
                path += if self.below(16) == 0 { "//" } else { "/" };
            }
            path += &match self.below(24) {
                0..9 => "a".into(),
                9..15 => "b".into(),
                15..18 => "c".into(),
                18 => long(32),
                19 => long(33),
                20 => long(255),
                21 => ".".into(),
                22 | 23 => "..".into(),
                _ => String::new(),
            };
        }
        if self.below(16) == 0 {
            path.push('/');
        }
        path
    }
}
