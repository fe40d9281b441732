//! The commands, with RedisBloom's arguments, replies and texts of errors.

use std::ffi::{c_int, c_long};
use std::panic::{AssertUnwindSafe, catch_unwind};

use redis_module::raw;
use redis_module::{
    Context, ContextFlags, REDIS_OK, RedisError, RedisResult, RedisString, RedisValue, Status,
};

use crate::allocator;
use crate::data_type::FILTER;
use crate::dump::Loading;
use crate::filter::{
    AddError, Added, Filter, MAX_CAPACITY, MAX_ERROR_RATE, MAX_EXPANSION, Reserve,
};
use crate::memory;
use crate::own::Own;

const NOT_FOUND: RedisError = RedisError::Str("ERR not found");
const EXISTS: RedisError = RedisError::Str("ERR item exists");
const NO_MEMORY: RedisError = RedisError::Str("ERR Insufficient memory to create filter");
const CANNOT_CREATE: RedisError = RedisError::Str("ERR could not create filter");
const CANNOT_ADD: RedisError = RedisError::Str("ERR problem inserting into filter");
const FULL: &str = "ERR non scaling filter is full";
const LOADING: RedisError = RedisError::Str("ERR filter is not completely loaded");
const BAD_DATA: RedisError = RedisError::Str("ERR received bad data");

/// A command: its reply, or the error that it replies.
type Command = fn(&Context, &[RedisString]) -> RedisResult;

/// Runs a command; a panic is an error of the reply. No command replies before all that can fail is done.
fn run(command: Command, context: &Context, arguments: Vec<RedisString>) -> RedisResult {
    let result = catch_unwind(AssertUnwindSafe(|| command(context, &arguments)));
    result.unwrap_or(Err(RedisError::Str("ERR internal error of the module, see the server's log")))
}

macro_rules! commands {
    ($($name:ident = $command:expr;)*) => {$(
        pub(crate) fn $name(context: &Context, arguments: Vec<RedisString>) -> RedisResult {
            run($command, context, arguments)
        }
    )*};
}

commands! {
    reserve = bf_reserve;
    add = bf_add;
    mult_add = bf_madd;
    insert = bf_insert;
    exists = bf_exists;
    mult_exists = bf_mexists;
    info = bf_info;
    card = bf_card;
    scan_dump = bf_scandump;
    load_chunk = bf_loadchunk;
}

/// Called once, when the module is loaded.
pub(crate) fn on_load(context: &Context, arguments: &[RedisString]) -> Status {
    if !arguments.is_empty() {
        context.log_warning("the module takes no arguments");
        return Status::Err;
    }
    if !allocator::can_fail() {
        context.log_warning("the module is for Redis 7.0 and later");
        return Status::Err;
    }
    // A file that ends too early is an error of loading it, not the end of the server.
    context.set_module_options(redis_module::ModuleOptions::HANDLE_IO_ERRORS);
    Status::Ok
}

/// `BF.RESERVE key error_rate capacity [EXPANSION expansion] [NONSCALING]`
fn bf_reserve(context: &Context, arguments: &[RedisString]) -> RedisResult {
    let ([_, name, error_rate, capacity, options @ ..], 4..=7) = (arguments, arguments.len())
    else {
        return Err(RedisError::WrongArity);
    };
    let error_rate = error_rate.parse_float().map_err(|_| RedisError::Str("ERR bad error rate"))?;
    if !is_rate(error_rate) {
        return Err(RedisError::Str("ERR error rate must be in the range (0.000000, 1.000000)"));
    }
    let capacity = capacity.parse_integer().map_err(|_| RedisError::Str("ERR bad capacity"))?;
    if !(1..=MAX_CAPACITY).contains(&capacity) {
        return Err(RedisError::Str("ERR capacity must be in the range [1, 1073741824]"));
    }
    let (mut expansion, mut is_fixed) = (None, false);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if is(option, "EXPANSION") {
            let value = options.next().ok_or(RedisError::Str("ERR no expansion"))?;
            let value = value.parse_integer().map_err(|_| RedisError::Str("ERR bad expansion"))?;
            expansion = Some(value);
        } else if is(option, "NONSCALING") {
            is_fixed = true;
        } else {
            return Err(RedisError::Str("Unknown argument received"));
        }
    }
    if is_fixed && expansion.is_some_and(|expansion| expansion != 0) {
        return Err(RedisError::Str("Nonscaling filters cannot expand"));
    }
    let default = Reserve::default();
    let expansion = match (is_fixed, expansion) {
        (true, _) => 0,
        (false, None) => default.expansion,
        (false, Some(expansion @ 0..=MAX_EXPANSION)) => expansion as u64,
        (false, Some(_)) => {
            return Err(RedisError::Str("ERR expansion must be in the range [0, 32768]"));
        }
    };
    let key = context.open_key_writable(name);
    if key.get_value::<Filter>(&FILTER).map_err(|_| RedisError::WrongType)?.is_some() {
        return Err(EXISTS);
    }
    let reserve = Reserve {
        error_rate: error_rate.min(MAX_ERROR_RATE),
        capacity: capacity as u64,
        expansion,
    };
    key.set_value(&FILTER, create(context, &reserve)?)?;
    context.replicate_verbatim();
    REDIS_OK
}

