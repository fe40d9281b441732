//! The memory of a key's value: a large filter, or a small one as bytes, in one allocation and
//! without any number that others determine. The value's lowest bit says which.

use std::cell::OnceCell;
use std::ffi::c_void;
use std::mem::{ManuallyDrop, replace};
use std::ops::Deref;
use std::ptr::slice_from_raw_parts_mut;

use crate::allocator::{move_box, move_bytes};
use crate::blocked::MAX_FEW;
use crate::filter::Filter;
use crate::key::Key;
use crate::packed;

pub(crate) enum Slot {
    Large(Box<Filter>),
    Small(Box<[u8]>),
}

impl From<Filter> for Slot {
    fn from(filter: Filter) -> Self {
        match packed::pack(&filter) {
            Some(packed) => Slot::Small(packed),
            None => Slot::Large(Box::new(filter)),
        }
    }
}

/// Where the filter of a value is, or its packed bytes.
///
/// # Safety
///
/// `value` is from [`Slot::into_raw`], and was not freed since.
unsafe fn place(value: *mut c_void) -> Result<*mut Filter, *mut [u8]> {
    if value.addr().is_multiple_of(2) {
        return Ok(value.cast());
    }
    let start = value.cast::<u8>().wrapping_sub(1);
    // SAFETY: packed bytes begin with their length, which has two.
    let length = u16::from_le_bytes(unsafe { start.cast::<[u8; 2]>().read() });
    Err(slice_from_raw_parts_mut(start, length.into()))
}

impl Slot {
    /// The value of a key.
    pub(crate) fn into_raw(self) -> *mut c_void {
        match self {
            Slot::Large(filter) => Box::into_raw(filter).cast(),
            // The server allocates at multiples of 8.
            Slot::Small(packed) => Box::into_raw(packed).cast::<u8>().wrapping_add(1).cast(),
        }
    }

    /// # Safety
    ///
    /// `value` is from [`into_raw`](Self::into_raw), and nothing else uses it any more.
    pub(crate) unsafe fn from_raw(value: *mut c_void) -> Self {
        // SAFETY: the caller's promise. `into_raw` had a box of this type and length.
        unsafe {
            match place(value) {
                Ok(filter) => Slot::Large(Box::from_raw(filter)),
                Err(packed) => Slot::Small(Box::from_raw(packed)),
            }
        }
    }

    /// Has the allocator move small allocations.
    pub(crate) fn reallocate(&mut self) {
        match self {
            Slot::Large(filter) => {
                filter.reallocate();
                move_box(filter);
            }
            Slot::Small(packed) => move_bytes(packed),
        }
    }
}

/// A filter that is read. Packed bytes are unpacked for everything but lookups.
pub(crate) enum FilterRef<'a> {
    Large(&'a Filter),
    Small(&'a [u8], OnceCell<Filter>),
}

impl<'a> FilterRef<'a> {
    /// # Safety
    ///
    /// `value` is from [`Slot::into_raw`], and nothing changes or frees it within `'a`.
    pub(crate) unsafe fn new(value: *mut c_void) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            match place(value) {
                Ok(filter) => FilterRef::Large(&*filter),
                Err(packed) => FilterRef::Small(&*packed, OnceCell::new()),
            }
        }
    }

    /// Bytes of the value: those that the server's allocator took for a large filter, and those of
    /// a small one without the rest of its size class, as RedisBloom counts them.
    pub(crate) fn memory_bytes(&self) -> u64 {
        match self {
            FilterRef::Large(filter) => filter.memory_bytes(),
            FilterRef::Small(packed, _) => packed.len() as u64,
        }
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> Option<bool> {
        match self {
            FilterRef::Large(filter) => filter.contains(key),
            FilterRef::Small(packed, _) => Some(packed::contains(packed, key)),
        }
    }

    #[inline]
    pub(crate) fn contains_few<K: AsRef<[u8]>>(&self, keys: &[K], hit: impl FnMut(bool)) -> bool {
        match self {
            FilterRef::Large(filter) => filter.contains_few(keys, hit),
            FilterRef::Small(packed, _) if keys.len() <= MAX_FEW => {
                keys.iter().map(|key| packed::contains(packed, key.as_ref())).for_each(hit);
                true
            }
            FilterRef::Small(..) => false,
        }
    }
}

impl Deref for FilterRef<'_> {
    type Target = Filter;

    #[inline]
    fn deref(&self) -> &Filter {
        match self {
            FilterRef::Large(filter) => filter,
            FilterRef::Small(packed, filter) => filter.get_or_init(|| packed::unpack(packed)),
        }
    }
}

/// A filter that is changed, and packed afterwards if it is small.
pub(crate) struct FilterMut<'a> {
    key: &'a mut Key,
    /// The key's value.
    slot: ManuallyDrop<Slot>,
}

impl<'a> FilterMut<'a> {
    /// # Safety
    ///
    /// `value` is the key's value, from [`Slot::into_raw`].
    pub(crate) unsafe fn new(key: &'a mut Key, value: *mut c_void) -> Self {
        // SAFETY: the caller's promise; only the holder of the key uses its value.
        FilterMut { key, slot: ManuallyDrop::new(unsafe { Slot::from_raw(value) }) }
    }

    /// Adds a key and returns whether it is new, or returns `None` if there is no quick way.
    #[inline]
    pub(crate) fn add_one(&mut self, key: &[u8]) -> Option<bool> {
        match &mut *self.slot {
            Slot::Large(filter) => filter.add_one(key),
            Slot::Small(packed) => packed::add_one(packed, key),
        }
    }

    pub(crate) fn slot(&mut self) -> &mut Slot {
        &mut self.slot
    }

    /// Adds the first keys to packed bytes, and returns for each whether it is new.
    pub(crate) fn add_packed<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Vec<bool> {
        match &mut *self.slot {
            Slot::Large(_) => Vec::new(),
            Slot::Small(packed) => {
                let added = |key: &K| packed::add_one(packed, key.as_ref());
                keys.iter().map_while(added).collect()
            }
        }
    }

    /// The filter, unpacked.
    pub(crate) fn filter(&mut self) -> &mut Filter {
        if let Slot::Small(packed) = &*self.slot {
            self.put(Slot::Large(Box::new(packed::unpack(packed))));
        }
        match &mut *self.slot {
            Slot::Large(filter) => filter,
            Slot::Small(_) => unreachable!("just replaced"),
        }
    }

    /// Replaces the value of the key, and frees the former one.
    fn put(&mut self, slot: Slot) {
        let value = slot.into_raw();
        self.key.replace_value(value);
        // SAFETY: the key's value, which only the holder of the key uses.
        let slot = unsafe { Slot::from_raw(value) };
        drop(replace(&mut *self.slot, slot));
    }
}

impl Drop for FilterMut<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Slot::Large(filter) = &*self.slot
            && let Some(packed) = packed::pack(filter)
        {
            self.put(Slot::Small(packed));
        }
    }
}
