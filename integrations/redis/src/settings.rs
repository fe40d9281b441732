//! What filters are made for where a command does not say it: RedisBloom's three settings, and how
//! filters lie in memory; as load arguments, and as configuration where the server has it.
//!
//! They are of this server at this moment alone: a command that makes a filter is sent to replicas
//! and the AOF with all numbers that it used, and with its form, whichever it named.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

use redis_module::{Context, raw};

use crate::log;
use crate::reserve::{MAX_CAPACITY, MAX_EXPANSION, Reserve};

#[derive(Clone, Copy)]
struct Settings {
    reserve: Reserve,
    huge_pages: bool,
    /// Most bytes of a filter; 0 for no limit.
    memory_limit: u64,
    redisbloom_type: RedisBloomType,
}

/// Which keys get RedisBloom's module type. Keys of files and payloads keep the type that they
/// have.
#[derive(Clone, Copy, PartialEq)]
enum RedisBloomType {
    No,
    /// All filters of RedisBloom, also those that arrive as commands.
    Read,
    /// The same, and clients' commands make such filters.
    Write,
}

static SETTINGS: Mutex<Settings> = Mutex::new(Settings {
    reserve: Reserve::BUILT_IN,
    huge_pages: false,
    memory_limit: 0,
    redisbloom_type: RedisBloomType::No,
});

fn now() -> Settings {
    *SETTINGS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The current settings for a new filter.
pub(crate) fn settings() -> Reserve {
    now().reserve
}

/// Whether links of 2 MiB and more that are made now are advised to be on huge pages. Each is
/// cleared as a whole, which the command that uses it first waits for.
pub(crate) fn huge_pages() -> bool {
    now().huge_pages
}

/// Most bytes of a filter.
pub(crate) fn memory_limit() -> u64 {
    match now().memory_limit {
        0 => u64::MAX,
        limit => limit,
    }
}

/// Whether all filters of RedisBloom have keys of its module type, however they arrive.
pub(crate) fn keeps_type_of_redisbloom() -> bool {
    now().redisbloom_type != RedisBloomType::No
}

/// Whether new filters are RedisBloom's, with keys of its module type.
pub(crate) fn makes_filters_of_redisbloom() -> bool {
    now().redisbloom_type == RedisBloomType::Write
}

struct Setting {
    /// The name of the configuration, which is RedisBloom's or valkey-bloom's.
    name: &'static CStr,
    /// Other names, of the load argument.
    arguments: &'static [&'static str],
    read: fn(&Settings) -> String,
    /// The error, if the text is none of its values.
    write: fn(&mut Settings, &[u8]) -> Result<(), String>,
}

/// The last one is a load argument alone, the others are configuration too.
static ALL: [Setting; 6] = [
    Setting {
        name: c"bf-error-rate",
        arguments: &["ERROR_RATE", "bloom-fp-rate"],
        read: |settings| settings.reserve.error_rate.to_string(),
        write: |settings, text| {
            let rate = number::<f64>(text)?;
            if !(rate > 0.0 && rate < 1.0) {
                return Err("must be in the range (0.000000, 1.000000)".into());
            }
            // Not limited here: a command of RedisBloom's without a rate means the whole one.
            settings.reserve.error_rate = rate;
            Ok(())
        },
    },
    Setting {
        name: c"bf-initial-size",
        arguments: &["INITIAL_SIZE", "bloom-capacity"],
        read: |settings| settings.reserve.capacity.to_string(),
        write: |settings, text| {
            settings.reserve.capacity = number_within(text, 1, MAX_CAPACITY)?;
            Ok(())
        },
    },
    Setting {
        name: c"bf-expansion-factor",
        arguments: &["EXPANSION", "bloom-expansion"],
        read: |settings| settings.reserve.expansion.to_string(),
        write: |settings, text| {
            settings.reserve.expansion = number_within(text, 0, MAX_EXPANSION)?;
            Ok(())
        },
    },
    Setting {
        name: c"bf-huge-pages",
        arguments: &["HUGE_PAGES"],
        read: |settings| if settings.huge_pages { "yes" } else { "no" }.into(),
        write: |settings, text| {
            settings.huge_pages = match text.to_ascii_lowercase().as_slice() {
                b"yes" => true,
                b"no" => false,
                _ => return Err("must be yes or no".into()),
            };
            Ok(())
        },
    },
    Setting {
        name: c"bloom-memory-usage-limit",
        arguments: &[],
        read: |settings| settings.memory_limit.to_string(),
        write: |settings, text| {
            settings.memory_limit = number_within(text, 0, i64::MAX)?;
            Ok(())
        },
    },
    Setting {
        name: c"redisbloom-type",
        arguments: &["REDISBLOOM_TYPE"],
        read: |_| String::new(),
        write: |settings, text| {
            settings.redisbloom_type = match text.to_ascii_lowercase().as_slice() {
                b"no" => RedisBloomType::No,
                b"read" => RedisBloomType::Read,
                b"write" => RedisBloomType::Write,
                _ => return Err("must be no, read or write".into()),
            };
            Ok(())
        },
    },
];

fn number<T: std::str::FromStr>(text: &[u8]) -> Result<T, String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| "is not a number".into())
}

