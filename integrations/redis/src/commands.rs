//! The commands, with RedisBloom's arguments, replies and texts of errors.

use std::ffi::{c_int, c_long};
use std::panic::{AssertUnwindSafe, catch_unwind};

use redis_module::raw;
use redis_module::{Context, ContextFlags, REDIS_OK, RedisError, RedisResult, RedisValue};

use crate::arguments::{self, Argument};
use crate::blocked::MAX_FEW;
use crate::counters::{self, Facts};
use crate::dump::PIECE;
use crate::filter::Filter;
use crate::loading::{LoadError, Loading};
use crate::making::{
    ADDED, Allowance, BLOCKED, CANNOT_ADD, LOADING, NO_KEY, NO_MEMORY, NewFilter, RESERVED,
    TOO_LARGE, add_items, create, replicate_as_made,
};
use crate::outcome::Added;
use crate::reserve::{MAX_CAPACITY, MAX_EXPANSION, Reserve, UNUSED_EXPANSION};
use crate::scaling::Scaling;
use crate::settings::settings;
use crate::slot::FilterRef;
use crate::valkey::{BytesError, FIXED_SEED, Seed, Shaping, ValkeyFilter};
use crate::{allocator, blocked, log, memory, redisbloom, valkey};

const EXISTS: RedisError = RedisError::Str("ERR item exists");
const BUSY: RedisError = RedisError::Str("BUSYKEY Target key name already exists.");
const BAD_EXPANSION: RedisError = RedisError::Str("Bad expansion");
const FULL: &str = "ERR non scaling filter is full";
const BAD_DATA: RedisError = RedisError::Str("ERR received bad data");

/// A command: its reply, or the error that it replies.
type Command = fn(&Context, &[Argument]) -> RedisResult;

/// Runs a command; a panic is an error of the reply. No command replies before all that can fail is
/// done.
fn run(command: Command, context: &Context, arguments: &[Argument]) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(|| command(context, arguments)));
    let panicked = RedisError::Str("ERR internal error of the module, see the server's log");
    let result = result.unwrap_or(Err(panicked));
    if let Err(error) = &result
        && memory::follows(context)
        && !memory::imports_slot(context)
    {
        if !source_may_reply(error) {
            end(arguments, error);
        }
        // The source replied this error and sent the command all the same. A server with
        // `propagation-error-behavior panic-on-replicas` ends for any error reply.
        if matches!(error, RedisError::Str(FULL)) {
            return context.reply(REDIS_OK) as c_int;
        }
    }
    context.reply(result) as c_int
}

/// Whether the source may have replied this error too, or the key differed before. The server
/// treats such errors of its own commands alike: it logs them and goes on.
fn source_may_reply(error: &RedisError) -> bool {
    let known =
        [RedisError::WrongType, NO_KEY, EXISTS, BUSY, CANNOT_ADD, TOO_LARGE, RedisError::Str(FULL)];
    let text = error.to_string();
    known.iter().any(|known| known.to_string() == text)
}

/// Ends the server, which follows another one or reads its AOF, instead of a command that was done
/// there and cannot be done here: keys that it added, or that are added to its filter later, would
/// be "absent" here, and no client sees the error. A server that has read its AOF in part does
/// not start; a replica is copied anew when it starts again.
fn end(arguments: &[Argument], error: &RedisError) -> ! {
    let word = |at: usize| log::printable(arguments.get(at).map_or(b"", Argument::as_slice));
    let (command, key) = (word(0).to_ascii_uppercase(), word(1));
    let error = error.to_string();
    let reason = match allocator::failed_bytes() {
        0 => error.trim_start_matches("ERR ").to_string(),
        bytes => format!("{bytes} bytes could not be allocated"),
    };
    log::warn(&format!(
        "{command} of key `{key}`: {reason}. The source has done this: ending, so that no key is \
         missing"
    ));
    std::process::exit(1)
}

