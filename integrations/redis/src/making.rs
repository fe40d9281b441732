//! Creating filters and adding to them: memory checks, and the form in which commands are
//! replicated.

use std::cell::Cell;
use std::ffi::CStr;

use redis_module::{Context, RedisError};

use crate::arguments::Argument;
use crate::blocked::Blocked;
use crate::counters::{self, Facts};
use crate::filter::Filter;
use crate::key::Key;
use crate::memory;
use crate::outcome::{AddError, Added, CreateError};
use crate::redisbloom;
use crate::reserve::{MAX_ERROR_RATE, Reserve, UNUSED_EXPANSION};
use crate::settings::{makes_filters_of_redisbloom, memory_limit};
use crate::slot::Slot;
use crate::valkey::{Shaping, ValkeyFilter};

pub(crate) const NO_KEY: RedisError = RedisError::Str("ERR not found");
pub(crate) const NO_MEMORY: RedisError =
    RedisError::Str("ERR Insufficient memory to create filter");
const CANNOT_CREATE: RedisError = RedisError::Str("ERR could not create filter");
/// Of commands of other servers alone: what clients may say is not as large.
pub(crate) const TOO_LARGE: RedisError =
    RedisError::Str("ERR no server has memory for a filter of this capacity");
pub(crate) const CANNOT_ADD: RedisError = RedisError::Str("ERR problem inserting into filter");
pub(crate) const LOADING: RedisError = RedisError::Str("ERR filter is not completely loaded");
/// Instead of [`CANNOT_ADD`], where the source has added the key.
const NO_MEMORY_TO_ADD: RedisError = RedisError::Str("ERR no memory for a key that was added");
const LIMIT_EXCEEDED: RedisError =
    RedisError::Str("ERR operation exceeds bloom object memory limit");

/// Events of the keyspace, by valkey-bloom's names.
pub(crate) const ADDED: &CStr = c"bloom.add";
pub(crate) const RESERVED: &CStr = c"bloom.reserve";

/// The filter that a command creates for a new key.
#[derive(Clone, Copy)]
pub(crate) enum NewFilter {
    Blocked(Reserve),
    /// A filter of RedisBloom's.
    Redis(Reserve),
    /// A filter of valkey-bloom's.
    Valkey(Shaping),
}

/// The word that has a command make an own filter, whatever the settings say: all that make one are
/// sent to replicas and the AOF with it.
pub(crate) const BLOCKED: &str = "BLOCKED";

impl NewFilter {
    /// The filter that a command without options of valkey-bloom creates.
    ///
    /// A command of another server, or of the AOF, without [`BLOCKED`] is RedisBloom's, or of a
    /// server that makes such filters. It makes one here too, since only the same form keeps all
    /// keys: another one is full at another key, and has other false positives, whose keys were
    /// acknowledged as present and are not sent.
    pub(crate) fn from_reserve(context: &Context, mut reserve: Reserve, is_blocked: bool) -> Self {
        let follows = memory::follows(context);
        // RedisBloom took higher ones before its version 8.
        if is_blocked || !follows {
            reserve.error_rate = reserve.error_rate.min(MAX_ERROR_RATE);
        }
        if !is_blocked && (follows || makes_filters_of_redisbloom()) {
            NewFilter::Redis(reserve)
        } else {
            NewFilter::Blocked(reserve)
        }
    }
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

    /// A follower has no limit.
    pub(crate) fn may_take(&self, bytes: u64) -> bool {
        let taken = self.taken.get().saturating_add(bytes);
        if taken > memory_limit() && !memory::follows(self.context) {
            self.is_over_limit.set(true);
            return false;
        }
        self.taken.set(taken);
        memory::fits(self.context, bytes)
    }

    /// The limit's error, if it was that, or this one.
    pub(crate) fn error(&self, otherwise: RedisError) -> RedisError {
        if self.is_over_limit.get() { LIMIT_EXCEEDED } else { otherwise }
    }
}

/// An empty filter.
pub(crate) fn create(allowance: &Allowance<'_>, makes: &NewFilter) -> Result<Filter, RedisError> {
    let may_take = |bytes| allowance.may_take(bytes);
    let filter = match makes {
        NewFilter::Blocked(reserve) => Blocked::new(reserve, may_take).map(Filter::Blocked),
        NewFilter::Redis(reserve) => {
            redisbloom::create(reserve, may_take).map(|filter| Filter::Redis(Box::new(filter)))
        }
        NewFilter::Valkey(shaping) => {
            ValkeyFilter::new(shaping, may_take).map(|filter| Filter::Valkey(Box::new(filter)))
        }
    };
    filter.map_err(|error| match error {
        CreateError::Shape => CANNOT_CREATE,
        CreateError::TooLarge => TOO_LARGE,
        CreateError::Memory => allowance.error(NO_MEMORY),
    })
}

