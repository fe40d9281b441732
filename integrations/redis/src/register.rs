//! The commands as the server lists them: flags, ACL categories, and what `COMMAND DOCS` and
//! `COMMAND INFO` say.

use std::ffi::{CStr, c_char, c_int};
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
    writes: bool,
    /// Its time does not depend on its arguments.
    fast: bool,
    /// Least number of arguments, the name included, and whether more are an error.
    least: c_int,
    exact: bool,
    since: &'static CStr,
    summary: &'static CStr,
    complexity: &'static CStr,
    /// Those after the key.
    arguments: &'static [Parameter],
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

use Kind::{Double, Integer, Text};
use Parameter::{Flag, Many, ManyAfter, One, OneOf, Option as Optional};

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Integer,
    Double,
}

static COMMANDS: [Command; 12] = [
    Command {
        name: c"bf.reserve",
        handler: reserve,
        writes: true,
        fast: true,
        least: 4,
        exact: false,
        since: c"1.0.0",
        summary: c"Makes an empty filter for a number of items and a false-positive rate.",
        complexity: c"O(1): memory comes as pages of zeros",
        arguments: &[
            One(c"error_rate", Double),
            One(c"capacity", Integer),
            Optional(c"expansion", c"EXPANSION", Integer),
            Flag(c"nonscaling", c"NONSCALING"),
            Flag(c"blocked", c"BLOCKED"),
        ],
    },
    Command {
        name: c"bf.add",
        handler: add,
        writes: true,
        fast: false,
        least: 3,
        exact: true,
        since: c"1.0.0",
        summary: c"Adds an item, and says whether it is new; makes the filter if there is none.",
        complexity: c"O(n), where n is the number of links",
        arguments: &[One(c"item", Text)],
    },
    Command {
        name: c"bf.madd",
        handler: mult_add,
        writes: true,
        fast: false,
        least: 3,
        exact: false,
        since: c"1.0.0",
        summary:
            c"Adds items, and says of each whether it is new; makes the filter if there is none.",
        complexity: c"O(m * n), where m is the number of items and n that of links",
        arguments: &[Many(c"item")],
    },
    Command {
        name: c"bf.insert",
        handler: insert,
        writes: true,
        fast: false,
        least: 2,
        exact: false,
        since: c"1.0.0",
        summary: c"Adds items to a filter, and makes it as the options say if there is none.",
        complexity: c"O(m * n), where m is the number of items and n that of links",
        arguments: &[
            Optional(c"capacity", c"CAPACITY", Integer),
            Optional(c"error", c"ERROR", Double),
            Optional(c"expansion", c"EXPANSION", Integer),
            Flag(c"nocreate", c"NOCREATE"),
            Flag(c"nonscaling", c"NONSCALING"),
            Flag(c"blocked", c"BLOCKED"),
            Optional(c"tightening", c"TIGHTENING", Double),
            Optional(c"seed", c"SEED", Text),
            Optional(c"scale_to", c"VALIDATESCALETO", Integer),
            ManyAfter(c"item", c"ITEMS"),
        ],
    },
    Command {
        name: c"bf.exists",
        handler: exists,
        writes: false,
        fast: true,
        least: 3,
        exact: true,
        since: c"1.0.0",
        summary: c"Says whether an item may have been added.",
        complexity: c"O(n), where n is the number of links",
        arguments: &[One(c"item", Text)],
    },
    Command {
        name: c"bf.mexists",
        handler: mult_exists,
        writes: false,
        fast: true,
        least: 3,
        exact: false,
        since: c"1.0.0",
        summary: c"Says of each item whether it may have been added.",
        complexity: c"O(m * n), where m is the number of items and n that of links",
        arguments: &[Many(c"item")],
    },
    Command {
        name: c"bf.info",
        handler: info,
        writes: false,
        fast: true,
        least: 2,
        exact: false,
        since: c"1.0.0",
        summary: c"Tells the capacity, size, links, items and growth of a filter.",
        complexity: c"O(n), where n is the number of links",
        arguments: &[OneOf(
            c"single_value",
            &[
                (c"capacity", c"CAPACITY"),
                (c"size", c"SIZE"),
                (c"filters", c"FILTERS"),
                (c"items", c"ITEMS"),
                (c"expansion", c"EXPANSION"),
                (c"error", c"ERROR"),
                (c"tightening", c"TIGHTENING"),
                (c"max_scaled_capacity", c"MAXSCALEDCAPACITY"),
            ],
        )],
    },
    Command {
        name: c"bf.card",
        handler: card,
        writes: false,
        fast: true,
        least: 2,
        exact: true,
        since: c"2.4.4",
        summary: c"Counts the items that were new when they were added.",
        complexity: c"O(n), where n is the number of links",
        arguments: &[],
    },
    Command {
        name: c"bf.debug",
        handler: debug,
        writes: false,
        fast: true,
        least: 2,
        exact: true,
        since: c"1.0.0",
        summary: c"Tells the shape of each link of a filter.",
        complexity: c"O(n), where n is the number of links",
        arguments: &[],
    },
    Command {
        name: c"bf.scandump",
        handler: scan_dump,
        writes: false,
        fast: true,
        least: 3,
        exact: true,
        since: c"1.0.0",
        summary: c"Replies the piece of a filter's dump that follows the iterator.",
        complexity: c"O(n), where n is the size of the piece; for the first one that of the filter",
        arguments: &[One(c"iterator", Integer)],
    },
    Command {
        name: c"bf.loadchunk",
        handler: load_chunk,
        writes: true,
        fast: false,
        least: 4,
        exact: true,
        since: c"1.0.0",
        summary: c"Loads a piece of a filter's dump.",
        complexity: c"O(n), where n is the size of the piece; for the last one that of the filter",
        arguments: &[One(c"iterator", Integer), One(c"data", Text)],
    },
    Command {
        name: c"bf.load",
        handler: load,
        writes: true,
        fast: false,
        least: 3,
        exact: true,
        since: c"1.0.0",
        summary: c"Makes a filter of what valkey-bloom writes to the AOF.",
        complexity: c"O(n), where n is the size of the filter",
        arguments: &[One(c"bytes", Text)],
    },
];

