//! Names of tables, rows and columns: as pages show them, and as results have them.

use benches::chart::{Line, Mark};
use benches::split_block;

pub(crate) const OURS: &str = "blocked-bloom";
pub(crate) const OURS_ONE: &str = "blocked-bloom, one key a call";
pub(crate) const ROCKSDB: &str = "RocksDB's loop, one key";
pub(crate) const ROCKSDB_BATCH: &str = "RocksDB's loop, batches of 32";
pub(crate) const BASELINE: [&str; 2] =
    ["memory-bound baseline: one line a key", "memory-bound baseline, prefetched 128 keys ahead"];
/// Keys of the filters that pages show: 100 k is as 10 k nearly everywhere.
pub(crate) const SHOWN_KEYS: [&str; 4] = ["10 k", "1 M", "10 M", "100 M"];

/// Rows of the tables that compare filters: the name on the page, and the row and kind in the
/// comparison. `{v}` stands for the version of a package, `{b}` for its bits per key.
pub(crate) const FILTERS: [(&str, &str, &str); 16] = [
    ("**blocked-bloom**", OURS, OURS),
    ("one key a call", OURS_ONE, OURS),
    ("in small pages", "blocked-bloom, small pages", ""),
    ("blocked-bloom with AVX2", "blocked-bloom, AVX2", "blocked-bloom, AVX2"),
    ("the same, one key a call", "blocked-bloom, AVX2, one key a call", "blocked-bloom, AVX2"),
    ("RocksDB's AVX2 loop, batches of 32", ROCKSDB_BATCH, "RocksDB's loop"),
    ("RocksDB's AVX2 loop, one key", ROCKSDB, "RocksDB's loop"),
    (
        "split-block loop (Parquet's scheme), AVX2",
        "32-byte split blocks, AVX2",
        "32-byte split blocks",
    ),
    (
        "split-block loop, prefetching",
        "split blocks, prefetched 128 keys ahead",
        "32-byte split blocks",
    ),
    ("sbbf-rs-safe {v}", "sbbf-rs-safe", "sbbf-rs-safe"),
    ("parquet {v} `Sbbf` †", "parquet Sbbf †", "parquet"),
    ("sharded Ribbon of `blocked-bloom-ribbon`, {b} bits", "sharded Ribbon", "sharded Ribbon"),
    ("pleat {v} `Ribbon<7>`, {b} bits", "pleat Ribbon", "pleat"),
    ("xorf {v} `BinaryFuse8`, {b} bits", "xorf BinaryFuse8", "xorf BinaryFuse8"),
    ("fastbloom {v}", "fastbloom", "fastbloom"),
    ("bloomfilter {v} †", "bloomfilter †", "bloomfilter"),
];

/// Rows in all parts but the first of the table in `docs/benchmarks.md`, by the beginnings of their
/// names.
pub(crate) const FOLLOWED: [&str; 5] = [
    "**blocked-bloom**",
    "blocked-bloom with",
    "RocksDB's AVX2 loop, batches",
    "split-block",
    "sbbf",
];

/// Rows in the first part of that table, by the beginnings of their names. The front page shows the
/// other rows.
pub(crate) const FIRST: [&str; 2] = ["**blocked-bloom**", "in small pages"];

/// Rows of the table of short calls.
pub(crate) const SHORT: [(&str, &str); 3] =
    [("blocked-bloom", OURS), ("one by one", OURS_ONE), ("RocksDB's loop, batches", ROCKSDB_BATCH)];

pub(crate) const ENGINE_TABLES: [(&str, &str); 4] = [
    ("3276 keys a table", "up to 3,276 keys a table, 82 KB"),
    ("200000 keys a table", "200,000, 5 MB"),
    ("5000000 keys a table", "5,000,000, 124 MB"),
    ("5000000 keys a table, whole lines and huge pages", "5,000,000, whole lines and huge pages"),
];