fn number_within(text: &[u8], least: i64, most: i64) -> Result<u64, String> {
    let number = number::<i64>(text)?;
    if !(least..=most).contains(&number) {
        return Err(format!("must be in the range [{least}, {most}]"));
    }
    Ok(number as u64)
}

fn set(setting: &Setting, text: &[u8]) -> Result<(), String> {
    let mut settings = SETTINGS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    (setting.write)(&mut settings, text)
        .map_err(|error| format!("value for `{}` {error}", setting.name.to_string_lossy()))
}

/// How load arguments begin that are of no use here: of cuckoo filters, and how valkey-bloom's own
/// filters are made and moved.
const IGNORED: [&str; 5] =
    ["cf_", "cf-", "bloom-tightening-ratio", "bloom-use-random-seed", "bloom-defrag-enabled"];

/// Reads load arguments, which are names and values. Those of RedisBloom's other types are of no
/// use here, and do not stop the start.
pub(crate) fn read_arguments(arguments: &[&[u8]]) -> Result<(), String> {
    let (pairs, rest) = arguments.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("load arguments are names with values, and the last name has no value".into());
    }
    for [name, value] in pairs {
        let text = log::printable(name);
        let is = |of: &[u8]| name.eq_ignore_ascii_case(of);
        let setting = ALL.iter().find(|of| {
            is(of.name.to_bytes()) || of.arguments.iter().any(|name| is(name.as_bytes()))
        });
        if let Some(setting) = setting {
            set(setting, value)?;
        } else if IGNORED.iter().any(|start| {
            name.get(..start.len()).is_some_and(|name| name.eq_ignore_ascii_case(start.as_bytes()))
        }) {
            log::warn(&format!("load argument `{text}` is ignored"));
        } else {
            return Err(format!("unknown load argument `{text}`"));
        }
    }
    Ok(())
}

/// Registers the settings as configuration of the server, by RedisBloom's names. Where names must
/// begin with the module's, `blocked-bloom.` precedes them. False if the server's
/// own configuration has an invalid value.
pub(crate) fn register(context: &Context) -> bool {
    // SAFETY: the server writes these pointers once, before anything else of the module runs.
    let functions =
        unsafe { (raw::RedisModule_RegisterStringConfig, raw::RedisModule_LoadConfigs) };
    let (Some(register), Some(load)) = functions else { return true };
    // SAFETY: the server writes this pointer once, too. Redis 8 takes names without a prefix;
    // Valkey calls itself Redis 7.2 here, and does not.
    let version = unsafe { raw::RedisModule_GetServerVersion.map_or(0, |version| version()) };
    let unprefixed = if version >= 8 << 16 { raw::REDISMODULE_CONFIG_UNPREFIXED } else { 0 };
    for setting in &ALL[..ALL.len() - 1] {
        let default = CString::new((setting.read)(&now())).unwrap_or_default();
        for flags in [unprefixed, 0] {
            // SAFETY: called while the module is loaded; names and values end with 0, and the
            // server copies them; the private data is static.
            let status = unsafe {
                register(
                    context.ctx,
                    setting.name.as_ptr(),
                    default.as_ptr(),
                    flags,
                    Some(get),
                    Some(set_config),
                    None,
                    (&raw const *setting).cast_mut().cast(),
                )
            };
            if status == raw::REDISMODULE_OK as c_int {
                break;
            }
        }
    }
    // SAFETY: called once, after all were registered.
    unsafe { load(context.ctx) == raw::REDISMODULE_OK as c_int }
}

/// The server does not take over the string that it gets, which must live until it requests the
/// next.
struct Held(*mut raw::RedisModuleString);
// SAFETY: a string of the server, which is used within its lock only.
unsafe impl Send for Held {}
static HELD: Mutex<Held> = Mutex::new(Held(null_mut()));

unsafe extern "C" fn get(_: *const c_char, data: *mut c_void) -> *mut raw::RedisModuleString {
    // SAFETY: the registered pointer, to an element of `ALL`.
    let setting = unsafe { &*data.cast::<Setting>() };
    let text = (setting.read)(&now());
    let mut held = HELD.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // SAFETY: the server writes these pointers once, before it asks for a setting. The string
    // before is the module's, and the server no longer uses it.
    unsafe {
        if let (false, Some(free)) = (held.0.is_null(), raw::RedisModule_FreeString) {
            free(null_mut(), held.0);
        }
        held.0 = raw::RedisModule_CreateString
            .map_or(null_mut(), |create| create(null_mut(), text.as_ptr().cast(), text.len()));
    }
    held.0
}

unsafe extern "C" fn set_config(
    _: *const c_char,
    value: *mut raw::RedisModuleString,
    data: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: the registered pointer, to an element of `ALL`.
    let setting = unsafe { &*data.cast::<Setting>() };
    let mut length = 0;
    let start = raw::string_ptr_len(value, &raw mut length);
    // SAFETY: the server's string, which lives and does not change while this runs.
    let text = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) };
    let Err(text) = set(setting, text) else { return raw::REDISMODULE_OK as c_int };
    // SAFETY: the server writes the pointer once, before it changes a setting; it frees the string
    // that it gets.
    unsafe {
        if let Some(create) = raw::RedisModule_CreateString {
            *error = create(null_mut(), text.as_ptr().cast(), text.len());
        }
    }
    raw::REDISMODULE_ERR as c_int
}
