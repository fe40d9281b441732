//! Keys of the server, and the filters that are their values.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use redis_module::key::verify_type;
use redis_module::{RedisError, raw};

use crate::counters::{self, Facts};
use crate::data_type::{ALL, type_of};
use crate::filter::Filter;
use crate::slot::{FilterMut, FilterRef, Slot};

/// An open key; null if it is open for reading and does not exist.
pub(crate) struct Key(*mut raw::RedisModuleKey);

impl Drop for Key {
    fn drop(&mut self) {
        raw::close_key(self.0);
    }
}

impl Key {
    /// # Safety
    ///
    /// The server has opened the key for the command that runs, and nothing else closes it.
    pub(crate) unsafe fn new(key: *mut raw::RedisModuleKey) -> Self {
        Key(key)
    }

    /// The value; null if there is no key.
    #[inline]
    fn value(&self) -> Result<*mut c_void, RedisError> {
        // A type that is not registered would be that of strings.
        let mut types = ALL.iter().filter(|known| !known.raw_type.borrow().is_null());
        if !types.any(|known| verify_type(self.0, known).is_ok()) {
            return Err(RedisError::WrongType);
        }
        // SAFETY: the server writes the pointer before the first command; the key is open or null,
        // which the function accepts.
        Ok(unsafe { raw::RedisModule_ModuleTypeGetValue.map_or(null_mut(), |value| value(self.0)) })
    }

    /// The filter; none if there is no key.
    #[inline]
    pub(crate) fn get(&self) -> Result<Option<FilterRef<'_>>, RedisError> {
        let value = self.value()?;
        // SAFETY: all values of these types are from `Slot::into_raw`. `FilterMut` borrows the key
        // as mutable, and a command opens a key once.
        Ok((!value.is_null()).then(|| unsafe { FilterRef::new(value) }))
    }

    /// The filter, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Result<Option<FilterMut<'_>>, RedisError> {
        let value = self.value()?;
        // SAFETY: all values of these types are from `Slot::into_raw`, and `FilterMut` borrows the
        // key, which a command opens once.
        Ok((!value.is_null()).then(|| unsafe { FilterMut::new(self, value) }))
    }

    /// Sets another value of the same type, without freeing the former one. Ends the server on
    /// failure, which would be a key that is not open for writing.
    pub(crate) fn replace_value(&mut self, value: *mut c_void) {
        // SAFETY: the server writes the pointers before the first command; the key is open, and has
        // a value of this type.
        let status = unsafe {
            let kind = raw::RedisModule_ModuleTypeGetType.map_or(null_mut(), |kind| kind(self.0));
            raw::RedisModule_ModuleTypeReplaceValue
                .map_or(1, |put| put(self.0, kind, value, null_mut()))
        };
        if status != raw::REDISMODULE_OK as c_int {
            std::process::abort();
        }
    }

    /// Sets the filter of a key, and frees a former one.
    pub(crate) fn set(&mut self, filter: Filter) -> Result<(), RedisError> {
        let (kind, facts) = (type_of(&filter), Facts::from_filter(&filter));
        let value = Slot::from(filter).into_raw();
        // SAFETY: the server writes the pointer before the first command; the key is open, and the
        // type is registered.
        let status = unsafe {
            raw::RedisModule_ModuleTypeSetValue
                .map_or(1, |set| set(self.0, *kind.raw_type.borrow(), value))
        };
        if status != raw::REDISMODULE_OK as c_int {
            return Err(RedisError::Str("ERR could not set the key"));
        }
        counters::filter_created(&facts);
        Ok(())
    }

    /// Replaces the filter of a key after its last piece has arrived. The type stays: it is that of
    /// the filter's module, or the own one, also while the filter is being loaded. Only a filter of
    /// valkey-bloom has the own type until then; the new key expires when the former one did.
    pub(crate) fn replace_filter(&mut self, filter: Filter) -> Result<(), RedisError> {
        if matches!(filter, Filter::Valkey(_)) {
            // SAFETY: the server writes the pointers before the first command; the key is open for
            // writing.
            unsafe {
                let expires = raw::RedisModule_GetAbsExpire.map_or(-1, |get| get(self.0));
                self.set(filter)?;
                raw::RedisModule_SetAbsExpire.map(|set| set(self.0, expires));
            }
            return Ok(());
        }
        if let Some(mut lent) = self.get_mut()? {
            let loading = lent.filter();
            let facts = Facts::from_filter(&filter);
            counters::filter_changed(&Facts::from_filter(loading), &facts);
            *loading = filter;
        }
        Ok(())
    }
}
