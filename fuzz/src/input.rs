//! Bytes read as decisions. When they are used up the answers are zeros, so every prefix means something.

/// See the [module](self).
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Decisions out of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns whether any input is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Takes a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// Two bytes.
    pub fn word(&mut self) -> u32 {
        u32::from(self.byte()) | u32::from(self.byte()) << 8
    }

    /// Takes one of these values.
    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }

    /// Makes the attribute of an ACL with one named user that is mostly right, or a few bytes.
    pub fn acl_attribute(&mut self, user: u32) -> Vec<u8> {
        if self.byte() & 1 == 0 {
            return self.take(8).to_vec();
        }
        let mut value = 2u32.to_le_bytes().to_vec();
        for (tag, id) in [(1u16, u32::MAX), (2, user), (4, u32::MAX), (16, u32::MAX), (32, u32::MAX)] {
            value.extend_from_slice(&tag.to_le_bytes());
            value.extend_from_slice(&u16::from(self.byte() & 7).to_le_bytes());
            value.extend_from_slice(&id.to_le_bytes());
        }
        value
    }

    /// At most `n` bytes.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes the rest of the input.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }
}
