//! The cell of a resident filter in the model checker, with crossbeam-epoch's own code on loom's
//! atomics. Compile the model separately:
//!
//! ```sh
//! export RUSTFLAGS="--cfg crossbeam_loom"
//! cargo test --release -p loom-model --target-dir target/loom resident
//! ```

#[path = "../../crates/resident/src/cell.rs"]
#[allow(dead_code, unreachable_pub, reason = "the library uses the rest")]
mod cell;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use cell::{EpochCell, FilterPin};
use loom::model::Builder;
use loom::sync::atomic;
use loom::thread::spawn;

/// Records its drop outside of the model, at the point of the execution at which it happens.
struct Value {
    number: usize,
    dropped: Arc<[AtomicBool; 2]>,
}

impl Drop for Value {
    fn drop(&mut self) {
        assert!(!self.dropped[self.number].swap(true, SeqCst), "dropped twice");
    }
}

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    // Epochs have many places at which threads can switch. Two switches that no thread waits for
    // find each planted bug.
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// Fails if a replaced value is dropped while a pin that loaded it exists.
#[test]
fn values_seen_by_a_pin_outlive_it() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    explore(|| {
        let dropped = Arc::new([const { AtomicBool::new(false) }; 2]);
        let cell = Arc::new(EpochCell::empty());
        let value = |number| Value { number, dropped: Arc::clone(&dropped) };
        cell.swap(Some(value(0)));
        let (reads, seen) = (Arc::clone(&cell), Arc::clone(&dropped));
        let reader = spawn(move || {
            let pin = FilterPin::new();
            if let Some(value) = reads.get(&pin) {
                let number = value.number;
                assert!(!seen[number].load(SeqCst));
                loom::thread::yield_now();
                assert!(!seen[number].load(SeqCst), "dropped before the pin");
            }
        });
        cell.swap(Some(value(1)));
        cell.swap(None);
        for _ in 0..3 {
            FilterPin::new().collect();
        }
        reader.join().unwrap();
        DROPPED.fetch_add(usize::from(dropped[0].load(SeqCst)), SeqCst);
    });
    // Otherwise nothing was tested.
    assert!(DROPPED.load(SeqCst) > 0, "no execution freed anything");
}

/// Fails if two threads that remove the same value both drop it.
#[test]
fn two_racing_replacements_drop_the_value_once() {
    explore(|| {
        let dropped = Arc::new([const { AtomicBool::new(false) }; 2]);
        let cell = Arc::new(EpochCell::empty());
        cell.swap(Some(Value { number: 0, dropped: Arc::clone(&dropped) }));
        let other = Arc::clone(&cell);
        let evicts = spawn(move || other.swap(None));
        cell.swap(Some(Value { number: 1, dropped: Arc::clone(&dropped) }));
        evicts.join().unwrap();
        drop(cell);
        for _ in 0..4 {
            FilterPin::new().collect();
        }
    });
}

/// Fails if a reader can load a value without the earlier writes to it, so that its memory is read
/// while it is written. If the writer's thread is already pinned, as by `FilterSlot::put`, the
/// cell's own pin has no fence, and the swap alone orders the two.
#[test]
fn a_reader_sees_what_was_written_before_the_value_was_put_in() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    for is_pinned in [false, true] {
        SEEN.store(0, SeqCst);
        explore(move || {
            let cell = Arc::new(EpochCell::<atomic::AtomicUsize>::empty());
            let reads = Arc::clone(&cell);
            let reader = spawn(move || {
                let pin = FilterPin::new();
                if let Some(value) = reads.get(&pin) {
                    // The load itself orders nothing.
                    assert_eq!(value.load(Relaxed), 7, "seen before it was written");
                    SEEN.fetch_add(1, SeqCst);
                }
            });
            let pin = is_pinned.then(FilterPin::new);
            let value = atomic::AtomicUsize::new(0);
            value.store(7, Relaxed);
            cell.swap(Some(value));
            drop(pin);
            reader.join().unwrap();
        });
        assert!(SEEN.load(SeqCst) > 0, "no execution read it");
    }
}