/// Adds items to the filter of this name. `creates` says which filter a new key gets, if any.
pub(crate) fn add_items(
    context: &Context,
    name: &Argument,
    items: &[Argument],
    creates: impl FnOnce() -> Option<NewFilter>,
) -> Result<Added, RedisError> {
    let mut key = name.open_writable(context);
    complete_as_redisbloom(context, &mut key)?;
    let Some(mut lent) = key.get_mut()? else {
        let makes = creates().ok_or(NO_KEY)?;
        let allowance = Allowance::new(context, 0);
        let mut filter = create(&allowance, &makes)?;
        let added = filter.add(items, |bytes| allowance.may_take(bytes)).ok_or(LOADING)?;
        let added = added.map_err(|error| failed(&allowance, &error))?;
        key.set(filter)?;
        replicate_as_made(context, name, items, &makes);
        if added.is_new.contains(&true) {
            name.notify(context, ADDED);
        }
        return Ok(added);
    };
    let mut is_new = lent.add_packed(items);
    is_new.iter().filter(|is_new| **is_new).for_each(|_| counters::item_added());
    let left = &items[is_new.len()..];
    let mut allowance = Allowance::new(context, 0);
    let mut added = Ok(Added::default());
    if !left.is_empty() {
        let filter = lent.filter();
        let before = Facts::from_filter(filter);
        allowance = Allowance::new(context, filter.size());
        added = filter.add(left, |bytes| allowance.may_take(bytes)).ok_or(LOADING)?;
        counters::filter_changed(&before, &Facts::from_filter(filter));
    }
    match added {
        Ok(mut added) => {
            is_new.append(&mut added.is_new);
            added.is_new = is_new;
            // Otherwise the filter has not changed.
            if added.is_new.contains(&true) {
                context.replicate_verbatim();
                name.notify(context, ADDED);
            }
            Ok(added)
        }
        Err(error) => {
            // Followers must get the items that were added.
            let before = is_new.len() + error.before;
            if before > 0 {
                let mut arguments = vec![name.as_slice()];
                arguments.extend(items[..before].iter().map(Argument::as_slice));
                context.replicate("BF.MADD", &arguments[..]);
            }
            Err(failed(&allowance, &error))
        }
    }
}

/// Completes the key's filter with zeros if it is RedisBloom's, half loaded, and the command comes
/// from a source: RedisBloom adds to half-loaded filters.
fn complete_as_redisbloom(context: &Context, key: &mut Key) -> Result<(), RedisError> {
    if !memory::follows(context) {
        return Ok(());
    }
    let Some(mut lent) = key.get_mut()? else { return Ok(()) };
    let Slot::Large(filter) = lent.slot() else { return Ok(()) };
    let before = Facts::from_filter(filter);
    let complete = match &mut **filter {
        Filter::Loading(loading) if loading.is_redisbloom() => {
            let complete = loading.complete_with_zeros();
            counters::filter_changed(&before, &Facts::from_filter(filter));
            complete.map_err(|_| NO_MEMORY_TO_ADD)?
        }
        _ => return Ok(()),
    };
    drop(lent);
    key.replace_filter(Filter::Redis(complete))
}

/// Replicates a command that made a filter with all that it was made for, as words that make the
/// same one by any settings: those of a replica, or of the server that reads the AOF, may differ.
pub(crate) fn replicate_as_made(
    context: &Context,
    name: &Argument,
    items: &[Argument],
    makes: &NewFilter,
) {
    // The shortest texts that are read as the same numbers.
    let (error_rate, capacity, expansion) = match makes {
        NewFilter::Blocked(reserve) | NewFilter::Redis(reserve) => {
            (reserve.error_rate, reserve.capacity, reserve.expansion)
        }
        NewFilter::Valkey(shaping) => (shaping.rate, shaping.capacity, shaping.expansion.into()),
    };
    let (error_rate, capacity) = (error_rate.to_string(), capacity.to_string());
    // RedisBloom 2.8 does not take an expansion of 0.
    let expansion = (expansion > 0).then(|| expansion.to_string());
    let unused;
    let growth: &[&[u8]] = match (&expansion, makes) {
        (None, NewFilter::Redis(reserve)) if reserve.unused_expansion != UNUSED_EXPANSION => {
            unused = reserve.unused_expansion.to_string();
            &[b"EXPANSION", unused.as_bytes(), b"NONSCALING"]
        }
        (None, _) => &[b"NONSCALING"],
        (Some(expansion), _) => &[b"EXPANSION", expansion.as_bytes()],
    };
    // RedisBloom has no such word: what must be read by it, too, is made without.
    let form: &[&[u8]] = match makes {
        NewFilter::Blocked(_) => &[BLOCKED.as_bytes()],
        NewFilter::Redis(_) | NewFilter::Valkey(_) => &[],
    };
    let mut arguments = vec![name.as_slice()];
    if let (NewFilter::Blocked(_) | NewFilter::Redis(_), []) = (makes, items) {
        arguments.extend([error_rate.as_bytes(), capacity.as_bytes()]);
        arguments.extend(growth);
        arguments.extend(form);
        context.replicate("BF.RESERVE", &arguments[..]);
        name.notify(context, RESERVED);
        return;
    }
    arguments.extend(["CAPACITY", &capacity, "ERROR", &error_rate].map(str::as_bytes));
    arguments.extend(growth);
    arguments.extend(form);
    let tightening;
    if let NewFilter::Valkey(shaping) = makes {
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
    // Filters have the same form as at the source, which fails at the same keys. But it may have
    // more memory.
    if error.is_memory && memory::follows(allowance.context) {
        return NO_MEMORY_TO_ADD;
    }
    allowance.error(CANNOT_ADD)
}
