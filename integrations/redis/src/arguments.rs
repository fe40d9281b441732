//! Arguments of commands, as the server has them: nothing is allocated or counted for one, unlike
//! for a `RedisString`, which took a tenth of a command's time.

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;
use std::slice;

use redis_module::{Context, Status, raw};

use crate::key::Key;

/// An argument of the command that runs.
#[repr(transparent)]
pub(crate) struct Argument(NonNull<raw::RedisModuleString>);

/// Arguments of a command. The first is its name.
///
/// # Safety
///
/// The server passed these to a command that does not end within `'a`.
pub(crate) unsafe fn arguments<'a>(
    argv: *mut *mut raw::RedisModuleString,
    argc: i32,
) -> &'a [Argument] {
    match usize::try_from(argc) {
        Ok(count) if !argv.is_null() => {
            // SAFETY: the caller's promise: this many pointers, none of them null, which the server
            // keeps and does not change while the command runs.
            unsafe { slice::from_raw_parts(argv.cast(), count) }
        }
        _ => &[],
    }
}

impl Argument {
    pub(crate) fn as_slice(&self) -> &[u8] {
        let mut length = 0;
        let start = raw::string_ptr_len(self.0.as_ptr(), &raw mut length);
        let start = if start.is_null() { NonNull::dangling().as_ptr() } else { start.cast() };
        // SAFETY: this many bytes of the argument, which lives and does not change while the
        // command runs; of none, any pointer.
        unsafe { slice::from_raw_parts(start, length) }
    }

    pub(crate) fn integer(&self) -> Option<i64> {
        let mut number = 0;
        (raw::string_to_longlong(self.0.as_ptr(), &raw mut number) == Status::Ok).then_some(number)
    }

    pub(crate) fn float(&self) -> Option<f64> {
        let mut number = 0.0;
        (raw::string_to_double(self.0.as_ptr(), &raw mut number) == Status::Ok).then_some(number)
    }

    /// Whether it is this word, in capitals or not.
    pub(crate) fn equals(&self, word: &str) -> bool {
        self.as_slice().eq_ignore_ascii_case(word.as_bytes())
    }

    /// The key of this name, to be read.
    pub(crate) fn open(&self, context: &Context) -> Key {
        let key = raw::open_key(context.ctx, self.0.as_ptr(), raw::KeyMode::READ);
        // SAFETY: the context is the command's, and nothing else has the key.
        unsafe { Key::new(key) }
    }

    /// Tells clients that wait for events of the keyspace that this happened to the key.
    #[inline]
    pub(crate) fn notify(&self, context: &Context, event: &CStr) {
        // SAFETY: the pointer is set before the first command; the context is the command's, the
        // name its argument, and the event ends with 0.
        unsafe {
            if let Some(notify) = raw::RedisModule_NotifyKeyspaceEvent {
                let generic = raw::REDISMODULE_NOTIFY_GENERIC as c_int;
                notify(context.ctx, generic, event.as_ptr(), self.0.as_ptr());
            }
        }
    }

    /// The key of this name, to be changed.
    pub(crate) fn open_writable(&self, context: &Context) -> Key {
        let mode = raw::KeyMode::READ | raw::KeyMode::WRITE;
        // SAFETY: the context is the command's, and nothing else has the key.
        unsafe { Key::new(raw::open_key(context.ctx, self.0.as_ptr(), mode)) }
    }
}

impl AsRef<[u8]> for Argument {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}
