//! The structures of Arrow's C data interface and their release.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct ArrowSchema {
    pub(crate) format: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) metadata: *const c_char,
    pub(crate) flags: i64,
    pub(crate) n_children: i64,
    pub(crate) children: *mut *mut ArrowSchema,
    pub(crate) dictionary: *mut ArrowSchema,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(crate) private_data: *mut c_void,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct ArrowArray {
    pub(crate) length: i64,
    pub(crate) null_count: i64,
    pub(crate) offset: i64,
    pub(crate) n_buffers: i64,
    pub(crate) n_children: i64,
    pub(crate) buffers: *const *const c_void,
    pub(crate) children: *mut *mut ArrowArray,
    pub(crate) dictionary: *mut ArrowArray,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(crate) private_data: *mut c_void,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

impl ArrowSchema {
    pub(crate) const RELEASED: Self = ArrowSchema {
        format: ptr::null(),
        name: ptr::null(),
        metadata: ptr::null(),
        flags: 0,
        n_children: 0,
        children: ptr::null_mut(),
        dictionary: ptr::null_mut(),
        release: None,
        private_data: ptr::null_mut(),
    };
}

/// Returns the bytes after a four-byte length, and a pointer past them.
///
/// # Safety
///
/// Four bytes are allocated at `at`, then as many more as they say unless they are a negative
/// number. The bytes do not change while the result is used.
unsafe fn sized<'a>(at: *const u8) -> PyResult<(&'a [u8], *const u8)> {
    // SAFETY: the caller promises four bytes at `at`; an array of bytes needs no alignment.
    let len = i32::from_ne_bytes(unsafe { at.cast::<[u8; 4]>().read() });
    let len = usize::try_from(len)
        .map_err(|_| PyValueError::new_err(format!("Arrow metadata of the length {len}")))?;
    let start = at.wrapping_add(4);
    // SAFETY: the caller promises `len` bytes after the length, unchanged during the borrow.
    Ok((unsafe { std::slice::from_raw_parts(start, len) }, start.wrapping_add(len)))
}

impl ArrowSchema {
    /// Returns the extension type named in the metadata.
    pub(crate) fn extension(&self) -> PyResult<Option<Cow<'_, str>>> {
        let mut at = self.metadata.cast::<u8>();
        if at.is_null() {
            return Ok(None);
        }
        // SAFETY: metadata begins with the number of its pairs, four bytes of any alignment.
        let pairs = i32::from_ne_bytes(unsafe { at.cast::<[u8; 4]>().read() });
        at = at.wrapping_add(4);
        for _ in 0..pairs {
            // SAFETY: the pairs of a length-prefixed key and a length-prefixed value follow one
            // another. They live as long as the schema and do not change.
            let (key, value) = unsafe { sized(at) }?;
            // SAFETY: the value follows its key and lives as long as the schema.
            let (value, next) = unsafe { sized(value) }?;
            if key == b"ARROW:extension:name" {
                return Ok(Some(String::from_utf8_lossy(value)));
            }
            at = next;
        }
        Ok(None)
    }
}

impl ArrowArray {
    pub(crate) const RELEASED: Self = ArrowArray {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: ptr::null(),
        children: ptr::null_mut(),
        dictionary: ptr::null_mut(),
        release: None,
        private_data: ptr::null_mut(),
    };
}

impl ArrowArrayStream {
    const RELEASED: Self = ArrowArrayStream {
        get_schema: None,
        get_next: None,
        get_last_error: None,
        release: None,
        private_data: ptr::null_mut(),
    };
}

/// Adds a method that returns the structure in the field `dictionary`.
macro_rules! with_dictionary {
    ($structure:ident) => {
        impl $structure {
            /// Returns the type of the dictionary's values, or the values, for an array of indices.
            pub(crate) fn dictionary(&self) -> PyResult<Option<&Self>> {
                let Some(dictionary) = NonNull::new(self.dictionary) else { return Ok(None) };
                if !dictionary.is_aligned() {
                    return Err(PyValueError::new_err(
                        "an Arrow dictionary at an address that is not aligned",
                    ));
                }
                // SAFETY: not null, and aligned. By the interface, a structure filled in by a
                // producer has here another one of the same type, which belongs to it: it exists
                // and does not change until this one is released. Only dropping the owner releases
                // it, which cannot happen while `self` is borrowed. Structures made here have null.
                Ok(Some(unsafe { dictionary.as_ref() }))
            }
        }
    };
}

with_dictionary!(ArrowSchema);
with_dictionary!(ArrowArray);

/// Defines an owner of a C structure, which is moved into it and released when the owner is
/// dropped.
macro_rules! owned {
    ($(#[$doc:meta])* $name:ident, $structure:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name(pub(crate) $structure);

        impl $name {
            /// Moves the structure out of a capsule and leaves a released one in it, as the
            /// interface requires.
            pub(crate) fn take(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<Self> {
                let pointer: NonNull<$structure> = pointer(capsule, name)?;
                // SAFETY: a capsule of this name has such a structure, which has no other user
                // while the interpreter is attached.
                let taken = unsafe { pointer.replace($structure::RELEASED) };
                match taken.release {
                    Some(_) => Ok($name(taken)),
                    None => {
                        let text = format!("a capsule {name:?} that was used before");
                        Err(PyValueError::new_err(text))
                    }
                }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.0.release {
                    // SAFETY: the producer's function for its own structure, which is not used
                    // afterwards. It is called once: it was not null.
                    unsafe { release(&mut self.0) }
                }
            }
        }
    };
}

owned!(
    /// An array from a producer.
    OwnedArray, ArrowArray
);
owned!(
    /// The type of an array.
    OwnedSchema, ArrowSchema
);
owned!(
    /// A stream of arrays of one type.
    OwnedStream, ArrowArrayStream
);

// SAFETY: the interface allows any thread to use and release an array, and nothing here changes it.
unsafe impl Send for OwnedArray {}
// SAFETY: nothing here changes the array, so threads may read it at the same time.
unsafe impl Sync for OwnedArray {}

fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<T>> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?.cast::<T>();
    if pointer.is_aligned() {
        Ok(pointer)
    } else {
        Err(PyValueError::new_err(format!("a capsule {name:?} of an address that is not aligned")))
    }
}

impl OwnedStream {
    fn failed(&mut self) -> PyErr {
        let text = self.0.get_last_error.map(|last| {
            // SAFETY: the producer's function for its own stream, which was not released.
            unsafe { last(&mut self.0) }
        });
        let text = text.filter(|text| !text.is_null()).map(|text| {
            // SAFETY: a string that lives until the next call on the stream.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        });
        PyValueError::new_err(format!("the Arrow stream failed: {}", text.unwrap_or_default()))
    }

    pub(crate) fn schema(&mut self) -> PyResult<OwnedSchema> {
        let mut schema = OwnedSchema(ArrowSchema::RELEASED);
        // SAFETY: the producer's function for its own stream, which was not released.
        match self.0.get_schema.map(|get| unsafe { get(&mut self.0, &mut schema.0) }) {
            Some(0) if schema.0.release.is_some() => Ok(schema),
            _ => Err(self.failed()),
        }
    }

    pub(crate) fn next(&mut self) -> PyResult<Option<OwnedArray>> {
        let mut array = OwnedArray(ArrowArray::RELEASED);
        // SAFETY: the producer's function for its own stream, which was not released.
        match self.0.get_next.map(|get| unsafe { get(&mut self.0, &mut array.0) }) {
            Some(0) => Ok(array.0.release.is_some().then_some(array)),
            _ => Err(self.failed()),
        }
    }
}
