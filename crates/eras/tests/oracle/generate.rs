//! Random operations, few names, so that they meet.

use crate::driver::PROCESSES;
use crate::model::Op;

/// A small generator; the seed is the test's (SplitMix64, Steele and others, OOPSLA 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((word ^ word >> 31) % bound as u64) as usize
    }

    pub(crate) fn ops(&mut self, count: usize) -> Vec<(usize, Op)> {
        (0..count).map(|_| (self.below(PROCESSES), self.op())).collect()
    }

    fn op(&mut self) -> Op {
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

    fn path(&mut self) -> String {
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
