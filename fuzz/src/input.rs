//! Bytes read as decisions. When they are used up the answers are zeros, so every prefix means something.

/// See the [module](self).
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Creates an input whose decisions come from `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns whether all bytes of the input are used up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next byte of the input. Returns 0 when the input is used up.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Takes a byte of the input and returns the byte modulo `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// Takes two bytes of the input and returns a number, of which the first byte is the low one.
    pub fn word(&mut self) -> u32 {
        u32::from(self.byte()) | u32::from(self.byte()) << 8
    }

    /// Takes a byte of the input and returns the value in `from` that the byte chooses.
    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }

    /// Makes the attribute of an ACL. The next byte of the input chooses whether the attribute has
    /// a right form and an entry for `user`, or is a few bytes of the input.
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

    /// Takes the next `n` bytes of the input, or all remaining bytes if there are fewer.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes all remaining bytes of the input.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }
}
