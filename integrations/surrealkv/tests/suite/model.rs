//! The engine and a `BTreeMap`: random writes, deletes, flushes, compactions, and reopenings with
//! another policy and another size of partitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use blocked_bloom::Sizing;
use proptest::prelude::*;
use surrealkv::{FilterPolicy, RibbonFilter, Tree};

use crate::common::{compact, flush, open, ours, theirs};

/// Short keys of few letters, so that keys are written again.
fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0xff)], 1..6)
}

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, u8),
    Delete(Vec<u8>, bool),
    Flush,
    Compact,
    Reopen(u8, bool),
    Get(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        4 => (key(), any::<bool>()).prop_map(|(key, soft)| Step::Delete(key, soft)),
        3 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => (any::<u8>(), any::<bool>())
            .prop_map(|(policy, small)| Step::Reopen(policy, small)),
        12 => key().prop_map(Step::Get),
    ]
}

fn policy(number: u8) -> Option<Arc<dyn FilterPolicy>> {
    match number % 6 {
        0 => Some(theirs()),
        1 => Some(Arc::new(RibbonFilter::new(10))),
        2 => None,
        3 => Some(ours(Sizing::FalsePositiveRate(0.0001))),
        _ => Some(ours(Sizing::BitsPerKey(10.0))),
    }
}

fn check(tree: &Tree, model: &BTreeMap<Vec<u8>, u8>, key: &[u8]) {
    let found = tree.begin().unwrap().get(key).unwrap();
    assert_eq!(found.as_deref(), model.get(key).map(std::slice::from_ref), "{key:?}");
}

async fn run(first: u8, steps: Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let mut model = BTreeMap::new();
    let mut tree = open(folder.path(), policy(first), 16_384);
    for step in steps {
        match step {
            Step::Put(key, value) => {
                let mut transaction = tree.begin().unwrap();
                transaction.set(&key[..], vec![value]).unwrap();
                transaction.commit().await.unwrap();
                model.insert(key, value);
            }
            Step::Delete(key, soft) => {
                let mut transaction = tree.begin().unwrap();
                let deleted = match soft {
                    true => transaction.soft_delete(&key[..]),
                    false => transaction.delete(&key[..]),
                };
                deleted.unwrap();
                transaction.commit().await.unwrap();
                model.remove(&key);
            }
            Step::Flush => flush(&tree),
            Step::Compact => compact(&tree),
            Step::Reopen(number, small) => {
                tree.close().await.unwrap();
                tree = open(folder.path(), policy(number), if small { 100 } else { 16_384 });
            }
            Step::Get(key) => check(&tree, &model, &key),
        }
    }
    flush(&tree);
    tree.close().await.unwrap();
    let tree = open(folder.path(), policy(4), 16_384);
    for key in model.keys() {
        check(&tree, &model, key);
    }
    tree.close().await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 25, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_those_of_a_map(
        first in any::<u8>(),
        steps in proptest::collection::vec(step(), 0..200),
    ) {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(run(first, steps));
    }
}
