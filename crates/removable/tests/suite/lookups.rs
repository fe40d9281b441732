//! Every lookup of the trait finds inserted keys.

use blocked_bloom::{FilterOptions, KeyHash};
use blocked_bloom_removable::{RemovableFilter, RemovableOptions};

use crate::common::kernels;
use crate::found::{self, Hashes};

#[test]
fn finds_every_inserted_key() {
    for seed in [0, 7] {
        let store = FilterOptions::default().with_key_hash(KeyHash::Xxh3 { seed });
        let options = RemovableOptions::for_filters(&store, 1_400);
        let mut filter = options.empty_filter().unwrap();
        filter.insert_batch(&found::keys()[..300]).unwrap();
        for key in &found::keys()[300..] {
            filter.insert(key).unwrap();
        }
        let integers = found::integers().into_iter().map(u64::to_le_bytes);
        filter.insert_batch(&integers.collect::<Vec<_>>()).unwrap();
        found::check("view", &filter.view(), Hashes::AsKeys);
        let opened = RemovableFilter::from_bytes_any_hash(filter.to_bytes()).unwrap();
        found::check("opened", &opened, Hashes::AsKeys);
        for kernel in kernels() {
            found::check("owned", &filter.clone().with_kernel(kernel), Hashes::AsKeys);
        }
        found::check("handed over", filter.into_writer().reader(), Hashes::AsKeys);

        let mut writer = options.empty_filter().unwrap().into_writer();
        for key in found::sorted() {
            writer.insert(key).unwrap();
        }
        found::check("reader", writer.reader(), Hashes::AsKeys);
    }
}