macro_rules! commands {
    ($($name:ident = $command:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $name(
            context: *mut raw::RedisModuleCtx,
            argv: *mut *mut raw::RedisModuleString,
            argc: c_int,
        ) -> c_int {
            // SAFETY: Redis passes the arguments of the command that runs, which ends with this
            // function.
            let arguments = unsafe { arguments::arguments(argv, argc) };
            run($command, &Context::new(context), arguments)
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
    debug = bf_debug;
    scan_dump = bf_scandump;
    load_chunk = bf_loadchunk;
    load = bf_load;
}

/// `BF.RESERVE key error_rate capacity [EXPANSION expansion] [NONSCALING] [BLOCKED]`
fn bf_reserve(context: &Context, arguments: &[Argument]) -> RedisResult {
    let ([_, name, error_rate, capacity, options @ ..], 4..=7) = (arguments, arguments.len())
    else {
        return Err(RedisError::WrongArity);
    };
    let error_rate = error_rate.float().ok_or(RedisError::Str("ERR bad error rate"))?;
    if !is_rate(error_rate) {
        return Err(RedisError::Str("ERR error rate must be in the range (0.000000, 1.000000)"));
    }
    let capacity = capacity.integer().ok_or(RedisError::Str("ERR bad capacity"))?;
    // RedisBloom took more before its version 8, and ignores other words.
    let follows = memory::follows(context);
    if capacity < 1 || (capacity > MAX_CAPACITY && !follows) {
        return Err(RedisError::Str("ERR capacity must be in the range [1, 1073741824]"));
    }
    let (mut expansion, mut is_fixed, mut is_blocked) = (None, false, false);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if option.equals("EXPANSION") {
            match options.next() {
                // RedisBloom reads the first one.
                _ if follows && expansion.is_some() => {}
                None => return Err(RedisError::Str("ERR no expansion")),
                Some(value) => {
                    expansion = Some(value.integer().ok_or(RedisError::Str("ERR bad expansion"))?);
                }
            }
        } else if option.equals("NONSCALING") {
            is_fixed = true;
        } else if option.equals(BLOCKED) {
            is_blocked = true;
        } else if !follows {
            return Err(RedisError::Str("Unknown argument received"));
        }
    }
    // RedisBloom looks for the word in all arguments, the key too. This module names the expansion.
    is_fixed |= follows && !is_blocked && expansion.is_none() && name.equals("NONSCALING");
    if is_fixed && expansion.is_some_and(|expansion| expansion != 0) {
        return Err(RedisError::Str("Nonscaling filters cannot expand"));
    }
    let expansion = match (is_fixed, expansion) {
        (true, _) => 0,
        (false, None) => settings().expansion,
        (false, Some(expansion @ 0..=MAX_EXPANSION)) => expansion as u64,
        // RedisBloom accepts any number.
        (false, Some(expansion @ 1..)) if follows && !is_blocked => expansion as u64,
        (false, Some(_)) => {
            return Err(RedisError::Str("ERR expansion must be in the range [0, 32768]"));
        }
    };
    let mut key = name.open_writable(context);
    if key.get_mut()?.is_some() {
        return Err(EXISTS);
    }
    let unused_expansion = UNUSED_EXPANSION;
    let reserve = Reserve { error_rate, capacity: capacity as u64, expansion, unused_expansion };
    let makes = NewFilter::from_reserve(context, reserve, is_blocked);
    let filter = create(&Allowance::new(context, 0), &makes)?;
    key.set(filter)?;
    replicate_as_made(context, name, &[], &makes);
    REDIS_OK
}

/// `BF.ADD key item`
fn bf_add(context: &Context, arguments: &[Argument]) -> RedisResult {
    let [_, name, item] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let mut key = name.open_writable(context);
    if let Some(mut filter) = key.get_mut()?
        && let Some(is_new) = filter.add_one(item.as_slice())
    {
        if is_new {
            counters::item_added();
            context.replicate_verbatim();
            name.notify(context, ADDED);
        }
        return Ok(RedisValue::Bool(is_new));
    }
    drop(key);
    let added = add_items(context, name, std::slice::from_ref(item), creates_by_settings(context))?;
    match added.is_new.first() {
        Some(&is_new) => Ok(RedisValue::Bool(is_new)),
        None => Err(RedisError::Str(FULL)),
    }
}

/// The filter that a command without options creates.
fn creates_by_settings(context: &Context) -> impl FnOnce() -> Option<NewFilter> {
    || Some(NewFilter::from_reserve(context, settings(), false))
}

/// `BF.MADD key item [item ...]`
fn bf_madd(context: &Context, arguments: &[Argument]) -> RedisResult {
    let [_, name, items @ ..] = arguments else {
        return Err(RedisError::WrongArity);
    };
    if items.is_empty() {
        return Err(RedisError::WrongArity);
    }
    let added = add_items(context, name, items, creates_by_settings(context))?;
    Ok(reply_added(context, &added))
}

/// `BF.INSERT key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING]
/// [BLOCKED] [TIGHTENING ratio] [SEED seed] [VALIDATESCALETO capacity] [ITEMS item [item ...]]`
fn bf_insert(context: &Context, arguments: &[Argument]) -> RedisResult {
    let [_, name, options @ ..] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let (mut reserve, mut creates, mut is_fixed, mut has_items) = (settings(), true, false, false);
    let (mut tightening, mut seed, mut scales_to) = (None, None, None);
    let (mut is_blocked, mut has_expansion) = (false, false);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value = || options.next().ok_or(RedisError::WrongArity);
        match option_of(context, option) {
            Some("ITEMS") => {
                has_items = true;
                break;
            }
            Some("NOCREATE") => creates = false,
            Some("NONSCALING") => is_fixed = true,
            Some(BLOCKED) => is_blocked = true,
            Some("CAPACITY") => reserve.capacity = capacity(context, value()?)?,
            Some("ERROR") => {
                let value = value()?.float().filter(|&value| is_rate(value));
                reserve.error_rate = value.ok_or(RedisError::Str("Bad error rate"))?;
            }
            Some("EXPANSION") => {
                let value = value()?.integer().and_then(|value| u64::try_from(value).ok());
                reserve.expansion = value.ok_or(BAD_EXPANSION)?;
                has_expansion = true;
            }
            Some("TIGHTENING") => {
                let value = value()?.float().ok_or(RedisError::Str("ERR bad tightening ratio"))?;
                if !is_rate(value) {
                    return Err(RedisError::Str("ERR (0 < tightening ratio range < 1)"));
                }
                tightening = Some(value);
            }
            Some("SEED") => {
                let value = Seed::try_from(value()?.as_slice());
                seed = Some(value.map_err(|_| RedisError::Str("ERR invalid seed"))?);
            }
            Some("VALIDATESCALETO") => scales_to = Some(capacity(context, value()?)?),
            _ => return Err(RedisError::Str("Unknown argument received")),
        }
    }
    let is_valkey = tightening.is_some() || seed.is_some();
    // Those are of valkey-bloom's filters. Earlier versions of this module took such commands, and
    // sent them.
    if is_blocked && is_valkey && !memory::follows(context) {
        return Err(RedisError::Str(match tightening {
            Some(_) => "ERR cannot use BLOCKED and TIGHTENING options together",
            None => "ERR cannot use BLOCKED and SEED options together",
        }));
    }
    // valkey-bloom accepts more, and RedisBloom any number.
    let most = match (memory::follows(context) && !is_blocked, is_valkey) {
        (true, true) => u32::MAX.into(),
        (true, false) => i64::MAX as u64,
        (false, _) => MAX_EXPANSION as u64,
    };
    if reserve.expansion > most {
        return Err(BAD_EXPANSION);
    }
    if is_fixed {
        if memory::follows(context) && has_expansion {
            reserve.unused_expansion = reserve.expansion as u32;
        }
        reserve.expansion = 0;
    }
    let items = options.as_slice();
    if has_items && items.is_empty() {
        return Err(RedisError::WrongArity);
    }
    let makes = || match is_valkey {
        false => NewFilter::from_reserve(context, reserve, is_blocked),
        true => NewFilter::Valkey(Shaping {
            rate: reserve.error_rate,
            tightening: tightening.unwrap_or(0.5),
            capacity: reserve.capacity,
            expansion: reserve.expansion as u32,
            seed: seed.unwrap_or(FIXED_SEED),
        }),
    };
    // The source has validated it, by its own settings.
    if let Some(capacity) = scales_to.filter(|_| !memory::follows(context)) {
        if reserve.expansion == 0 {
            return Err(RedisError::Str(
                "ERR cannot use NONSCALING and VALIDATESCALETO options together",
            ));
        }
        let scaled = match makes() {
            NewFilter::Blocked(reserve) => Scaling::new(0, 0, blocked::links_of(reserve)),
            NewFilter::Redis(reserve) => Scaling::new(0, 0, redisbloom::links_of(reserve)),
            NewFilter::Valkey(shaping) => Scaling::new(0, 0, valkey::links_of(shaping)),
        };
        scaled.check(capacity).map_err(|error| RedisError::Str(error.text()))?;
    }
    let added = add_items(context, name, items, || creates.then(makes))?;
    Ok(reply_added(context, &added))
}

/// The option of `BF.INSERT` that an argument is. RedisBloom looks at the first letters alone, and
/// sends them as they came.
fn option_of(context: &Context, argument: &Argument) -> Option<&'static str> {
    const ALL: [&str; 10] = [
        "ITEMS",
        "CAPACITY",
        "ERROR",
        "EXPANSION",
        "NOCREATE",
        "NONSCALING",
        BLOCKED,
        "TIGHTENING",
        "SEED",
        "VALIDATESCALETO",
    ];
    let option = ALL.into_iter().find(|option| argument.equals(option));
    if option.is_some() || !memory::follows(context) {
        return option;
    }
    let letter = |at| argument.as_slice().get(at).map_or(0, u8::to_ascii_lowercase);
    match [letter(0), letter(1), letter(2)] {
        [b'i', ..] => Some("ITEMS"),
        [b'c', ..] => Some("CAPACITY"),
        [b'e', b'r', _] => Some("ERROR"),
        [b'e', ..] => Some("EXPANSION"),
        [b'n', _, b'c'] => Some("NOCREATE"),
        [b'n', ..] => Some("NONSCALING"),
        _ => None,
    }
}