pub(crate) const ENGINE_ROWS: [(&str, &str); 6] = [
    ("`contains_hash` of each opened filter", "one by one"),
    ("`prefetch_hash` of all, then `contains_hash`", "prefetch first"),
    ("`contains_hash_in` of the stored bytes", "stored bytes"),
    ("`from_bytes_trusted` and `contains_hash` each time", "opened each time"),
    ("RocksDB's loop, inlined, over the same blocks", "RocksDB's loop"),
    ("lsm-tree's standard filter, as many bits", "lsm-tree's filter"),
];

/// Kinds of keys in the tables of short calls.
pub(crate) const CALLS: [&str; 4] = ["hashes", "16-byte keys", "integers", "strings of 23 bytes"];

/// Rows about memtables: the name on the page, the keys, and the row.
pub(crate) const MEMTABLES: [(&str, &str, &str); 8] = [
    ("new key: `insert_hash`", "new keys", "insert_hash"),
    ("64 a call", "new keys", "insert_hashes"),
    ("one writer", "new keys", "one writer, insert_hash"),
    ("one writer, 64 a call", "new keys", "one writer, insert_hashes"),
    ("fastbloom's `AtomicBloomFilter`", "new keys", "fastbloom's atomic filter"),
    ("absent key: `contains_hash`", "absent keys", "contains_hash"),
    ("64 a call", "absent keys", "contains_hashes"),
    ("fastbloom's `AtomicBloomFilter`", "absent keys", "fastbloom's atomic filter"),
];

pub(crate) const PLANES: [(&str, &str); 5] = [
    ("1", "1 columns"),
    ("2", "2 columns"),
    ("4", "4 columns"),
    ("6", "6 columns"),
    ("6, rows left in every 512, so that early stop spares nothing", "6 columns, all planes"),
];

pub(crate) const PLANES_METHODS: [(&str, &str); 4] = [
    ("the fastest scan of the rows (AVX2)", "rows, AVX2"),
    ("planes, cold", "planes, cold"),
    ("in batches, cold", "planes by batch, cold"),
    ("planes, warm", "planes, warm"),
];

pub(crate) const HASHING: [(&str, &str, &str); 10] = [
    ("`[u8; 16]` in a loop", "16 bytes", "one by one"),
    ("`hash_batch`", "16 bytes", "hash_batch"),
    ("slices of 16 bytes, `hash_batch`", "slices of 16 bytes", "hash_batch"),
    ("`[u8; 8]` in a loop", "8 bytes", "one by one"),
    ("`hash_batch`", "8 bytes", "hash_batch"),
    ("`hash_u64s`", "integers", "hash_u64s"),
    ("`[u8; 16]` in a loop, then `contains_hashes`", "16 bytes looked up", "one by one"),
    ("`contains_batch`", "16 bytes looked up", "contains_batch"),
    ("integers in a loop, then `contains_hashes`", "integers looked up", "one by one"),
    ("`contains_u64s`", "integers looked up", "contains_u64s"),
];

pub(crate) const FILES: [(&str, &str); 8] = [
    ("new session: requests", "absent value, new session, statistics, 0 us a request; requests"),
    ("MB", "absent value, new session, statistics, 0 us a request; MB"),
    ("ms", "absent value, new session, statistics, 0 us a request; ms"),
    ("ms, slow", "absent value, new session, statistics, 5000 us a request; ms"),
    (
        "footers known: requests",
        "absent value, footers known, statistics, 0 us a request; requests",
    ),
    ("ms", "absent value, footers known, statistics, 0 us a request; ms"),
    ("ms, slow", "absent value, footers known, statistics, 5000 us a request; ms"),
    ("join, 20 keys: requests", "join with 20 keys, one list, 0 us a request; requests"),
];