/// `BF.ADD key item`
fn bf_add(context: &Context, arguments: &[RedisString]) -> RedisResult {
    let [_, name, item] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let added = add_items(context, name, &[item.as_slice()], Some(Reserve::default()))?;
    match added.is_new.first() {
        Some(&is_new) => Ok(RedisValue::Bool(is_new)),
        None => Err(RedisError::Str(FULL)),
    }
}

/// `BF.MADD key item [item ...]`
fn bf_madd(context: &Context, arguments: &[RedisString]) -> RedisResult {
    let [_, name, items @ ..] = arguments else {
        return Err(RedisError::WrongArity);
    };
    if items.is_empty() {
        return Err(RedisError::WrongArity);
    }
    let added = add_items(context, name, &slices(items), Some(Reserve::default()))?;
    Ok(reply_added(context, &added))
}

/// `BF.INSERT key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] ITEMS item [item ...]`
fn bf_insert(context: &Context, arguments: &[RedisString]) -> RedisResult {
    let [_, name, options @ ..] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let (mut reserve, mut creates, mut is_fixed) = (Reserve::default(), true, false);
    let mut options = options.iter();
    loop {
        let option = options.next().ok_or(RedisError::WrongArity)?;
        if is(option, "ITEMS") {
            break;
        } else if is(option, "NOCREATE") {
            creates = false;
        } else if is(option, "NONSCALING") {
            is_fixed = true;
        } else if is(option, "CAPACITY") {
            let value = options.next().ok_or(RedisError::WrongArity)?.parse_integer().ok();
            let value = value.filter(|value| (1..=MAX_CAPACITY).contains(value));
            reserve.capacity = value.ok_or(RedisError::Str("Bad capacity"))? as u64;
        } else if is(option, "ERROR") {
            let value = options.next().ok_or(RedisError::WrongArity)?.parse_float().ok();
            let value = value.filter(|&value| is_rate(value));
            reserve.error_rate =
                value.ok_or(RedisError::Str("Bad error rate"))?.min(MAX_ERROR_RATE);
        } else if is(option, "EXPANSION") {
            let value = options.next().ok_or(RedisError::WrongArity)?.parse_integer().ok();
            let value = value.filter(|value| (0..=MAX_EXPANSION).contains(value));
            reserve.expansion = value.ok_or(RedisError::Str("Bad expansion"))? as u64;
        } else {
            return Err(RedisError::Str("Unknown argument received"));
        }
    }
    if is_fixed {
        reserve.expansion = 0;
    }
    let items = slices(options.as_slice());
    if items.is_empty() {
        return Err(RedisError::WrongArity);
    }
    let added = add_items(context, name, &items, creates.then_some(reserve))?;
    Ok(reply_added(context, &added))
}

/// `BF.EXISTS key item`
fn bf_exists(context: &Context, arguments: &[RedisString]) -> RedisResult {
    let [_, name, item] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let key = context.open_key(name);
    let filter = key.get_value::<Filter>(&FILTER).map_err(|_| RedisError::WrongType)?;
    let hit = filter.map_or(Some(false), |filter| filter.contains(item.as_slice()));
    hit.map(RedisValue::Bool).ok_or(LOADING)
}

