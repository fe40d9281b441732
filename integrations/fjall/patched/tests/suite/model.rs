//! The tree and a `BTreeMap`: random writes, deletes, flushes and compactions, and reopenings that
//! change the policy, pinning and partitioning of the filters.

use std::collections::BTreeMap;

use lsm_tree::{AbstractTree, AnyTree};
use proptest::prelude::*;

use crate::common::{PLACES, POLICIES, Place, get, open};

/// A filter partition of ten bits per key has 3,277 keys.
const KEYS: u16 = 12_000;

#[derive(Clone, Debug)]
enum Step {
    /// Writes `count` numbers from `start` on, each `stride` after the previous one.
    Put {
        start: u16,
        stride: u16,
        count: u16,
        value: u32,
    },
    Delete(u16),
    Flush,
    Compact,
    Reopen {
        policy: usize,
        pinned: bool,
        partitioned: bool,
    },
    Get(Vec<u16>),
}

fn step() -> impl Strategy<Value = Step> {
    let counts = || prop_oneof![1..50_u16, 1..6_000_u16];
    prop_oneof![
        6 => (0..KEYS, 1..5_u16, counts(), any::<u32>()).prop_map(
            |(start, stride, count, value)| Step::Put { start, stride, count, value }
        ),
        4 => (0..KEYS).prop_map(Step::Delete),
        4 => Just(Step::Flush),
        1 => Just(Step::Compact),
        2 => (0..POLICIES.len(), any::<bool>(), any::<bool>()).prop_map(
            |(policy, pinned, partitioned)| Step::Reopen { policy, pinned, partitioned }
        ),
        6 => proptest::collection::vec(0..KEYS, 1..300).prop_map(Step::Get),
    ]
}

fn check(tree: &AnyTree, model: &BTreeMap<u16, u32>, numbers: &[u16]) {
    let expected = numbers.iter().map(|i| model.get(i).map(|value| value.to_be_bytes().to_vec()));
    let keys: Vec<_> = numbers.iter().map(|i| i.to_be_bytes()).collect();
    assert_eq!(get(tree, &keys), expected.collect::<Vec<_>>());
}

/// A tree cannot change whether it stores values in separate files.
fn run(blobs: bool, steps: Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let mut model = BTreeMap::new();
    let mut tree = open(folder.path(), POLICIES[0], Place { blobs, ..PLACES[0] });
    let mut seqno = 0;
    for step in steps {
        seqno += 1;
        match step {
            Step::Put { start, stride, count, value } => {
                for i in (start..KEYS).step_by(stride.into()).take(count.into()) {
                    tree.insert(i.to_be_bytes(), value.to_be_bytes(), seqno);
                    model.insert(i, value);
                }
            }
            Step::Delete(i) => {
                tree.remove(i.to_be_bytes(), seqno);
                model.remove(&i);
            }
            Step::Flush => tree.flush_active_memtable(0).unwrap(),
            Step::Compact => tree.major_compact(64_000_000, 0).unwrap(),
            Step::Reopen { policy, pinned, partitioned } => {
                // The memtable is not in a journal.
                tree.flush_active_memtable(0).unwrap();
                drop(tree);
                let place = Place { pinned, partitioned, blobs };
                tree = open(folder.path(), POLICIES[policy], place);
            }
            Step::Get(numbers) => check(&tree, &model, &numbers),
        }
    }
    tree.flush_active_memtable(0).unwrap();
    check(&tree, &model, &(0..KEYS).collect::<Vec<_>>());
    check(&tree, &model, &[]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_those_of_a_map(
        blobs in any::<bool>(),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        run(blobs, steps);
    }
}
