//! What all filters of the server have together, and a section of `INFO` with it, by valkey-bloom's
//! names.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use redis_module::{Context, raw};

use crate::allocator::{MOVED, UNMOVED};
use crate::filter::Filter;

/// What one filter has, or all together.
pub(crate) struct Facts<T = u64> {
    links: T,
    items: T,
    capacity: T,
    bytes: T,
}

static OBJECTS: AtomicU64 = AtomicU64::new(0);
static ALL: Facts<AtomicU64> = Facts {
    links: AtomicU64::new(0),
    items: AtomicU64::new(0),
    capacity: AtomicU64::new(0),
    bytes: AtomicU64::new(0),
};

impl Facts {
    pub(crate) fn from_filter(filter: &Filter) -> Self {
        Facts {
            links: filter.links() as u64,
            items: filter.keys(),
            capacity: filter.capacity(),
            bytes: filter.size(),
        }
    }

    fn update(&self, change: impl Fn(&AtomicU64, u64)) {
        change(&ALL.links, self.links);
        change(&ALL.items, self.items);
        change(&ALL.capacity, self.capacity);
        change(&ALL.bytes, self.bytes);
    }

    fn add(&self) {
        self.update(|all, this| _ = all.fetch_add(this, Relaxed));
    }

    fn take(&self) {
        self.update(|all, this| _ = all.fetch_sub(this, Relaxed));
    }
}

/// A filter was made or loaded.
pub(crate) fn filter_created(facts: &Facts) {
    OBJECTS.fetch_add(1, Relaxed);
    facts.add();
}

/// A filter is freed, maybe by another thread.
pub(crate) fn filter_freed(facts: &Facts) {
    OBJECTS.fetch_sub(1, Relaxed);
    facts.take();
}

pub(crate) fn filter_changed(before: &Facts, after: &Facts) {
    before.take();
    after.add();
}

/// An item was added to a link that there was.
#[inline]
pub(crate) fn item_added() {
    ALL.items.fetch_add(1, Relaxed);
}

/// Has the server list the section. False if it does not take it.
pub(crate) fn register(context: &Context) -> bool {
    // SAFETY: called while the module is loaded, when the server has written its pointers.
    unsafe {
        let Some(register) = raw::RedisModule_RegisterInfoFunc else { return true };
        register(context.ctx, Some(inform)) == raw::REDISMODULE_OK as c_int
    }
}

unsafe extern "C" fn inform(info: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    let sections: [(&CStr, &[(&CStr, &AtomicU64)]); 2] = [
        (
            c"bloom_core_metrics",
            &[
                (c"bloom_total_memory_bytes", &ALL.bytes),
                (c"bloom_num_objects", &OBJECTS),
                (c"bloom_num_filters_across_objects", &ALL.links),
                (c"bloom_num_items_across_objects", &ALL.items),
                (c"bloom_capacity_across_objects", &ALL.capacity),
            ],
        ),
        (
            c"bloom_defrag_metrics",
            &[(c"bloom_defrag_hits", &MOVED), (c"bloom_defrag_misses", &UNMOVED)],
        ),
    ];
    // SAFETY: the pointers are set before any callback; `info` is the callback's argument, and
    // the server copies names, which end with 0.
    unsafe {
        let (Some(section), Some(field)) =
            (raw::RedisModule_InfoAddSection, raw::RedisModule_InfoAddFieldULongLong)
        else {
            return;
        };
        for (name, fields) in sections {
            // A client may want other sections.
            if section(info, name.as_ptr()) == raw::REDISMODULE_OK as c_int {
                for (name, number) in fields {
                    field(info, name.as_ptr(), number.load(Relaxed));
                }
            }
        }
    }
}