/// `BF.MEXISTS key item [item ...]`
fn bf_mexists(context: &Context, arguments: &[RedisString]) -> RedisResult {
    let [_, name, items @ ..] = arguments else {
        return Err(RedisError::WrongArity);
    };
    if items.is_empty() {
        return Err(RedisError::WrongArity);
    }
    let key = context.open_key(name);
    match key.get_value::<Filter>(&FILTER).map_err(|_| RedisError::WrongType)? {
        Some(filter) => {
            let hits = filter.contains_batch(&slices(items)).ok_or(LOADING)?;
            reply_array(context, hits.len());
            hits.iter().for_each(|hit| reply_bool(context, hit));
        }
        None => {
            reply_array(context, items.len());
            items.iter().for_each(|_| reply_bool(context, false));
        }
    }
    Ok(RedisValue::NoReply)
}

/// `BF.INFO key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]`
fn bf_info(context: &Context, arguments: &[RedisString]) -> RedisResult {
    let ([_, name, wanted @ ..], 2..=3) = (arguments, arguments.len()) else {
        return Err(RedisError::WrongArity);
    };
    let key = context.open_key(name);
    let filter = complete(key.get_value(&FILTER))?.ok_or(NOT_FOUND)?;
    let number = |number: u64| RedisValue::Integer(number.min(i64::MAX as u64) as i64);
    let expansion =
        filter.expansion().map_or(RedisValue::Null, |expansion| number(expansion.into()));
    let mut fields = vec![
        ("CAPACITY", "Capacity", number(filter.capacity())),
        ("SIZE", "Size", number(filter.memory_bytes())),
        ("FILTERS", "Number of filters", number(filter.links() as u64)),
        ("ITEMS", "Number of items inserted", number(filter.keys())),
        ("EXPANSION", "Expansion rate", expansion),
    ];
    if let [wanted] = wanted {
        fields.retain(|(argument, ..)| is(wanted, argument));
        if fields.is_empty() {
            return Err(RedisError::Str("Invalid information value"));
        }
        // In version 2 of the protocol an array of the value alone.
        if !context.get_flags().contains(ContextFlags::FLAGS_RESP3) {
            return Ok(RedisValue::Array(fields.into_iter().map(|(.., value)| value).collect()));
        }
    }
    raw::reply_with_map(context.ctx, fields.len() as c_long);
    for (_, title, value) in fields {
        context.reply(Ok(RedisValue::SimpleStringStatic(title)));
        context.reply(Ok(value));
    }
    Ok(RedisValue::NoReply)
}

/// `BF.CARD key`
fn bf_card(context: &Context, arguments: &[RedisString]) -> RedisResult {
    let [_, name] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let key = context.open_key(name);
    let keys = complete(key.get_value(&FILTER))?.map_or(0, Filter::keys);
    Ok(RedisValue::Integer(keys.min(i64::MAX as u64) as i64))
}

/// `BF.SCANDUMP key iterator`
fn bf_scandump(context: &Context, arguments: &[RedisString]) -> RedisResult {
    let [_, name, iterator] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let key = context.open_key(name);
    let filter = complete(key.get_value(&FILTER))?.ok_or(NOT_FOUND)?;
    let iterator =
        iterator.parse_integer().map_err(|_| RedisError::Str("Second argument must be numeric"))?;
    let (next, data) = match iterator {
        0 => (1, filter.header()),
        _ => filter.piece(iterator).unwrap_or_default(),
    };
    reply_array(context, 2);
    context.reply(Ok(RedisValue::Integer(next)));
    raw::reply_with_string_buffer(context.ctx, data.as_ptr().cast(), data.len());
    Ok(RedisValue::NoReply)
}

/// `BF.LOADCHUNK key iterator data`
fn bf_loadchunk(context: &Context, arguments: &[RedisString]) -> RedisResult {
    let [_, name, iterator, data] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let iterator = iterator
        .parse_integer()
        .map_err(|_| RedisError::Str("ERR Second argument must be numeric"))?;
    let begin = || Loading::begin(data.as_slice()).map_err(|error| RedisError::Str(error.text()));
    let key = context.open_key_writable(name);
    match key.get_value::<Filter>(&FILTER).map_err(|_| RedisError::WrongType)? {
        None if iterator == 1 => key.set_value(&FILTER, Filter::Loading(begin()?))?,
        None => return Err(NOT_FOUND),
        Some(filter) => match filter {
            Filter::Own(_) | Filter::Redis(_) => return Err(BAD_DATA),
            // From the beginning.
            Filter::Loading(loading) if iterator == 1 => *loading = begin()?,
            Filter::Loading(loading) => {
                let taken = loading.take(iterator, data.as_slice());
                if let Some(complete) = taken.map_err(|error| RedisError::Str(error.text()))? {
                    *filter = complete;
                }
            }
        },
    }
    context.replicate_verbatim();
    REDIS_OK
}

