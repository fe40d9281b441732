//! The commands as the server lists them: flags, ACL categories, and what `COMMAND DOCS` and
//! `COMMAND INFO` say.

use std::ffi::{CStr, c_int};
use std::ptr::{null, null_mut};

use redis_module::{Context, raw};

use crate::commands::*;

/// A command of the server's interface.
pub(crate) type Handler = unsafe extern "C" fn(
    *mut raw::RedisModuleCtx,
    *mut *mut raw::RedisModuleString,
    c_int,
) -> c_int;

struct Command {
    name: &'static CStr,
    handler: Handler,
    access: Access,
    /// Number of arguments, the name included; if negative, at least as many.
    arity: c_int,
    since: &'static CStr,
    summary: &'static CStr,
    complexity: &'static CStr,
    /// Those after the key.
    arguments: &'static [Parameter],
}

/// Flags, and categories of ACLs, without and with the module's own.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
    /// The time does not depend on the arguments.
    WriteFast,
}

/// An argument, as the documentation of commands has it.
enum Parameter {
    One(&'static CStr, Kind),
    /// One or more.
    Many(&'static CStr),
    /// A word with a value, or nothing.
    Option(&'static CStr, &'static CStr, Kind),
    /// A word, or nothing.
    Flag(&'static CStr, &'static CStr),
    /// A word and one or more values.
    ManyAfter(&'static CStr, &'static CStr),
    /// One of these words, or nothing.
    OneOf(&'static CStr, &'static [(&'static CStr, &'static CStr)]),
}

use Parameter::{Flag, Many, ManyAfter, One, OneOf, Option as Optional};

type Kind = raw::RedisModuleCommandArgType;
const TEXT: Kind = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING;
const INTEGER: Kind = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER;
const DOUBLE: Kind = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE;
const TOKEN: Kind = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN;

macro_rules! commands {
    ($($name:literal => $handler:ident, $access:ident, $arity:literal, since $since:literal,
        $summary:literal, $complexity:literal, $arguments:expr;)*) => {
        &[$(Command {
            name: $name, handler: $handler, access: Access::$access, arity: $arity, since: $since,
            summary: $summary, complexity: $complexity, arguments: $arguments,
        }),*]
    };
}

static COMMANDS: &[Command] = commands! {
    c"bf.reserve" => reserve, WriteFast, -4, since c"1.0.0",
        c"Creates an empty filter for a number of items and a false-positive rate.",
        c"O(1): memory comes as pages of zeros",
        &[
            One(c"error_rate", DOUBLE), One(c"capacity", INTEGER),
            Optional(c"expansion", c"EXPANSION", INTEGER),
            Flag(c"nonscaling", c"NONSCALING"), Flag(c"blocked", c"BLOCKED"),
        ];
    c"bf.add" => add, Write, 3, since c"1.0.0",
        c"Adds an item, and says whether it is new; makes the filter if there is none.",
        c"O(n), where n is the number of links",
        &[One(c"item", TEXT)];
    c"bf.madd" => mult_add, Write, -3, since c"1.0.0",
        c"Adds items, and says of each whether it is new; makes the filter if there is none.",
        c"O(m * n), where m is the number of items and n that of links",
        &[Many(c"item")];
    c"bf.insert" => insert, Write, -2, since c"1.0.0",
        c"Adds items to a filter, and makes it as the options say if there is none.",
        c"O(m * n), where m is the number of items and n that of links",
        &[
            Optional(c"capacity", c"CAPACITY", INTEGER), Optional(c"error", c"ERROR", DOUBLE),
            Optional(c"expansion", c"EXPANSION", INTEGER), Flag(c"nocreate", c"NOCREATE"),
            Flag(c"nonscaling", c"NONSCALING"), Flag(c"blocked", c"BLOCKED"),
            Optional(c"tightening", c"TIGHTENING", DOUBLE), Optional(c"seed", c"SEED", TEXT),
            Optional(c"scale_to", c"VALIDATESCALETO", INTEGER), ManyAfter(c"item", c"ITEMS"),
        ];
    c"bf.exists" => exists, Read, 3, since c"1.0.0",
        c"Says whether an item may have been added.",
        c"O(n), where n is the number of links",
        &[One(c"item", TEXT)];
    c"bf.mexists" => mult_exists, Read, -3, since c"1.0.0",
        c"Says of each item whether it may have been added.",
        c"O(m * n), where m is the number of items and n that of links",
        &[Many(c"item")];
    c"bf.info" => info, Read, -2, since c"1.0.0",
        c"Tells the capacity, size, links, items and growth of a filter.",
        c"O(n), where n is the number of links",
        &[OneOf(c"single_value", &[
            (c"capacity", c"CAPACITY"), (c"size", c"SIZE"), (c"filters", c"FILTERS"),
            (c"items", c"ITEMS"), (c"expansion", c"EXPANSION"), (c"error", c"ERROR"),
            (c"tightening", c"TIGHTENING"), (c"max_scaled_capacity", c"MAXSCALEDCAPACITY"),
        ])];
    c"bf.card" => card, Read, 2, since c"2.4.4",
        c"Counts the items that were new when they were added.",
        c"O(n), where n is the number of links",
        &[];
    c"bf.debug" => debug, Read, 2, since c"1.0.0",
        c"Tells the shape of each link of a filter.",
        c"O(n), where n is the number of links",
        &[];
    c"bf.scandump" => scan_dump, Read, 3, since c"1.0.0",
        c"Replies the piece of a filter's dump that follows the iterator.",
        c"O(n), where n is the size of the piece; for the first one that of the filter",
        &[One(c"iterator", INTEGER)];
    c"bf.loadchunk" => load_chunk, Write, 4, since c"1.0.0",
        c"Loads a piece of a filter's dump.",
        c"O(n), where n is the size of the piece; for the last one that of the filter",
        &[One(c"iterator", INTEGER), One(c"data", TEXT)];
    c"bf.load" => load, Write, 3, since c"1.0.0",
        c"Creates a filter from the bytes that valkey-bloom writes to the AOF.",
        c"O(n), where n is the size of the filter",
        &[One(c"bytes", TEXT)];
};

static VERSION: raw::RedisModuleCommandInfoVersion = raw::RedisModuleCommandInfoVersion {
    version: 1,
    sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
    sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
    sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
};

/// Registers the commands; false if the server refuses one. Categories and documentation are for
/// servers that know them.
pub(crate) fn register(context: &Context) -> bool {
    // SAFETY: called while the module is loaded, when the server has written its pointers; the
    // names end with 0, and the server copies them.
    unsafe {
        let has_category = raw::RedisModule_AddACLCategory
            .is_some_and(|add| add(context.ctx, c"bloom".as_ptr()) == raw::REDISMODULE_OK as c_int);
        COMMANDS.iter().all(|command| command.register(context, has_category).is_some())
    }
}

impl Command {
    /// # Safety
    ///
    /// The module is being loaded.
    unsafe fn register(&self, context: &Context, has_category: bool) -> Option<()> {
        let ok = raw::REDISMODULE_OK as c_int;
        let (flags, categories) = match self.access {
            Access::Read => (c"readonly fast", [c"read fast", c"read fast bloom"]),
            Access::Write => (c"write deny-oom", [c"write", c"write bloom"]),
            Access::WriteFast => (c"write deny-oom fast", [c"write fast", c"write fast bloom"]),
        };
        let categories = categories[usize::from(has_category)];
        // SAFETY: the caller's promise: functions of the server's interface, with texts that end
        // with 0 and lists that end with zeros, which the server copies.
        unsafe {
            let (create, get) = (raw::RedisModule_CreateCommand?, raw::RedisModule_GetCommand?);
            if create(context.ctx, self.name.as_ptr(), Some(self.handler), flags.as_ptr(), 1, 1, 1)
                != ok
            {
                return None;
            }
            let command = get(context.ctx, self.name.as_ptr());
            if let Some(set) = raw::RedisModule_SetCommandACLCategories
                && set(command, categories.as_ptr()) != ok
            {
                return None;
            }
            if let Some(set) = raw::RedisModule_SetCommandInfo {
                self.describe(|info| set(command, info) == ok).then_some(())?;
            }
        }
        Some(())
    }

    /// Passes the documentation to `set`.
    fn describe(&self, set: impl FnOnce(&raw::RedisModuleCommandInfo) -> bool) -> bool {
        let access = match self.access {
            Access::Read => raw::REDISMODULE_CMD_KEY_RO,
            _ => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_INSERT,
        };
        let access = u64::from(access | raw::REDISMODULE_CMD_KEY_ACCESS);
        // SAFETY: numbers, null pointers and unions of numbers.
        let none = || unsafe { std::mem::zeroed::<raw::RedisModuleCommandKeySpec>() };
        let key = raw::RedisModuleCommandKeySpec {
            flags: access,
            begin_search_type: raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX,
            bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 {
                index: raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos: 1 },
            },
            find_keys_type: raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE,
            fk: raw::RedisModuleCommandKeySpec__bindgen_ty_2 {
                range: raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
                    lastkey: 0,
                    keystep: 1,
                    limit: 0,
                },
            },
            ..none()
        };
        let mut keys = [key, none()];
        // Made before the arguments that point at them.
        let mut words: Vec<Vec<raw::RedisModuleCommandArg>> =
            self.arguments.iter().map(Parameter::words).collect();
        let mut arguments = vec![raw::RedisModuleCommandArg {
            key_spec_index: 0,
            ..argument(c"key", raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY, 0)
        }];
        arguments.extend(self.arguments.iter().zip(&mut words).map(|(of, words)| of.to_raw(words)));
        arguments.push(last_argument());
        set(&raw::RedisModuleCommandInfo {
            version: &raw const VERSION,
            summary: self.summary.as_ptr(),
            complexity: self.complexity.as_ptr(),
            since: self.since.as_ptr(),
            history: null_mut(),
            tips: null(),
            arity: self.arity,
            key_specs: keys.as_mut_ptr(),
            args: arguments.as_mut_ptr(),
        })
    }
}

