//! The engine against a `BTreeMap`: random writes, deletes, flushes, compactions, reopenings under
//! changing policies, and after each the same answers.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{flush, keys_of, open, ours, theirs};
use proptest::prelude::*;
use slatedb::object_store::ObjectStore;
use slatedb::object_store::local::LocalFileSystem;
use slatedb::object_store::memory::InMemory;
use slatedb::{Db, FilterPolicy};

/// Short keys of few letters, so that prefixes are shared and keys written again.
fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b'/')], 1..6)
}

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, u8),
    Delete(Vec<u8>),
    Flush,
    /// Closes the database, and opens it with some of the policies, and a compactor or none.
    Reopen {
        policies: u8,
        compact: bool,
    },
    Get(Vec<u8>),
    Scan(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        4 => key().prop_map(Step::Delete),
        3 => Just(Step::Flush),
        1 => (any::<u8>(), any::<bool>())
            .prop_map(|(policies, compact)| Step::Reopen { policies, compact }),
        8 => key().prop_map(Step::Get),
        4 => key().prop_map(Step::Scan),
    ]
}

/// One policy or two of four.
fn chosen(number: u8) -> Vec<Arc<dyn FilterPolicy>> {
    let [whole, both, only] = ours().map(|policy| Arc::new(policy) as Arc<dyn FilterPolicy>);
    let all = [both, whole, only, theirs()];
    let (first, second) = (usize::from(number % 4), usize::from(number / 4 % 4));
    let mut policies = vec![all[first].clone()];
    if first != second {
        policies.push(all[second].clone());
    }
    policies
}

async fn check(db: &Db, model: &BTreeMap<Vec<u8>, u8>, start: &[u8]) {
    let found = keys_of(db.scan_prefix(start, ..).await.unwrap()).await;
    let expected: Vec<_> = model.keys().filter(|key| key.starts_with(start)).cloned().collect();
    assert_eq!(found, expected, "scan of {start:?}");
}

async fn run(store: Arc<dyn ObjectStore>, first: u8, steps: &[Step]) {
    let mut model = BTreeMap::new();
    let (mut db, _) = open(&store, chosen(first), false).await;
    for step in steps {
        match step {
            Step::Put(key, value) => {
                db.put(key, [*value]).await.unwrap();
                model.insert(key.clone(), *value);
            }
            Step::Delete(key) => {
                db.delete(key).await.unwrap();
                model.remove(key);
            }
            Step::Flush => flush(&db).await,
            Step::Reopen { policies, compact } => {
                db.close().await.unwrap();
                (db, _) = open(&store, chosen(*policies), *compact).await;
            }
            Step::Get(key) => {
                let found = db.get(key).await.unwrap();
                assert_eq!(found.as_deref(), model.get(key).map(std::slice::from_ref), "{key:?}");
            }
            Step::Scan(start) => check(&db, &model, start).await,
        }
    }
    flush(&db).await;
    db.close().await.unwrap();
    let (db, _) = open(&store, chosen(first), false).await;
    check(&db, &model, b"").await;
    for (key, value) in &model {
        assert_eq!(db.get(key).await.unwrap().as_deref(), Some(std::slice::from_ref(value)));
        check(&db, &model, key).await;
    }
    db.close().await.unwrap();
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn answers_in_memory_are_those_of_a_map(
        first in any::<u8>(),
        steps in proptest::collection::vec(step(), 0..150),
    ) {
        block_on(run(Arc::new(InMemory::new()), first, &steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn answers_from_files_are_those_of_a_map(
        first in any::<u8>(),
        steps in proptest::collection::vec(step(), 0..150),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let store = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
        block_on(run(Arc::new(store), first, &steps));
    }
}