/// Whether an argument is this word, in capitals or not.
fn is(argument: &RedisString, word: &str) -> bool {
    argument.as_slice().eq_ignore_ascii_case(word.as_bytes())
}

fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate < 1.0
}

fn slices(items: &[RedisString]) -> Vec<&[u8]> {
    items.iter().map(RedisString::as_slice).collect()
}

/// The filter of a key that is there, unless it is still being loaded.
fn complete(value: Result<Option<&Filter>, RedisError>) -> Result<Option<&Filter>, RedisError> {
    match value.map_err(|_| RedisError::WrongType)? {
        Some(Filter::Loading(_)) => Err(LOADING),
        filter => Ok(filter),
    }
}

/// A filter in which its first keys will have memory.
fn create(context: &Context, reserve: &Reserve) -> Result<Filter, RedisError> {
    let filter = Filter::Own(Own::new(reserve).map_err(|_| CANNOT_CREATE)?);
    match memory::has(context, filter.bytes_to_grow(1)) {
        true => Ok(filter),
        false => Err(NO_MEMORY),
    }
}

/// Adds items to the filter of this name, which is made if there is none and `creates` says what it shall be.
fn add_items(
    context: &Context,
    name: &RedisString,
    items: &[&[u8]],
    creates: Option<Reserve>,
) -> Result<Added, RedisError> {
    let key = context.open_key_writable(name);
    let Some(filter) = key.get_value::<Filter>(&FILTER).map_err(|_| RedisError::WrongType)? else {
        let mut filter = create(context, &creates.ok_or(NOT_FOUND)?)?;
        let added = filter.add(items).ok_or(LOADING)?.map_err(|error| failed(context, &error))?;
        key.set_value(&FILTER, filter)?;
        context.replicate_verbatim();
        return Ok(added);
    };
    if !memory::has(context, filter.bytes_to_grow(items.len())) {
        return Err(CANNOT_ADD);
    }
    match filter.add(items).ok_or(LOADING)? {
        Ok(added) => {
            // Otherwise the filter is what it was.
            if added.is_new.contains(&true) {
                context.replicate_verbatim();
            }
            Ok(added)
        }
        Err(error) => {
            // What other servers have must be what this one has.
            if error.before > 0 {
                let mut arguments = vec![name.as_slice()];
                arguments.extend_from_slice(&items[..error.before]);
                context.replicate("BF.MADD", &arguments[..]);
            }
            Err(failed(context, &error))
        }
    }
}

/// The error for keys that could not be added. Ends the server where it must not be one: a replica, or a server that reads its AOF, would later answer
/// "absent" for these keys, and nobody would see the error. Redis itself does so when it has no memory.
fn failed(context: &Context, error: &AddError) -> RedisError {
    let follows = ContextFlags::REPLICATED | ContextFlags::LOADING;
    if error.is_memory && context.get_flags().intersects(follows) {
        context.log_warning("no memory to add keys that another server, or the AOF, has: ending");
        std::process::abort();
    }
    CANNOT_ADD
}

fn reply_array(context: &Context, length: usize) {
    raw::reply_with_array(context.ctx, length as c_long);
}

/// 1 or 0, or in version 3 of the protocol true or false.
fn reply_bool(context: &Context, value: bool) {
    raw::reply_with_bool(context.ctx, c_int::from(value));
}

/// Of each item whether it is new; and at the end an error if the filter is full.
fn reply_added(context: &Context, added: &Added) -> RedisValue {
    reply_array(context, added.is_new.len() + usize::from(added.is_full));
    added.is_new.iter().for_each(|&is_new| reply_bool(context, is_new));
    if added.is_full {
        context.reply_error_string(FULL);
    }
    RedisValue::NoReply
}
