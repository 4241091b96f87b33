//! Small sets of facts that a record keeps in one byte, a bit for each.
//!
//! What a bit means is said where its set is; here is only what all such sets can do.

/// Gives a set of bits in a `u8` what it can do.
macro_rules! bits {
    ($set:ident) => {
        impl $set {
            /// What either has.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Whether every bit of `other` is set.
            #[must_use]
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }
    };
}

pub(crate) use bits;
