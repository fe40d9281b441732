//! Warnings in the server's log. Texts go to the server as data, never as a format of `printf`:
//! keys and arguments may contain `%` and zero bytes.

use std::ffi::CString;
use std::ptr::null_mut;

use redis_module::raw;

/// Most bytes of a key or argument in a message. The server cuts lines at 1,024 bytes.
const LONGEST: usize = 200;

/// Writes a warning to the server's log.
pub(crate) fn warn(text: &str) {
    let text = CString::new(text.replace('\0', "\\0")).unwrap_or_default();
    // SAFETY: the server writes the pointer before it calls the module. All three strings end with
    // 0, and the format takes one string.
    unsafe {
        if let Some(log) = raw::RedisModule_Log {
            log(null_mut(), c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr());
        }
    }
}

/// A key or argument for a message: printable ASCII, everything else escaped, long ones cut.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(LONGEST)];
    let rest = if cut.len() < bytes.len() { "..." } else { "" };
    format!("{}{rest}", cut.escape_ascii())
}
