//! Sets of flags, by Linux's numbers: what all types of them can do.

/// Gives a type that wraps its bits the operations of a set.
macro_rules! flag_set {
    ($name:ident) => {
        impl $name {
            /// Linux's numbers of them.
            #[must_use]
            #[inline(always)]
            pub const fn bits(self) -> u32 {
                self.0
            }

            /// Those of either.
            #[must_use]
            #[inline(always)]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Whether all of `other` are here.
            #[must_use]
            #[inline(always)]
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }
    };
}

pub(crate) use flag_set;
