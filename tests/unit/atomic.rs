//! Unit tests of `src/filter/atomic.rs`, which includes this file.

use super::{Additions, Line, Relaxed};

#[test]
fn additions_saturate() {
    let nearly_full = || Additions(core::array::from_fn(|_| Line((usize::MAX - 1).into())));
    let (shared, alone) = (nearly_full(), nearly_full());
    for _ in 0..3 {
        shared.add::<true>(1);
        alone.add::<false>(1);
    }
    for additions in [shared, alone] {
        assert!(additions.0.iter().all(|Line(count)| count.load(Relaxed) >= usize::MAX - 1));
        assert!(additions.0.iter().any(|Line(count)| count.load(Relaxed) == usize::MAX));
        assert!(additions.sum() >= usize::MAX as u64);
    }
}
