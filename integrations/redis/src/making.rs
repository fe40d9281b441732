//! What the commands that make filters and add to them have in common: whether there is memory, and
//! what other servers are told.

use std::cell::Cell;
use std::ffi::CStr;

use redis_module::{Context, RedisError};

use crate::arguments::Argument;
use crate::counters::{self, Facts};
use crate::data_type;
use crate::filter::{self, Filter};
use crate::memory;
use crate::own::{AddError, Added, CreateError, Own};
use crate::reserve::Reserve;
use crate::settings::{makes_filters_of_redisbloom, memory_limit};
use crate::valkey::{Shaping, ValkeyFilter};

pub(crate) const NOT_FOUND: RedisError = RedisError::Str("ERR not found");
pub(crate) const NO_MEMORY: RedisError =
    RedisError::Str("ERR Insufficient memory to create filter");
const CANNOT_CREATE: RedisError = RedisError::Str("ERR could not create filter");
const CANNOT_ADD: RedisError = RedisError::Str("ERR problem inserting into filter");
pub(crate) const LOADING: RedisError = RedisError::Str("ERR filter is not completely loaded");
const OVER_LIMIT: RedisError = RedisError::Str("ERR operation exceeds bloom object memory limit");

/// Events of the keyspace, by valkey-bloom's names.
pub(crate) const ADDED: &CStr = c"bloom.add";
pub(crate) const RESERVED: &CStr = c"bloom.reserve";

/// What a command makes where there is no key.
#[derive(Clone, Copy)]
pub(crate) enum Makes {
    Own(Reserve),
    /// A filter of valkey-bloom's.
    Valkey(Shaping),
}

/// Whether a filter may take more memory: by the limit for one filter, and by the server's memory.
pub(crate) struct Allowance<'a> {
    context: &'a Context,
    /// Bytes that the filter has, and those that it has taken since.
    taken: Cell<u64>,
    is_over_limit: Cell<bool>,
}

impl<'a> Allowance<'a> {
    pub(crate) fn new(context: &'a Context, has: u64) -> Self {
        Allowance { context, taken: Cell::new(has), is_over_limit: Cell::new(false) }
    }

    /// A replica, and a server that reads its AOF, does what it is told.
    pub(crate) fn may_take(&self, bytes: u64) -> bool {
        let taken = self.taken.get().saturating_add(bytes);
        if taken > memory_limit() && !memory::follows(self.context) {
            self.is_over_limit.set(true);
            return false;
        }
        self.taken.set(taken);
        memory::has(self.context, bytes)
    }

    /// The limit's error, if it was that, or this one.
    pub(crate) fn error(&self, otherwise: RedisError) -> RedisError {
        if self.is_over_limit.get() { OVER_LIMIT } else { otherwise }
    }
}

/// An empty filter.
pub(crate) fn create(allowance: &Allowance<'_>, makes: &Makes) -> Result<Filter, RedisError> {
    let may_take = |bytes| allowance.may_take(bytes);
    let filter = match makes {
        Makes::Own(reserve) if makes_filters_of_redisbloom() => {
            filter::new_of_redisbloom(reserve, may_take)
        }
        Makes::Own(reserve) => Own::new(reserve, may_take).map(Filter::Own),
        Makes::Valkey(shaping) => {
            ValkeyFilter::new(shaping, may_take).map(|filter| Filter::Valkey(Box::new(filter)))
        }
    };
    filter.map_err(|error| match error {
        CreateError::Shape => CANNOT_CREATE,
        CreateError::Memory => {
            end_if_it_follows(allowance.context);
            allowance.error(NO_MEMORY)
        }
    })
}

