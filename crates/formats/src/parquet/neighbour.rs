//! Which filters of a file overlap, and which comes next.
//!
//! Nothing says which of two that overlap is the damaged one, so neither is believed. A filter
//! whose length is not known claims its first byte: that it reaches into the next shows when its
//! header is read, and makes it alone an error. To find out before the next is looked up would take
//! reading the headers of all filters in front.

/// What limits a filter that has an offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// The footer.
    #[default]
    None,
    /// The filter that begins at this offset, the next one.
    Next(i64),
    /// The bytes are also those of the filter at this offset.
    Overlapping(i64),
}

/// The bytes that a column chunk says are its filter's.
pub(super) struct Claim<'a> {
    /// At least 0.
    pub(super) offset: i64,
    pub(super) length: Option<i32>,
    /// The answer.
    pub(super) neighbour: &'a mut Neighbour,
}

impl Claim<'_> {
    /// A filter whose length is not known, or nonsense, has at least a byte.
    fn end(&self) -> i64 {
        self.offset.saturating_add(self.length.unwrap_or(1).max(1).into())
    }
}

/// Finds the neighbour of each. Cost: one sort.
pub(super) fn find(claims: &mut [Claim<'_>]) {
    claims.sort_unstable_by_key(|claim| claim.offset);
    // Of those before, the one that reaches farthest. If any before reaches into a claim, that one
    // does.
    let mut farthest = 0;
    for i in 1..claims.len() {
        let (before, offset) = (claims[farthest].offset, claims[i].offset);
        if let previous @ Neighbour::None = &mut *claims[i - 1].neighbour {
            *previous = Neighbour::Next(offset);
        }
        if claims[farthest].end() > offset {
            *claims[i].neighbour = Neighbour::Overlapping(before);
            *claims[farthest].neighbour = Neighbour::Overlapping(offset);
        }
        if claims[i].end() > claims[farthest].end() {
            farthest = i;
        }
    }
}