impl Parameter {
    /// The words of `OneOf`; none otherwise.
    fn words(&self) -> Vec<raw::RedisModuleCommandArg> {
        let OneOf(_, words) = self else { return Vec::new() };
        let words = words.iter().map(|(name, word)| raw::RedisModuleCommandArg {
            token: word.as_ptr(),
            ..argument(name, TOKEN, 0)
        });
        words.chain([last_argument()]).collect()
    }

    fn to_raw(&self, words: &mut Vec<raw::RedisModuleCommandArg>) -> raw::RedisModuleCommandArg {
        let (optional, many) = (
            raw::REDISMODULE_CMD_ARG_OPTIONAL as c_int,
            raw::REDISMODULE_CMD_ARG_MULTIPLE as c_int,
        );
        let with_word = |word: &'static CStr, argument| raw::RedisModuleCommandArg {
            token: word.as_ptr(),
            ..argument
        };
        match self {
            One(name, kind) => argument(name, *kind, 0),
            Many(name) => argument(name, TEXT, many),
            Optional(name, word, kind) => with_word(word, argument(name, *kind, optional)),
            Flag(name, word) => with_word(word, argument(name, TOKEN, optional)),
            ManyAfter(name, word) => with_word(word, argument(name, TEXT, many)),
            OneOf(name, _) => {
                let one_of = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF;
                raw::RedisModuleCommandArg {
                    subargs: words.as_mut_ptr(),
                    ..argument(name, one_of, optional)
                }
            }
        }
    }
}

fn argument(name: &CStr, kind: Kind, flags: c_int) -> raw::RedisModuleCommandArg {
    raw::RedisModuleCommandArg {
        name: name.as_ptr(),
        type_: kind,
        key_spec_index: -1,
        flags,
        ..last_argument()
    }
}

/// What ends a list of arguments.
fn last_argument() -> raw::RedisModuleCommandArg {
    // SAFETY: numbers and null pointers.
    unsafe { std::mem::zeroed() }
}