/// Systems of classical filters, and the row of one key at a time: the system's own loop where it
/// was written anew.
pub(crate) const CLASSICAL: [(&str, &str, &str); 4] = [
    ("Guava", "guava", "naive"),
    ("Spark, version 2", "spark", "naive"),
    ("RedisBloom, one link", "redis", "naive"),
    ("Cassandra (one by one here, not its loop)", "cassandra", "key"),
];

/// Rows of Ribbon filters: name, row of the comparison, and that with which it is compared.
pub(crate) const RIBBON_LOOKUPS: [(&str, &str, &str); 6] = [
    ("Bloom", OURS, OURS),
    ("sharded", "sharded Ribbon", OURS),
    ("RocksDB's", "RocksDB's Ribbon", OURS),
    ("`Ribbon<7>` of the crate `pleat`", "pleat Ribbon", OURS),
    ("Bloom, one key a call", OURS_ONE, OURS_ONE),
    ("sharded, one key a call", "sharded Ribbon, one key a call", OURS_ONE),
];

pub(crate) const RIBBON_BUILT: [(&str, &str, &str); 4] = [
    ("Bloom", OURS, OURS),
    ("sharded", "sharded Ribbon", OURS),
    ("RocksDB's", "RocksDB's Ribbon", OURS),
    ("`Ribbon<7>` of the crate `pleat`", "pleat", OURS),
];

/// Rows of `compare --only split`: the name on the page, the index of the bound, and the row.
pub(crate) const SPLIT: [(&str, usize, &str); 7] = [
    ("one a call", 0, split_block::OURS),
    ("one a call, relative to sbbf-rs-safe", 1, split_block::OURS),
    ("`with_lookup`, relative to sbbf-rs-safe", 1, split_block::OURS_ONCE),
    ("1,024 a call", 2, split_block::OURS),
    ("keys, one a call", 3, split_block::OURS),
    ("keys, 1,024 a call", 4, split_block::OURS),
    ("building", 5, split_block::OURS),
];

pub(crate) const SPLIT_SIZES: [(&str, usize); 4] =
    [("128 KiB", 128 << 10), ("2 MiB", 2 << 20), ("32 MiB", 32 << 20), ("512 MiB", 512 << 20)];

/// Rows of others that look up one key at a time.
pub(crate) const SINGLE: [&str; 6] =
    [ROCKSDB, "sbbf-rs-safe", "parquet Sbbf †", "fastbloom", "bloomfilter †", "xorf BinaryFuse8"];

/// The groups of the page, in its order.
pub(crate) const FASTEST: &str = "the fastest kernel";
pub(crate) const AVX2: &str = "with AVX2 alone";
pub(crate) const SINGLE_KEYS: &str = "keys one by one";
pub(crate) const ENGINE: &str = "filters of 20 tables";
pub(crate) const RIBBON: &str = "Ribbon filters";
pub(crate) const PROJECT_FILTERS: &str = "other filters of this project";
pub(crate) const RATES: &str = "false positives";
pub(crate) const GROUPS: [&str; 7] =
    [FASTEST, AVX2, SINGLE_KEYS, ENGINE, RIBBON, PROJECT_FILTERS, RATES];

/// The picture of [`files`](crate::pictures::files).
pub(crate) const FILES_PICTURE: &str = "docs/img/files.svg";

/// Methods of finding an absent value in a table of files, as the results name them.
pub(crate) const FILE_METHODS: [(&str, &str, Line, Mark); 4] = [
    ("plain", "#8b949e", Line::Thin, Mark::Square),
    ("Bloom filters of row groups", "#3b82f6", Line::Thin, Mark::Dot),
    ("index by ranges", "#e8590c", Line::Thick, Mark::Dot),
    ("index in memory", "#2f9e44", Line::Thin, Mark::Ring),
];

/// Returns whether a row is of this project or is not a filter.
pub(crate) fn is_ours(row: &str) -> bool {
    let ours = ["blocked-bloom", "sharded Ribbon", "RocksDB's Ribbon", "memory-bound"];
    ours.iter().any(|ours| row.starts_with(ours))
}
