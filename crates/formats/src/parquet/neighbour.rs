//! Which filters of a file overlap, and which comes next.
//!
//! If two filters overlap, nothing says which one is damaged, so neither is believed. A filter
//! whose length is not known claims its first byte; that it reaches into the next one shows when
//! its header is read, and is an error of that filter alone. To find it before the next filter is
//! looked up, the headers of all filters before that would have to be read.

/// What follows a filter in its file, or overlaps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// The footer.
    #[default]
    None,
    /// The filter that begins at this offset, the next one.
    Next(i64),
    /// It has bytes in common with the filter at this offset.
    Overlapping(i64),
}

/// The bytes that a column chunk says are its filter's.
pub(super) struct Claim<'a> {
    /// At least 0.
    pub(super) offset: i64,
    pub(super) length: Option<i32>,
    /// Where the result is written.
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
    // Of the claims before, the one that reaches farthest: if any reaches into the next, it does.
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
