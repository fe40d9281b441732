//! Unit tests of `src/filter/atomic.rs`, which includes this file.

use super::{Additions, AtomicUsize, Line, Relaxed};

#[test]
fn additions_saturate() {
    let additions = Additions(core::array::from_fn(|_| Line(AtomicUsize::new(usize::MAX - 1))));
    (0..3).for_each(|_| additions.add(1));
    assert!(additions.0.iter().all(|Line(count)| count.load(Relaxed) >= usize::MAX - 1));
    assert!(additions.0.iter().any(|Line(count)| count.load(Relaxed) == usize::MAX));
    assert!(additions.sum() >= usize::MAX as u64);
}
