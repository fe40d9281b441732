//! fjall with the patches: the policy is stored with a keyspace, and every kind of transaction
//! looks up many keys.

use fjall::config::BloomConstructionPolicy::{BitsPerKey, FalsePositiveRate};
use fjall::config::FilterPolicy;
use fjall::config::FilterPolicyEntry::BlockedBloom;
use fjall::{
    Database, KeyspaceCreateOptions, OptimisticTxDatabase, Readable, SingleWriterTxDatabase,
};

fn options() -> KeyspaceCreateOptions {
    let policies = [BlockedBloom(FalsePositiveRate(0.0001)), BlockedBloom(BitsPerKey(10.0))];
    KeyspaceCreateOptions::default().filter_policy(FilterPolicy::new(policies))
}

fn keys() -> Vec<[u8; 4]> {
    (0..10_000_u32).map(u32::to_be_bytes).collect()
}

fn expected() -> Vec<Option<fjall::UserValue>> {
    keys().iter().enumerate().map(|(i, key)| i.is_multiple_of(2).then(|| key[..].into())).collect()
}

#[test]
fn a_keyspace_keeps_its_policy_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let db = Database::builder(folder.path()).open().unwrap();
        // Options are used only when the keyspace is created.
        let created = || if round == 0 { options() } else { KeyspaceCreateOptions::default() };
        let keyspace = db.keyspace("default", created).unwrap();
        if round == 0 {
            for key in keys().iter().step_by(2) {
                keyspace.insert(key, key).unwrap();
            }
            keyspace.rotate_memtable_and_wait().unwrap();
        }
        let before = db.snapshot();
        if round == 1 {
            keyspace.major_compact().unwrap();
        }
        assert!(keyspace.multi_get(&keys()).unwrap() == expected(), "round {round}");
        assert!(before.multi_get(&keyspace, &keys()).unwrap() == expected(), "round {round}");
        for (key, expected) in keys().iter().zip(expected()).step_by(100) {
            assert_eq!(keyspace.get(key).unwrap(), expected);
        }
    }
}

#[test]
fn transactions_look_up_their_own_writes() {
    let folder = tempfile::tempdir().unwrap();
    let db = SingleWriterTxDatabase::builder(folder.path()).open().unwrap();
    let keyspace = db.keyspace("default", options).unwrap();
    keyspace.insert("a", "old").unwrap();
    let mut transaction = db.write_tx();
    transaction.insert(&keyspace, "b", "new");
    let found = transaction.multi_get(&keyspace, &["a", "b", "c"]).unwrap();
    assert_eq!(found, [Some("old".into()), Some("new".into()), None]);
}

/// A batch of reads conflicts with later writes like single reads.
#[test]
fn optimistic_transactions_track_the_keys_of_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let db = OptimisticTxDatabase::builder(folder.path()).open().unwrap();
    let keyspace = db.keyspace("default", options).unwrap();
    keyspace.insert("a", "old").unwrap();
    let mut transaction = db.write_tx().unwrap();
    transaction.multi_get(&keyspace, &["a", "b"]).unwrap();
    transaction.insert(&keyspace, "c", "new");
    keyspace.insert("b", "conflict").unwrap();
    assert!(transaction.commit().unwrap().is_err(), "a conflict");
}