static VERSION: raw::RedisModuleCommandInfoVersion = raw::RedisModuleCommandInfoVersion {
    version: 1,
    sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
    sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
    sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
};

/// Makes the commands; false if the server does not take one. Categories and documentation are for
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
        let flags = match (self.writes, self.fast) {
            (true, false) => c"write deny-oom",
            (true, true) => c"write deny-oom fast",
            (false, _) => c"readonly fast",
        };
        let categories = match (self.writes, self.fast, has_category) {
            (true, false, false) => c"write",
            (true, true, false) => c"write fast",
            (false, _, false) => c"read fast",
            (true, false, true) => c"write bloom",
            (true, true, true) => c"write fast bloom",
            (false, _, true) => c"read fast bloom",
        };
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
        let access = match self.writes {
            true => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_INSERT,
            false => raw::REDISMODULE_CMD_KEY_RO,
        };
        let access = u64::from(access | raw::REDISMODULE_CMD_KEY_ACCESS);
        let none = || raw::RedisModuleCommandKeySpec {
            notes: null(),
            flags: 0,
            begin_search_type: 0,
            bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 {
                index: raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos: 0 },
            },
            find_keys_type: 0,
            fk: raw::RedisModuleCommandKeySpec__bindgen_ty_2 {
                range: raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
                    lastkey: 0,
                    keystep: 0,
                    limit: 0,
                },
            },
        };
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
            arity: if self.exact { self.least } else { -self.least },
            key_specs: keys.as_mut_ptr(),
            args: arguments.as_mut_ptr(),
        })
    }
}

impl Parameter {
    /// The words of `OneOf`; none otherwise.
    fn words(&self) -> Vec<raw::RedisModuleCommandArg> {
        let OneOf(_, words) = self else { return Vec::new() };
        let token = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN;
        let words = words.iter().map(|(name, word)| raw::RedisModuleCommandArg {
            token: word.as_ptr(),
            ..argument(name, token, 0)
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
            One(name, kind) => argument(name, kind.to_raw(), 0),
            Many(name) => argument(name, Text.to_raw(), many),
            Optional(name, word, kind) => with_word(word, argument(name, kind.to_raw(), optional)),
            Flag(name, word) => {
                let token = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN;
                with_word(word, argument(name, token, optional))
            }
            ManyAfter(name, word) => with_word(word, argument(name, Text.to_raw(), many)),
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

impl Kind {
    fn to_raw(self) -> raw::RedisModuleCommandArgType {
        match self {
            Text => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
            Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
            Double => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
        }
    }
}

fn argument(
    name: &CStr,
    kind: raw::RedisModuleCommandArgType,
    flags: c_int,
) -> raw::RedisModuleCommandArg {
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
    let none = null::<c_char>();
    raw::RedisModuleCommandArg {
        name: none,
        type_: 0,
        key_spec_index: 0,
        token: none,
        summary: none,
        since: none,
        flags: 0,
        deprecated_since: none,
        subargs: null_mut(),
        display_text: none,
    }
}