/// RedisBloom took more before its version 8, and valkey-bloom does.
fn capacity(context: &Context, argument: &Argument) -> Result<u64, RedisError> {
    let value = argument.integer().filter(|&value| value >= 1);
    let value = value.filter(|&value| value <= MAX_CAPACITY || memory::follows(context));
    value.map(|value| value as u64).ok_or(RedisError::Str("Bad capacity"))
}

/// `BF.LOAD key bytes`
fn bf_load(context: &Context, arguments: &[Argument]) -> RedisResult {
    let [_, name, bytes] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let mut key = name.open_writable(context);
    if key.get_mut()?.is_some() {
        return Err(BUSY);
    }
    let allowance = Allowance::new(context, 0);
    let filter = ValkeyFilter::from_bytes(bytes.as_slice(), |bytes| allowance.may_take(bytes));
    let filter = filter.map_err(|error| match error {
        BytesError::Damaged => RedisError::Str("ERR bloom object decoding failed"),
        BytesError::Version => {
            RedisError::Str("ERR bloom object decoding failed. Unsupported version")
        }
        BytesError::Memory => allowance.error(NO_MEMORY),
    })?;
    key.set(Filter::Valkey(Box::new(filter)))?;
    context.replicate_verbatim();
    name.notify(context, RESERVED);
    REDIS_OK
}