/// Adds items to the filter of this name, which is made if there is none and `creates` says what it
/// shall be.
pub(crate) fn add_items(
    context: &Context,
    name: &Argument,
    items: &[Argument],
    creates: Option<Makes>,
) -> Result<Added, RedisError> {
    let mut key = name.open_writable(context);
    let Some(filter) = data_type::get_mut(&mut key)? else {
        let makes = creates.ok_or(NOT_FOUND)?;
        let allowance = Allowance::new(context, 0);
        let mut filter = create(&allowance, &makes)?;
        let added = filter.add(items, |bytes| allowance.may_take(bytes)).ok_or(LOADING)?;
        let added = added.map_err(|error| failed(&allowance, &error))?;
        data_type::set(&key, filter)?;
        replicate_as_made(context, name, items, &makes);
        if added.is_new.contains(&true) {
            name.notify(context, ADDED);
        }
        return Ok(added);
    };
    let allowance = Allowance::new(context, filter.size());
    let before = Facts::of(filter);
    let added = filter.add(items, |bytes| allowance.may_take(bytes)).ok_or(LOADING)?;
    counters::changed(&before, &Facts::of(filter));
    match added {
        Ok(added) => {
            // Otherwise the filter is what it was.
            if added.is_new.contains(&true) {
                context.replicate_verbatim();
                name.notify(context, ADDED);
            }
            Ok(added)
        }
        Err(error) => {
            // What other servers have must be what this one has.
            if error.before > 0 {
                let mut arguments = vec![name.as_slice()];
                arguments.extend(items[..error.before].iter().map(Argument::as_slice));
                context.replicate("BF.MADD", &arguments[..]);
            }
            Err(failed(&allowance, &error))
        }
    }
}

/// Replicates a command that made a filter with all that it was made for, as words that make the
/// same one by any settings: those of a replica, or of the server that reads the AOF, may differ.
pub(crate) fn replicate_as_made(
    context: &Context,
    name: &Argument,
    items: &[Argument],
    makes: &Makes,
) {
    // The shortest texts that are read as the same numbers.
    let (error_rate, capacity, expansion) = match makes {
        Makes::Own(reserve) => (reserve.error_rate, reserve.capacity, reserve.expansion),
        Makes::Valkey(shaping) => (shaping.rate, shaping.capacity, shaping.expansion.into()),
    };
    let (error_rate, capacity) = (error_rate.to_string(), capacity.to_string());
    // RedisBloom 2.8 does not take an expansion of 0.
    let expansion = (expansion > 0).then(|| expansion.to_string());
    let growth: &[&[u8]] = match &expansion {
        None => &[b"NONSCALING"],
        Some(expansion) => &[b"EXPANSION", expansion.as_bytes()],
    };
    let mut arguments = vec![name.as_slice()];
    if let (Makes::Own(_), []) = (makes, items) {
        arguments.extend([error_rate.as_bytes(), capacity.as_bytes()]);
        arguments.extend(growth);
        context.replicate("BF.RESERVE", &arguments[..]);
        name.notify(context, RESERVED);
        return;
    }
    arguments.extend(["CAPACITY", &capacity, "ERROR", &error_rate].map(str::as_bytes));
    arguments.extend(growth);
    let tightening;
    if let Makes::Valkey(shaping) = makes {
        tightening = shaping.tightening.to_string();
        let words: [&[u8]; 4] = [b"TIGHTENING", tightening.as_bytes(), b"SEED", &shaping.seed];
        arguments.extend(words);
    }
    if !items.is_empty() {
        arguments.push(b"ITEMS");
        arguments.extend(items.iter().map(Argument::as_slice));
    }
    context.replicate("BF.INSERT", &arguments[..]);
    name.notify(context, RESERVED);
}

/// The error for keys that could not be added.
pub(crate) fn failed(allowance: &Allowance<'_>, error: &AddError) -> RedisError {
    if error.is_memory {
        end_if_it_follows(allowance.context);
    }
    allowance.error(CANNOT_ADD)
}

/// Ends the server for want of memory where that must not be an error: a replica, or a server that
/// reads its AOF, would later answer "absent" for keys that the other one has, and nobody would see
/// the error. Redis itself does so when it has no memory.
pub(crate) fn end_if_it_follows(context: &Context) {
    if memory::follows(context) {
        context.log_warning("no memory for keys that another server, or the AOF, has: ending");
        std::process::abort();
    }
}
