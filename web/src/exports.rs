//! What JavaScript calls. No imports, and no `unsafe` block.
//!
//! [`input`] returns a buffer, which JavaScript fills; the other calls take its contents, mostly
//! the fields of a form ([`Input`]). Calls that return a pointer return that of a text, JSON,
//! whose length is [`answer_len`]; it stays until the next such call. After a call that traps,
//! because memory ran out, the page makes another instance.
#![expect(unsafe_code, reason = "the name of an export is an unsafe attribute")]

use std::cell::RefCell;

use blocked_bloom_inspect::Value;

use crate::stored::{self, File};
use crate::{Fault, Input, keys, levels, sizes};

#[derive(Default)]
struct State {
    input: Vec<u8>,
    answer: String,
    file: File,
}

thread_local!(static STATE: RefCell<State> = RefCell::new(State::default()));

/// A buffer of this many bytes for the next call, zeroed. Null if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn input(len: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.input = Vec::new();
        if state.input.try_reserve_exact(len).is_err() {
            return std::ptr::null_mut();
        }
        state.input.resize(len, 0);
        state.input.as_mut_ptr()
    })
}

/// The length of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_len() -> usize {
    STATE.with_borrow(|state| state.answer.len())
}

/// [`sizes::table`] of the input.
#[unsafe(no_mangle)]
pub extern "C" fn size_table() -> *const u8 {
    answer(sizes::table)
}

/// [`sizes::curves`] of the input.
#[unsafe(no_mangle)]
pub extern "C" fn size_curves() -> *const u8 {
    answer(sizes::curves)
}

/// A budget shared among levels: `levels::plan` of the input.
#[unsafe(no_mangle)]
pub extern "C" fn plan_levels() -> *const u8 {
    answer(levels::plan)
}

/// The formats that a file may be read as.
#[unsafe(no_mangle)]
pub extern "C" fn formats() -> *const u8 {
    answer(stored::formats)
}

/// Starts with a file of this many bytes, whose name is the input.
#[unsafe(no_mangle)]
pub extern "C" fn file_begin(length: f64) {
    STATE.with_borrow_mut(|state| {
        let name = std::mem::take(&mut state.input);
        state.file = File::new(&name, length as u64);
    });
}

/// Starts with a filter made here.
#[unsafe(no_mangle)]
pub extern "C" fn file_example() {
    STATE.with_borrow_mut(|state| state.file = File::example());
}

/// The input is the part of the file that begins at this offset.
#[unsafe(no_mangle)]
pub extern "C" fn file_insert(offset: f64) {
    STATE.with_borrow_mut(|state| {
        let bytes = std::mem::take(&mut state.input);
        state.file.insert(offset as u64, bytes);
    });
}

/// Opens and describes the file, or lists the ranges that are missing: `File::open` of the input.
#[unsafe(no_mangle)]
pub extern "C" fn file_open() -> *const u8 {
    answer_of_file(|file, input| file.open(&Input::new(input)))
}

/// Ranges that lookups in a column need.
#[unsafe(no_mangle)]
pub extern "C" fn file_missing() -> *const u8 {
    answer_of_file(|file, input| file.missing(&Input::new(input)))
}

/// How full the blocks of a part are.
#[unsafe(no_mangle)]
pub extern "C" fn file_loads() -> *const u8 {
    answer_of_file(|file, input| file.loads(&Input::new(input)))
}

/// Sets the options of the next lookups: `File::choose` of the input.
#[unsafe(no_mangle)]
pub extern "C" fn file_choose() -> *const u8 {
    answer_of_file(|file, input| file.choose(&Input::new(input)))
}

/// Looks up the lines of the input.
#[unsafe(no_mangle)]
pub extern "C" fn file_lookup() -> *const u8 {
    answer_of_file(|file, input| file.lookup(input))
}

/// An error if the input is not the start of a file of keys.
#[unsafe(no_mangle)]
pub extern "C" fn keys_begin() -> *const u8 {
    answer_of_file(|_, input| keys::check_start(input).map(|()| Value::Null))
}

/// Where the line of the input is looked up.
#[unsafe(no_mangle)]
pub extern "C" fn file_probes() -> *const u8 {
    answer_of_file(|file, input| file.probes(input))
}

/// The answer to the input; an error is `{"error": its text, "field": the input at fault}`.
fn answer(function: fn(&Input<'_>) -> Result<Value, Fault>) -> *const u8 {
    answer_of_file(|_, input| function(&Input::new(input)))
}

fn answer_of_file(function: impl Fn(&mut File, &[u8]) -> Result<Value, Fault>) -> *const u8 {
    STATE.with_borrow_mut(|state| {
        let input = std::mem::take(&mut state.input);
        let json = function(&mut state.file, &input);
        state.answer = json.unwrap_or_else(|fault| fault.json()).to_string();
        state.answer.as_ptr()
    })
}