/// `BF.EXISTS key item`
fn bf_exists(context: &Context, arguments: &[Argument]) -> RedisResult {
    let [_, name, item] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let key = name.open(context);
    let filter = key.get()?;
    let hit = filter.map_or(Some(false), |filter| filter.contains(item.as_slice()));
    hit.map(RedisValue::Bool).ok_or(LOADING)
}

/// `BF.MEXISTS key item [item ...]`
fn bf_mexists(context: &Context, arguments: &[Argument]) -> RedisResult {
    let [_, name, items @ ..] = arguments else {
        return Err(RedisError::WrongArity);
    };
    if items.is_empty() {
        return Err(RedisError::WrongArity);
    }
    let key = name.open(context);
    match key.get()? {
        Some(filter) => {
            // Before the first reply nothing can fail.
            let (mut replies, mut count) = ([false; MAX_FEW], 0);
            let quick = filter.contains_few(items, |hit| {
                replies[count] = hit;
                count += 1;
            });
            if quick {
                reply_array(context, count);
                replies[..count].iter().for_each(|&hit| reply_bool(context, hit));
                return Ok(RedisValue::NoReply);
            }
            let hits = filter.contains_batch(items).ok_or(LOADING)?;
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

/// `BF.INFO key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION | ERROR | TIGHTENING |
/// MAXSCALEDCAPACITY]`: all of these on Valkey, the first five elsewhere, as the server's own
/// module replies.
fn bf_info(context: &Context, arguments: &[Argument]) -> RedisResult {
    let ([_, name, wanted @ ..], 2..=3) = (arguments, arguments.len()) else {
        return Err(RedisError::WrongArity);
    };
    let key = name.open(context);
    let filter = complete(key.get())?.ok_or(NO_KEY)?;
    let number = |number: u64| RedisValue::Integer(number.min(i64::MAX as u64) as i64);
    let expansion =
        filter.expansion().map_or(RedisValue::Null, |expansion| number(expansion.into()));
    let mut fields = vec![
        ("CAPACITY", "Capacity", number(filter.capacity())),
        ("SIZE", "Size", number(filter.size())),
        ("FILTERS", "Number of filters", number(filter.links() as u64)),
        ("ITEMS", "Number of items inserted", number(filter.keys())),
        ("EXPANSION", "Expansion rate", expansion),
    ];
    if !wanted.is_empty() || memory::is_on_valkey() {
        fields.insert(4, ("ERROR", "Error rate", RedisValue::Float(filter.rate())));
        if filter.expansion().is_some() {
            let scaled = number(filter.scaling().max_capacity());
            fields.push(("TIGHTENING", "Tightening ratio", RedisValue::Float(filter.tightening())));
            fields.push(("MAXSCALEDCAPACITY", "Max scaled capacity", scaled));
        }
    }
    if let [wanted] = wanted {
        fields.retain(|(argument, ..)| wanted.equals(argument));
        if fields.is_empty() {
            return Err(RedisError::Str("Invalid information value"));
        }
        // On Valkey the value; elsewhere, in version 2 of the protocol, an array of it.
        let is_map = context.get_flags().contains(ContextFlags::FLAGS_RESP3);
        if memory::is_on_valkey() || !is_map {
            let mut values: Vec<_> = fields.into_iter().map(|(.., value)| value).collect();
            return Ok(match values.pop() {
                Some(value) if memory::is_on_valkey() => value,
                value => RedisValue::Array(value.into_iter().collect()),
            });
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
fn bf_card(context: &Context, arguments: &[Argument]) -> RedisResult {
    let [_, name] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let key = name.open(context);
    let keys = complete(key.get())?.map_or(0, |filter| filter.keys());
    Ok(RedisValue::Integer(keys.min(i64::MAX as u64) as i64))
}

/// `BF.DEBUG key`
fn bf_debug(context: &Context, arguments: &[Argument]) -> RedisResult {
    let [_, name] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let key = name.open(context);
    let filter = complete(key.get())?.ok_or(NO_KEY)?;
    let mut lines = vec![format!("size:{}", filter.keys())];
    lines.extend(filter.shapes().iter().map(|link| {
        format!(
            "bytes:{} bits:{} hashes:{} hashwidth:{} capacity:{} size:{} ratio:{}",
            link.bytes,
            8 * link.bytes,
            link.hashes,
            link.hash_bits,
            link.capacity,
            link.size,
            short(link.rate),
        )
    }));
    Ok(RedisValue::Array(lines.into_iter().map(RedisValue::BulkString).collect()))
}

/// A rate with six digits at most, as C's `%g` prints it.
fn short(rate: f64) -> String {
    let exponential = format!("{rate:.5e}");
    let (digits, exponent) = exponential.split_once('e').unwrap_or((&exponential, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trim = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => digits.to_string(),
    };
    match exponent {
        -4..6 => trim(&format!("{rate:.*}", (5 - exponent) as usize)),
        _ => format!(
            "{}e{}{:02}",
            trim(digits),
            if exponent < 0 { '-' } else { '+' },
            exponent.abs()
        ),
    }
}

/// `BF.SCANDUMP key iterator`
fn bf_scandump(context: &Context, arguments: &[Argument]) -> RedisResult {
    let [_, name, iterator] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let key = name.open(context);
    let filter = complete(key.get())?.ok_or(NO_KEY)?;
    let iterator = iterator.integer().ok_or(RedisError::Str("Second argument must be numeric"))?;
    if matches!(&*filter, Filter::Valkey(_)) {
        return Err(RedisError::Str("ERR a filter of valkey-bloom has no dump"));
    }
    // For a piece and the server's copy of it, each of which would end the server.
    if !allocator::has_memory(2 * (filter.size() as usize).min(PIECE)) {
        return Err(RedisError::Str("ERR no memory for a piece of the dump"));
    }
    let (next, data) = match iterator {
        0 => (1, filter.header()),
        _ => filter.scan(iterator).unwrap_or_default(),
    };
    reply_array(context, 2);
    context.reply(Ok(RedisValue::Integer(next)));
    raw::reply_with_string_buffer(context.ctx, data.as_ptr().cast(), data.len());
    Ok(RedisValue::NoReply)
}

/// `BF.LOADCHUNK key iterator data`
fn bf_loadchunk(context: &Context, arguments: &[Argument]) -> RedisResult {
    let [_, name, iterator, data] = arguments else {
        return Err(RedisError::WrongArity);
    };
    let iterator =
        iterator.integer().ok_or(RedisError::Str("ERR Second argument must be numeric"))?;
    let allowance = Allowance::new(context, 0);
    let failed = |error: LoadError| match error {
        LoadError::Memory => allowance.error(NO_MEMORY),
        error => RedisError::Str(error.text()),
    };
    let begin = || {
        let loading = Loading::begin(data.as_slice(), |bytes| allowance.may_take(bytes));
        loading.map(Box::new).map_err(failed)
    };
    let follows = memory::follows(context);
    let mut key = name.open_writable(context);
    let done = || {
        context.replicate_verbatim();
        name.notify(context, if iterator == 1 { RESERVED } else { ADDED });
        REDIS_OK
    };
    let Some(mut lent) = key.get_mut()? else {
        if iterator != 1 {
            return Err(NO_KEY);
        }
        key.set(Filter::Loading(begin()?))?;
        return done();
    };
    // For the bytes that are compared.
    if !allocator::has_memory(data.as_slice().len()) {
        return Err(NO_MEMORY);
    }
    let filter = lent.filter();
    // Dumps have negative iterators while their checksums are computed.
    let is_empty = iterator < 0 && data.as_slice().is_empty();
    if is_empty || filter.has_piece(iterator, data.as_slice()) {
        return REDIS_OK;
    }
    let before = Facts::from_filter(filter);
    let complete = match (&mut *filter, iterator) {
        // RedisBloom writes pieces over complete filters, too.
        (Filter::Redis(filter), _) if follows => {
            filter.load_chunk(iterator, data.as_slice()).map_err(|_| BAD_DATA)?;
            Ok(None)
        }
        // From the beginning.
        (Filter::Loading(loading), 1) => begin().map(|begun| {
            *loading = begun;
            None
        }),
        (Filter::Loading(loading), _) => {
            loading.take(iterator, data.as_slice(), follows).map_err(failed)
        }
        _ => return Err(BAD_DATA),
    };
    counters::filter_changed(&before, &Facts::from_filter(filter));
    drop(lent);
    if let Some(complete) = complete? {
        key.replace_filter(complete.into())?;
    }
    done()
}

fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate < 1.0
}

/// The filter of a key that is there, unless it is still being loaded.
fn complete(value: Result<Option<FilterRef>, RedisError>) -> Result<Option<FilterRef>, RedisError> {
    match value? {
        Some(filter) if matches!(&*filter, Filter::Loading(_)) => Err(LOADING),
        filter => Ok(filter),
    }
}

fn reply_array(context: &Context, length: usize) {
    raw::reply_with_array(context.ctx, length as c_long);
}

/// 1 or 0, or in version 3 of the protocol true or false.
fn reply_bool(context: &Context, value: bool) {
    raw::reply_with_bool(context.ctx, c_int::from(value));
}

/// Replies for each item whether it is new, and then an error if the filter is full. A follower
/// leaves out the error: it fails a slot import, and with `panic-on-replicas` ends a replica.
fn reply_added(context: &Context, added: &Added) -> RedisValue {
    let replies_full = added.is_full && !memory::follows(context);
    reply_array(context, added.is_new.len() + usize::from(replies_full));
    added.is_new.iter().for_each(|&is_new| reply_bool(context, is_new));
    if replies_full {
        context.reply_error_string(FULL);
    }
    RedisValue::NoReply
}
