//! Unit tests of `src/rocksdb/ribbon.rs`, which includes this file.

use super::{BATCH, RibbonBlockBuilder};
use crate::rocksdb::RocksdbError;

fn builder(keys: impl IntoIterator<Item = u64>) -> RibbonBlockBuilder {
    let mut builder = RibbonBlockBuilder::new(20.0).unwrap();
    builder.extend(keys.into_iter().map(u64::to_le_bytes));
    builder
}

/// Keys of any batch, of the first too, that a block lacks are counted.
#[test]
fn missing_keys_are_counted_in_every_batch() {
    let keys = 3 * BATCH as u64;
    let all = builder(0..keys);
    assert_eq!(all.verify(&all.clone().finish().unwrap()), Ok(()));
    for batch in 0..3 {
        let lacking = batch * BATCH as u64..(batch + 1) * BATCH as u64;
        let block = builder((0..keys).filter(|key| !lacking.contains(key))).finish().unwrap();
        let error = all.verify(&block).unwrap_err();
        let RocksdbError::KeysMissing { missing, keys: found } = error else { panic!("{error}") };
        assert_eq!(found, keys);
        assert!((4_000..=BATCH as u64).contains(&missing), "{missing} of batch {batch}");
    }
}
