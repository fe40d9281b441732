//! One index over many files. Every query returns the same rows as without the index, even if the
//! files have changed since.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blocked_bloom::KeyHash;
use blocked_bloom_datafusion::{
    StoredFileIndex, build_file_index, file_index_column, update_file_index, with_file_index,
};
use blocked_bloom_file_index::{FileIndexOptions, SameFile};
use datafusion::arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::collect;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;

pub(crate) use self::data::Random;
use self::data::{START, retyped, schema, spans, write};
use self::store::{Counting, Requested};

#[path = "../../examples/files/data.rs"]
mod data;
#[expect(dead_code, reason = "the example needs more of it")]
#[path = "../../examples/files/store.rs"]
mod store;

const URL: &str = "count://data";
const FILES: usize = 20;
pub(crate) const COLUMNS: [&str; 6] = ["trace_id", "user_id", "amount", "score", "day", "ts"];

/// Files and an index over them.
pub(crate) struct Files {
    pub(crate) directory: tempfile::TempDir,
    /// Some values of the files.
    pub(crate) traces: Vec<String>,
}

impl Files {
    pub(crate) fn new(seed: u64) -> Self {
        let files = Files { directory: tempfile::tempdir().unwrap(), traces: Vec::new() };
        std::fs::create_dir(files.directory.path().join("spans")).unwrap();
        let mut random = Random(seed);
        let mut traces = Vec::new();
        for file in 0..FILES {
            let (rows, groups) =
                (20 + random.number_below(300) as usize, 1 + random.number_below(4) as usize);
            let batch = spans(&mut random, rows, START + file as i64 * 1_000_000);
            traces.extend(traces_of(&batch, 3));
            write(&files.path(file), &batch, groups, false).unwrap();
        }
        Files { traces, ..files }
    }

    pub(crate) fn path(&self, file: usize) -> PathBuf {
        self.directory.path().join(format!("spans/f{file:03}.parquet"))
    }

    fn store(&self) -> Arc<Counting> {
        Arc::new(Counting::new(self.directory.path()).unwrap())
    }

    async fn build(&self, columns: &[&str]) {
        build(self.store(), "spans", "spans.index", columns).await;
    }

    async fn open(&self, store: &Arc<Counting>, in_memory: bool) -> Arc<StoredFileIndex> {
        let (store, path) = (store.clone() as Arc<dyn ObjectStore>, "spans.index".into());
        Arc::new(match in_memory {
            true => StoredFileIndex::open(store, &path).await.unwrap(),
            false => StoredFileIndex::open_ranges(store, &path).await.unwrap(),
        })
    }
}

/// Returns some of a file's traces.
fn traces_of(batch: &RecordBatch, count: usize) -> Vec<String> {
    use datafusion::arrow::array::AsArray;
    let traces = batch.column_by_name("trace_id").unwrap().as_string::<i32>();
    let step = traces.len().div_ceil(count);
    traces.iter().step_by(step).flatten().map(String::from).collect()
}

pub(crate) async fn build(store: Arc<dyn ObjectStore>, files: &str, index: &str, columns: &[&str]) {
    let files: Vec<_> = store.list(Some(&files.into())).try_collect().await.unwrap();
    let column = |name: &&str| file_index_column(schema().field_with_name(name).unwrap()).unwrap();
    let options = FileIndexOptions::new(columns.iter().map(column).collect(), 1)
        .with_part_values(64)
        .with_memory(1 << 20);
    let mut calls = 0;
    let count = files.len();
    let progress = |report: &blocked_bloom_datafusion::FileIndexReport| {
        calls += 1;
        assert_eq!(report.files, calls);
    };
    let report = build_file_index(store.clone(), files, &options, &index.into(), progress).await;
    let report = report.unwrap();
    // Files without a column, or with other keys in it, are reported and indexed.
    let index = StoredFileIndex::open(store, &index.into()).await.unwrap();
    let numbers = 0..columns.len();
    let expected: Vec<&str> = index
        .manifest()
        .files()
        .filter(|file| numbers.clone().any(|column| file.column_type(column).is_none()))
        .map(|file| file.identity().name())
        .collect();
    let reported: Vec<&str> = report.left_out.iter().map(|(path, _)| path.as_ref()).collect();
    assert_eq!((calls, reported), (count as u64, expected), "{report:?}");
    assert_eq!(index.manifest().files().len(), count);
    let is_missing = |reason: &str| reason.contains("is missing, or has values of another type");
    assert!(report.left_out.iter().all(|(_, reason)| is_missing(reason)), "{report:?}");
}

/// The way a session reads the files.
#[derive(Clone, Debug)]
struct TableSetup {
    schema: SchemaRef,
    pushdown: bool,
    statistics: bool,
    partitioned: bool,
    /// Whether files are divided into ranges, even small ones.
    divided: bool,
    partitions: usize,
}

impl TableSetup {
    fn new() -> Self {
        TableSetup {
            schema: nullable(),
            pushdown: false,
            statistics: true,
            partitioned: false,
            divided: false,
            partitions: 4,
        }
    }

    fn config(&self) -> SessionConfig {
        let threshold = if self.partitioned { 0 } else { 1 << 30 };
        SessionConfig::new()
            .with_target_partitions(self.partitions)
            .with_collect_statistics(self.statistics)
            .set_bool("datafusion.execution.parquet.pushdown_filters", self.pushdown)
            .set_u64("datafusion.optimizer.hash_join_single_partition_threshold", threshold)
            .set_u64("datafusion.optimizer.hash_join_single_partition_threshold_rows", threshold)
            .set_u64(
                "datafusion.optimizer.repartition_file_min_size",
                if self.divided { 0 } else { 10 << 20 },
            )
    }

    fn context(
        &self,
        store: &Arc<Counting>,
        index: Option<Arc<StoredFileIndex>>,
        traces: &[String],
    ) -> SessionContext {
        let url = ObjectStoreUrl::parse(URL).unwrap();
        let builder = SessionStateBuilder::new_with_default_features();
        let mut state = builder.with_config(self.config()).build();
        if let Some(index) = index {
            state = with_file_index(state, url.clone(), index);
        }
        let context = SessionContext::new_with_state(state);
        context.register_object_store(url.as_ref(), store.clone());
        let table = listing(&format!("{URL}/spans/"), &self.schema);
        context.register_table("spans", Arc::new(table)).unwrap();
        register_keys(&context, traces);
        context
    }
}

pub(crate) fn listing(url: &str, schema: &SchemaRef) -> ListingTable {
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()));
    let options = options.with_file_extension(".parquet");
    let table = ListingTableConfig::new(ListingTableUrl::parse(url).unwrap())
        .with_listing_options(options)
        .with_schema(schema.clone());
    ListingTable::try_new(table).unwrap()
}

/// Returns the schema with all columns nullable, because some files lack some of them.
pub(crate) fn nullable() -> SchemaRef {
    let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
    let fields: Vec<Field> = schema().fields().iter().map(nullable).collect();
    Arc::new(Schema::new(fields))
}

/// Writes the keys to a file, which other processes can read.
pub(crate) async fn write_keys(context: &SessionContext, directory: &Path, traces: &[String]) {
    register_keys(context, traces);
    let path = directory.join("keys.parquet");
    let copy = format!("COPY keys TO '{}' STORED AS PARQUET", path.display());
    crate::common::run(context, &copy).await;
}

pub(crate) async fn register_keys_file(context: &SessionContext, directory: &Path) {
    let path = directory.join("keys.parquet").display().to_string();
    context.register_parquet("keys", &path, Default::default()).await.unwrap();
}

/// Registers a small table to join with: values that occur in the files, values that do not, and
/// NULL.
fn register_keys(context: &SessionContext, traces: &[String]) {
    let id = |i: usize| match i % 3 {
        0 => Some(traces[i * 7 % traces.len()].clone()),
        1 => Some(format!("{i:032x}")),
        _ => None,
    };
    let ids: ArrayRef = Arc::new(StringArray::from_iter((0..30).map(id)));
    let users: ArrayRef = Arc::new(Int64Array::from_iter_values((0..30).map(|i| i * 7919)));
    let keys = RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("u", users, false)]);
    context.register_batch("keys", keys.unwrap()).unwrap();
}

pub(crate) const KINDS: usize = 39;

/// Returns a random query of the given kind over `spans` and `keys`.
pub(crate) fn query(kind: usize, r: &mut Random, traces: &[String]) -> String {
    let id = |r: &mut Random| match r.number_below(3) {
        0 => r.trace(),
        _ => r.pick(traces).clone(),
    };
    let user = |r: &mut Random| r.user() + r.number_below(2) as i64 * 3;
    let n = 1 + r.number_below(30);
    let ids =
        |r: &mut Random| (0..n).map(|_| format!("'{}'", id(r))).collect::<Vec<_>>().join(", ");
    let users = |r: &mut Random| (0..n).map(|_| user(r).to_string()).collect::<Vec<_>>().join(", ");
    let selected = "count(*) AS n, sum(CAST(status AS BIGINT)) AS s, min(ts) AS a, max(ts) AS b, \
                max(message) AS m";
    let filter = match kind {
        0 | 1 => format!("trace_id = '{}'", id(r)),
        2 => format!("trace_id IN ({})", ids(r)),
        3 => format!("trace_id IN ({}, NULL)", ids(r)),
        4 => format!("trace_id = '{}' AND status = 200", id(r)),
        5 => format!("trace_id = '{}' OR trace_id = '{}'", id(r), id(r)),
        6 => format!("trace_id = '{}' OR status = 500 AND user_id = {}", id(r), user(r)),
        7 => format!("trace_id IS NULL AND user_id = {}", user(r)),
        8 => format!("trace_id = '{}' OR trace_id IS NULL AND status = 404", id(r)),
        9 => format!("trace_id IS NOT DISTINCT FROM '{}'", id(r)),
        10 => format!("NOT (trace_id <> '{}')", id(r)),
        11 => format!("trace_id NOT IN ({}) AND user_id = {}", ids(r), user(r)),
        12 => format!("arrow_cast(trace_id, 'Dictionary(Int32, Utf8)') = '{}'", id(r)),
        13 => format!("trace_id = arrow_cast('{}', 'Dictionary(Int32, Utf8)')", id(r)),
        14 => format!("upper(trace_id) = upper('{}')", id(r)),
        15 => format!("user_id = {}", user(r)),
        16 => format!("user_id = {}.0", user(r)),
        17 => format!("CAST(user_id AS VARCHAR) = '{}'", user(r)),
        18 => format!("user_id = '{}'", user(r)),
        19 => format!("user_id IN ({}) AND trace_id IN ({})", users(r), ids(r)),
        20 => format!(
            "(trace_id = '{}' AND status = 200) OR (user_id = {} AND status = 404)",
            id(r),
            user(r)
        ),
        21 => format!("trace_id = '{}' AND trace_id = '{}'", id(r), id(r)),
        22 => format!("trace_id IN (SELECT id FROM keys WHERE id IS NOT NULL AND u < {})", user(r)),
        23 => format!("user_id IN (SELECT u FROM keys) AND status = {}", r.pick(&[200, 404])),
        24 => format!("EXISTS (SELECT 1 FROM keys WHERE id = trace_id AND u <= {})", user(r)),
        25 => format!("score = CAST('{}' AS DOUBLE)", r.score()),
        26 => format!("amount = {}.{:02}", r.number_below(10_000), r.number_below(100)),
        27 => format!("amount IN ({}.5, {})", r.number_below(10_000), r.number_below(10_000)),
        28 => {
            let ts = START + r.number_below(FILES as u64 * 1_000_000) as i64;
            format!("ts = arrow_cast({ts}, 'Timestamp(Microsecond, None)')")
        }
        29 => {
            format!(
                "day = arrow_cast({}, 'Date32')",
                START / 86_400_000_000 + r.number_below(2500) as i64
            )
        }
        30 => format!("trace_id = (SELECT max(id) FROM keys WHERE u < {})", user(r)),
        31 => {
            // The limit applies before the join drops rows.
            let limit = 1 + r.number_below(200);
            return format!(
                "SELECT count(*), sum(CAST(status AS BIGINT)), max(message) FROM \
                 (SELECT * FROM spans ORDER BY ts, message LIMIT {limit}) s \
                 JOIN keys ON id = trace_id"
            );
        }
        32 => {
            return format!(
                "SELECT trace_id, ts, message FROM spans WHERE trace_id IN ({}) \
                 ORDER BY ts, message LIMIT {}",
                ids(r),
                1 + r.number_below(5)
            );
        }
        33 => {
            return format!(
                "SELECT count(s.ts), count(k.u), max(message) FROM keys k LEFT JOIN spans s \
                 ON k.id = s.trace_id AND s.status < 500 WHERE k.u < {}",
                user(r)
            );
        }
        34 => {
            return format!(
                "SELECT trace_id, count(*), row_number() OVER (ORDER BY trace_id) FROM spans \
                 WHERE user_id IN ({}) OR trace_id IN ({}) GROUP BY trace_id",
                users(r),
                ids(r)
            );
        }
        35 => format!(
            "(trace_id, user_id) IN (('{}', {}), ('{}', {}))",
            id(r),
            user(r),
            r.pick(traces),
            user(r)
        ),
        36 => format!("user_id IN ({}.0, {}.5, {})", user(r), user(r), user(r)),
        37 => format!(
            "trace_id IN ({}) AND user_id = (SELECT min(u) FROM keys WHERE u > {}) AND status > 0",
            ids(r),
            user(r)
        ),
        _ => {
            return format!(
                "SELECT {selected} FROM spans JOIN (SELECT id, max(u) AS u FROM keys GROUP BY id) k \
                 ON k.id = spans.trace_id WHERE spans.user_id <> {} OR k.u > 0",
                user(r)
            );
        }
    };
    format!("SELECT {selected} FROM spans WHERE {filter}")
}

async fn answer(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = context.sql(sql).await?.collect().await?;
    Ok(crate::common::sorted_lines(&batches))
}

/// Changes of files after the index was built.
const CHANGES: [&str; 9] = [
    "nothing",
    "replaced",
    "same length",
    "added",
    "deleted",
    "shortened",
    "retyped",
    "all",
    "indexed again",
];

pub(crate) fn change(files: &mut Files, change: &str, random: &mut Random) {
    let is = |name: &str| change == name || change == "all";
    let mut new = |files: &mut Files, file: usize, types: &[(&str, Option<DataType>)]| {
        let (rows, groups) =
            (20 + random.number_below(300) as usize, 1 + random.number_below(5) as usize);
        let batch = spans(random, rows, START + file as i64 * 1_000_000);
        files.traces.extend(traces_of(&batch, 10));
        write(&files.path(file), &retyped(&batch, types), groups, false).unwrap();
    };
    if is("replaced") {
        (0..4).for_each(|file| new(files, file, &[]));
    }
    if is("same length") {
        for file in 4..8 {
            overwrite(files, file);
        }
    }
    if is("added") {
        (FILES..FILES + 4).for_each(|file| new(files, file, &[]));
    }
    if is("deleted") {
        (8..10).for_each(|file| std::fs::remove_file(files.path(file)).unwrap());
    }
    if is("shortened") {
        (10..12).for_each(|file| new(files, file, &[]));
        // Same name and same first row group, but shorter.
        let batch = spans(&mut Random(77), 10, START);
        files.traces.extend(traces_of(&batch, 5));
        write(&files.path(12), &batch, 1, false).unwrap();
    }
    if is("retyped") {
        use DataType::*;
        let dictionary = || Dictionary(Int32.into(), Utf8.into());
        new(files, 13, &[("trace_id", Some(dictionary())), ("user_id", Some(Int32))]);
        new(files, 14, &[("trace_id", Some(LargeUtf8)), ("score", Some(Float32))]);
        new(files, 15, &[("trace_id", Some(Binary)), ("amount", Some(Decimal128(20, 2)))]);
        new(files, 16, &[("user_id", None), ("day", None)]);
        new(files, 17, &[("user_id", Some(Utf8)), ("status", Some(Int64))]);
    }
}

/// Overwrites a value of a file in place with another value of the same length.
fn overwrite(files: &mut Files, file: usize) {
    let path = files.path(file);
    let bytes = std::fs::read(&path).unwrap();
    let holds = |trace: &&String| bytes.windows(32).any(|window| window == trace.as_bytes());
    let old = files.traces.iter().find(holds).expect("values are stored plain");
    let new = format!("{}{}", &old[..24], "01234567");
    let mut other = bytes.clone();
    for at in (0..bytes.len() - 32).filter(|&at| bytes[at..].starts_with(old.as_bytes())) {
        other[at..][..32].copy_from_slice(new.as_bytes());
    }
    std::fs::write(&path, other).unwrap();
    files.traces.push(new);
}

/// Returns the number of queries of a test: `BLOCKED_BLOOM_FILE_QUERIES`, or this default, which
/// takes a few seconds.
pub(crate) fn queries(some_seconds: usize) -> usize {
    let queries = std::env::var("BLOCKED_BLOOM_FILE_QUERIES");
    queries.map_or(some_seconds, |queries| queries.parse().unwrap())
}

/// Chooses a random way to read the files.
fn random_setup(random: &mut Random) -> TableSetup {
    use DataType::*;
    let typed = |types: &[(&str, DataType)]| -> SchemaRef {
        let fields = schema()
            .fields()
            .iter()
            .map(|field| {
                let to = types.iter().find(|(name, _)| name == field.name());
                let field = field.as_ref().clone();
                match to {
                    Some((_, to)) => field.with_data_type(to.clone()).with_nullable(true),
                    None => field.with_nullable(true),
                }
            })
            .collect::<Vec<Field>>();
        Arc::new(Schema::new(fields))
    };
    let dictionary = Dictionary(Int32.into(), Utf8.into());
    let schemas = [
        typed(&[]),
        typed(&[]),
        typed(&[("trace_id", Utf8View)]),
        typed(&[("trace_id", dictionary), ("amount", Decimal128(20, 2))]),
        typed(&[("trace_id", BinaryView), ("user_id", Utf8)]),
        typed(&[("user_id", Float64), ("amount", Decimal128(20, 3))]),
    ];
    TableSetup {
        schema: random.pick(&schemas).clone(),
        pushdown: random.number_below(2) == 0,
        statistics: random.number_below(2) == 0,
        partitioned: random.number_below(2) == 0,
        divided: random.number_below(2) == 0,
        partitions: *random.pick(&[1, 2, 4, 7]),
    }
}

/// Random queries of all kinds, on files that have changed in every way, in sessions of all kinds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries_return_the_rows_of_the_plain_engine() {
    let mut random = Random(4711);
    let mut sets = Vec::new();
    for (number, kind_of_change) in CHANGES.iter().enumerate() {
        let mut files = Files::new(number as u64);
        if *kind_of_change == "indexed again" {
            change(&mut files, "all", &mut random);
        }
        files.build(&COLUMNS).await;
        // A file system's clock may stand still for a few milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(20));
        change(&mut files, kind_of_change, &mut random);
        sets.push(files);
    }
    let queries = queries(144);
    let per_session = queries.div_ceil(48).max(KINDS / 3);
    let (mut differ, mut failed, mut with_rows, mut asked) = (Vec::new(), 0, 0, 0);
    let mut opened = BTreeMap::<usize, [usize; 3]>::new();
    while asked < queries {
        let number = asked / per_session;
        let (files, how) = (&sets[number % sets.len()], random_setup(&mut random));
        let (with, plain) = (files.store(), files.store());
        let in_memory = random.number_below(2) == 0;
        let index = files.open(&with, in_memory).await;
        let indexed = how.context(&with, Some(index), &files.traces);
        let without = how.context(&plain, None, &files.traces);
        for _ in 0..per_session.min(queries - asked) {
            let kind = asked % KINDS;
            let sql = query(kind, &mut random, &files.traces);
            _ = (with.take(), plain.take());
            let case = format!(
                "{}, in memory {in_memory}, {how:?}: {sql}",
                CHANGES[number % CHANGES.len()]
            );
            match (answer(&indexed, &sql).await, answer(&without, &sql).await) {
                (Ok(a), Ok(b)) if a == b => {
                    with_rows += usize::from(b.len() > 1 && !b[0].starts_with("| 0 "));
                }
                (Err(_), Err(_)) => failed += 1,
                (a, b) => differ.push(format!("{case}\n{a:?}\n{b:?}")),
            }
            let kind = opened.entry(kind).or_default();
            kind[0] += 1;
            kind[1] += with.take().files;
            kind[2] += plain.take().files;
            asked += 1;
        }
    }
    println!("{asked} queries, {with_rows} with rows, {failed} refused by both");
    for (kind, [queries, with, plain]) in &opened {
        println!("kind {kind}: {queries} queries, {with} files opened, {plain} without an index");
    }
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ[..differ.len().min(5)].join("\n")
    );
    assert!(failed * 10 < asked && with_rows * 3 > asked, "{failed} failed, {with_rows} with rows");
    for kind in [0, 2, 4, 5, 9, 10, 12, 19, 26, 27] {
        let [_, with, plain] = opened[&kind];
        assert!(with * 3 < plain * 2, "kind {kind}: {with} of {plain} files");
    }
}

/// Returns the plan of a query as text.
async fn plan(context: &SessionContext, sql: &str) -> String {
    crate::common::plan(context, sql).await
}

/// With the engine's defaults, which collect statistics, no footer of a file without the value is
/// read.
#[tokio::test]
async fn files_without_the_value_are_not_opened() {
    let files = Files::new(1);
    files.build(&["trace_id"]).await;
    let absent = "SELECT * FROM spans WHERE trace_id = 'absent'";
    let present = format!("SELECT * FROM spans WHERE trace_id = '{}'", files.traces[7]);
    for in_memory in [true, false] {
        let store = files.store();
        let context = TableSetup::new().context(&store, None, &files.traces);
        let expected = answer(&context, &present).await.unwrap();
        assert_eq!(store.take().files, FILES);

        // Expected requests: at most two for the index, one for the list of files, and the planes.
        let index = files.open(&store, in_memory).await;
        let context = TableSetup::new().context(&store, Some(index), &files.traces);
        assert!(answer(&context, absent).await.unwrap().is_empty());
        let Requested { requests, files: opened, .. } = store.take();
        assert_eq!(opened, 0);
        assert!(requests <= if in_memory { 2 } else { 4 }, "{requests} requests");

        assert_eq!(answer(&context, &present).await.unwrap(), expected);
        let opened = store.take().files;
        assert!(opened <= 2, "{opened} files");

        let plan = plan(&context, &present).await;
        assert!(
            plan.contains("file_index=[trace_id], file_index_left=[1 of 20 files, 1 of"),
            "{plan}"
        );
        let plan = self::plan(&context, absent).await;
        assert!(plan.contains("file_index_left=[0 of 20 files]"), "{plan}");
        let plan = self::plan(&context, "SELECT * FROM spans WHERE status = 200").await;
        assert!(!plan.contains("file_index_left"), "{plan}");
    }
}

/// `EXPLAIN` says which files stay because the index does not know them, with the reason.
#[tokio::test]
async fn files_that_changed_are_read() {
    let mut files = Files::new(2);
    files.build(&["trace_id"]).await;
    std::thread::sleep(std::time::Duration::from_millis(20));
    change(&mut files, "all", &mut Random(5));
    let store = files.store();
    let index = files.open(&store, true).await;
    let context = TableSetup::new().context(&store, Some(index), &files.traces);
    let absent = "SELECT * FROM spans WHERE trace_id = 'absent'";
    let plan = plan(&context, absent).await;
    let left = plan.split_once("file_index_left=[").unwrap().1.split_once(']').unwrap().0;
    println!("{left}");
    // 20 files remain: 16 were replaced, 2 deleted, and 4 are new.
    assert!(left.starts_with("20 of 22 files"), "{left}");
    assert_eq!(left.matches("unknown").count(), 3, "{left}");
    _ = store.take();
    assert!(answer(&context, absent).await.unwrap().is_empty());

    // Compared by name only, as for table formats whose files never change, all are known.
    let index = StoredFileIndex::open(store.clone(), &"spans.index".into()).await.unwrap();
    let index = index.with_same_file(SameFile::Name);
    let context = TableSetup::new().context(&store, Some(Arc::new(index)), &files.traces);
    let plan = self::plan(&context, absent).await;
    assert!(!plan.contains("left=[20 of 22"), "{plan}");
}

/// The keys of a join are complete before files are opened, in one list or in one per partition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_joins_prune_files() {
    let files = Files::new(3);
    files.build(&["trace_id"]).await;
    for partitioned in [false, true] {
        for statistics in [false, true] {
            let how = TableSetup { partitioned, statistics, ..TableSetup::new() };
            let store = files.store();
            let index = files.open(&store, true).await;
            let plain = how.context(&store, None, &files.traces);
            let indexed = how.context(&store, Some(index), &files.traces);
            let sql = format!(
                "SELECT count(*), max(message) FROM (SELECT * FROM keys WHERE id IN ('{}', 'x')) k \
                 JOIN (SELECT * FROM spans WHERE status < 1000) s ON k.id = s.trace_id",
                files.traces[0]
            );
            let expected = answer(&plain, &sql).await.unwrap();
            assert_eq!(answer(&indexed, &sql).await.unwrap(), expected);
            _ = store.take();
            assert_eq!(answer(&indexed, &sql).await.unwrap(), expected);
            let opened = store.take().files;
            assert!(opened <= 2, "{opened} files, partitioned {partitioned}");
            let explained = answer(&indexed, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap();
            let explained = explained.join("\n");
            assert!(explained.contains("file_index_files_pruned="), "{explained}");
        }
    }
}

/// A plan that is reset and run again looks its keys up again.
#[tokio::test]
async fn a_plan_that_runs_again_repeats_its_lookups() {
    let files = Files::new(4);
    files.build(&["trace_id"]).await;
    let store = files.store();
    let index = files.open(&store, true).await;
    let context = TableSetup::new().context(&store, Some(index), &files.traces);
    let sql = "SELECT count(*) FROM keys JOIN spans ON id = trace_id";
    let expected = answer(&context, sql).await.unwrap();
    let mut plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    for _ in 0..3 {
        let batches = collect(plan.clone(), context.task_ctx()).await.unwrap();
        assert_eq!(crate::common::sorted_lines(&batches), expected);
        plan = reset_plan_states(plan).unwrap();
    }
    // Each round of the recursion joins with different keys.
    let plain = TableSetup::new().context(&store, None, &files.traces);
    for step in [7919, 15838] {
        let sql = format!(
            "WITH RECURSIVE r(u) AS (SELECT CAST({step} AS BIGINT) UNION ALL \
             SELECT r.u + {step} FROM r JOIN (SELECT DISTINCT user_id FROM spans) s \
             ON s.user_id = r.u WHERE r.u < 300000) SELECT count(*) AS n, max(u) AS m FROM r"
        );
        let (a, b) = (answer(&context, &sql).await, answer(&plain, &sql).await);
        assert_eq!(a.unwrap(), b.unwrap(), "{sql}");
    }
}

/// A scan that ends after some rows returns the same rows: keys of a join above the limit prune
/// nothing.
#[tokio::test]
async fn scans_with_a_limit_are_left_alone() {
    let files = Files::new(5);
    files.build(&["trace_id", "user_id"]).await;
    for pushdown in [false, true] {
        // With statistics, the engine takes files in any order until they have enough rows.
        let how = TableSetup { pushdown, partitions: 1, statistics: false, ..TableSetup::new() };
        let store = files.store();
        let index = files.open(&store, true).await;
        let context = how.context(&store, Some(index), &files.traces);
        // The engine's own filters below limits return other rows. Without them the rows are right.
        let right = how.context(&store, None, &files.traces);
        crate::common::run(
            &right,
            "SET datafusion.optimizer.enable_dynamic_filter_pushdown = false",
        )
        .await;
        for limit in [1, 30, 500] {
            let sql = format!(
                "SELECT count(*) FROM (SELECT * FROM spans LIMIT {limit}) s \
                 JOIN keys ON id = trace_id"
            );
            let plan = plan(&context, &sql).await;
            assert!(plan.contains(&format!("limit={limit}")), "{plan}");
            if !pushdown {
                let (a, b) = (answer(&context, &sql).await, answer(&right, &sql).await);
                assert_eq!(a.unwrap(), b.unwrap(), "{sql}\n{plan}");
            }
            let explained = answer(&context, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap();
            let explained = explained.join("\n");
            assert!(!explained.contains("file_index_files_pruned"), "{explained}");
        }
    }
}

/// An ordered table below a predicate and a limit, below a join that fills in keys. The merge ends
/// early, but the scan does not.
#[tokio::test]
async fn keys_do_not_prune_below_a_merge_that_ends_early() {
    use datafusion::logical_expr::col;
    let files = Files::new(10);
    files.build(&["trace_id"]).await;
    let store = files.store();
    let url = ObjectStoreUrl::parse(URL).unwrap();
    let context = |index: Option<Arc<StoredFileIndex>>, dynamic: bool| {
        let config = TableSetup::new().config();
        let name = "datafusion.optimizer.enable_dynamic_filter_pushdown";
        let builder = SessionStateBuilder::new_with_default_features();
        let mut state = builder.with_config(config.set_bool(name, dynamic)).build();
        if let Some(index) = index {
            state = with_file_index(state, url.clone(), index);
        }
        let context = SessionContext::new_with_state(state);
        context.register_object_store(url.as_ref(), store.clone());
        let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
            .with_file_sort_order(vec![vec![col("ts").sort(true, false)]]);
        let table =
            ListingTableConfig::new(ListingTableUrl::parse(format!("{URL}/spans/")).unwrap())
                .with_listing_options(options)
                .with_schema(schema());
        context.register_table("spans", Arc::new(ListingTable::try_new(table).unwrap())).unwrap();
        register_keys(&context, &files.traces);
        context
    };
    let index = files.open(&store, true).await;
    let (indexed, right) = (context(Some(index), true), context(None, false));
    for limit in [50, 500, 1500] {
        let sql = format!(
            "SELECT count(*), sum(s.user_id), max(message) FROM keys JOIN \
             (SELECT * FROM spans WHERE status < 1000 ORDER BY ts LIMIT {limit}) s ON id = trace_id"
        );
        let explained = answer(&indexed, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap();
        let explained = explained.join("\n");
        assert!(explained.contains("SortPreservingMergeExec"), "{explained}");
        let (a, b) = (answer(&indexed, &sql).await, answer(&right, &sql).await);
        assert_eq!(a.unwrap(), b.unwrap(), "{sql}\n{explained}");
        assert!(!explained.contains("file_index_files_pruned=1"), "{explained}");
    }
}

/// A damaged index is refused when it is opened. If it is read by ranges, damaged planes prune
/// nothing.
#[tokio::test]
async fn damaged_indexes_prune_nothing() {
    let files = Files::new(6);
    files.build(&["trace_id"]).await;
    let path = files.directory.path().join("spans.index");
    let bytes = std::fs::read(&path).unwrap();
    let sql = format!("SELECT * FROM spans WHERE trace_id = '{}'", files.traces[3]);
    let store = files.store();
    let expected =
        answer(&TableSetup::new().context(&store, None, &files.traces), &sql).await.unwrap();
    let index = files.open(&store, false).await;
    for damaged in [0, 100, bytes.len() / 2] {
        let mut other = bytes.clone();
        other[damaged..].iter_mut().step_by(7).take(2000).for_each(|byte| *byte ^= 0x55);
        std::fs::write(&path, &other).unwrap();
        let opened = StoredFileIndex::open(store.clone(), &"spans.index".into()).await;
        assert!(opened.is_err());
        let context = TableSetup::new().context(&store, Some(index.clone()), &files.traces);
        assert_eq!(answer(&context, &sql).await.unwrap(), expected, "damaged at {damaged}");
    }
    std::fs::remove_file(&path).unwrap();
    let context = TableSetup::new().context(&store, Some(index), &files.traces);
    assert_eq!(answer(&context, &sql).await.unwrap(), expected);
}

/// Values that the engine calls equal are found. Lossy casts prune nothing.
#[tokio::test]
async fn equal_values_of_other_widths_are_found() {
    use datafusion::arrow::array::{Decimal128Array, Float64Array};
    let mut files = Files::new(11);
    let columns = || -> Vec<(&str, ArrayRef)> {
        let amounts = Decimal128Array::from(vec![150, 100_000_000, 1]);
        vec![
            ("f", Arc::new(Float64Array::from(vec![-0.0, -f64::NAN, 0.1]))),
            ("n", Arc::new(Int64Array::from(vec![-1, 1 << 40, 7]))),
            ("amount", Arc::new(amounts.with_precision_and_scale(12, 2).unwrap())),
        ]
    };
    let batch = RecordBatch::try_from_iter(columns()).unwrap();
    (0..FILES).for_each(|file| std::fs::remove_file(files.path(file)).unwrap());
    write(&files.path(0), &batch, 1, false).unwrap();
    files.traces.truncate(1);
    let store = files.store();
    let listed: Vec<_> = store.list(Some(&"spans".into())).try_collect().await.unwrap();
    let schema = batch.schema();
    let fields = schema.fields().iter().map(|field| file_index_column(field).unwrap());
    let options = FileIndexOptions::new(fields.collect(), 1);
    let to: Arc<dyn ObjectStore> = store.clone();
    build_file_index(to, listed, &options, &"spans.index".into(), |_| ()).await.unwrap();
    use DataType::*;
    let as_types = |f: DataType, n: DataType, amount: DataType| -> SchemaRef {
        let fields = [("f", f), ("n", n), ("amount", amount)];
        Arc::new(Schema::new(
            fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec(),
        ))
    };
    for (schema, filter, found) in [
        (schema.clone(), "f = CAST('-0.0' AS DOUBLE)", 1),
        (schema.clone(), "f = CAST('-NaN' AS DOUBLE) OR f = CAST('NaN' AS DOUBLE) OR f = 0.1", 2),
        (schema.clone(), "n IN (-1, 1099511627776)", 2),
        (schema.clone(), "n = arrow_cast(7, 'Int8')", 1),
        (schema.clone(), "n = 8", 0),
        (schema.clone(), "amount = 1.5", 1),
        (schema.clone(), "amount = 1000000", 1),
        (as_types(Float32, Int64, Decimal128(12, 2)), "f = CAST(0.1 AS FLOAT)", 1),
        (as_types(Float64, Float64, Decimal128(12, 2)), "n = 1099511627776.0", 1),
        (as_types(Float64, Boolean, Decimal128(12, 2)), "n = true AND n", 3),
        (as_types(Float64, Boolean, Decimal128(12, 2)), "n IN (true, NULL) OR n = true", 3),
        (as_types(Float64, Utf8, Decimal128(12, 2)), "n = '7'", 1),
        (as_types(Float64, Int64, Decimal128(20, 4)), "amount = 1.5", 1),
        (as_types(Float64, Int64, Float64), "amount = 1.5", 1),
    ] {
        let how = TableSetup { schema, statistics: false, ..TableSetup::new() };
        let index = files.open(&store, true).await;
        let sql = format!("SELECT f, n, amount FROM spans WHERE {filter}");
        let plain = how.context(&store, None, &files.traces);
        let expected = answer(&plain, &sql).await.unwrap();
        let indexed = how.context(&store, Some(index), &files.traces);
        assert_eq!(answer(&indexed, &sql).await.unwrap(), expected, "{sql}");
        assert_eq!(expected.len().saturating_sub(1), found, "{sql}: {expected:?}");
    }
}

/// Values that the engine compares as floats or as rows. Those of a subquery prune nothing.
#[tokio::test]
async fn floats_and_rows_prune_files() {
    use datafusion::arrow::array::Int32Array;
    let mut files = Files::new(14);
    let mut schema = None;
    for file in 0..FILES {
        let (text, number) = (format!("t{file}"), file as i32 * 1000);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("t", Arc::new(StringArray::from(vec![text.as_str(), "all"]))),
            ("n", Arc::new(Int64Array::from(vec![i64::from(number), -1]))),
            ("m", Arc::new(Int32Array::from(vec![number, -1]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        write(&files.path(file), &batch, 1, false).unwrap();
        schema = Some(batch.schema());
    }
    files.traces.truncate(1);
    let schema = schema.unwrap();
    let store = files.store();
    let listed: Vec<_> = store.list(Some(&"spans".into())).try_collect().await.unwrap();
    let fields = schema.fields().iter().map(|field| file_index_column(field).unwrap());
    let options = FileIndexOptions::new(fields.collect(), 1);
    let to: Arc<dyn ObjectStore> = store.clone();
    build_file_index(to, listed, &options, &"spans.index".into(), |_| ()).await.unwrap();
    let how = TableSetup { schema, statistics: false, ..TableSetup::new() };
    let plain = how.context(&store, None, &files.traces);
    let index = files.open(&store, true).await;
    let indexed = how.context(&store, Some(index), &files.traces);
    let subquery = "(SELECT 't' || CAST(max(x) AS VARCHAR) FROM (VALUES (4), (5)) v(x))";
    for (filter, rows, most) in [
        ("n = 5000.0", 1, 1),
        ("m = 5000.0", 1, 1),
        ("m = arrow_cast(5000, 'Float32')", 1, 1),
        ("n IN (5000.0, 7.5, 9000)", 2, 2),
        ("n = 7.5", 0, FILES),
        ("n = -1.0", FILES, FILES),
        ("m = 3000000000.0 OR m = 4000.0", 1, 1),
        ("CAST(n AS DOUBLE) = 9007199254740992.0 OR n = 4000", 1, FILES),
        ("(t, n) = ('t5', 5000)", 1, 1),
        ("(t, n) IN (('t5', 5000), ('t6', 6000), ('t7', 0))", 2, 3),
        ("(t, m) IN (('t5', 5000), ('t6', 6000), ('t7', 0))", 2, 3),
        ("(n, t) IN ((5000.0, 't5'), (7.5, 't6'))", 1, 1),
        ("(t, n + 0) IN (('t5', 5000))", 1, 1),
        ("(t, n) NOT IN (('t5', 5000)) AND n > 0", FILES - 2, FILES),
        (format!("t = {subquery}").as_str(), 1, FILES),
        (format!("t = {subquery} AND n IN (5000, 6000)").as_str(), 1, 2),
        (format!("t = {subquery} OR n = 7000").as_str(), 2, FILES),
        (format!("t <> {subquery} AND n = 5000").as_str(), 0, 1),
        ("t = (SELECT CAST(NULL AS VARCHAR))", 0, FILES),
        ("n = (SELECT max(n) FROM spans WHERE t = 't5')", 1, FILES + 1),
    ] {
        let sql = format!("SELECT t, n, m FROM spans WHERE {filter}");
        let expected = answer(&plain, &sql).await.unwrap();
        _ = store.take();
        assert_eq!(answer(&indexed, &sql).await.unwrap(), expected, "{sql}");
        let opened = store.take().files;
        assert!(opened <= most, "{sql}: {opened} files");
        assert_eq!(expected.len().saturating_sub(1), rows, "{sql}: {expected:?}");
    }
}

/// A failed build stores nothing.
#[tokio::test]
async fn a_failed_build_stores_nothing() {
    let files = Files::new(12);
    let store = files.store();
    let none = FileIndexOptions::new(Vec::new(), 1);
    let to: Arc<dyn ObjectStore> = store.clone();
    let built = build_file_index(to, Vec::new(), &none, &"none.index".into(), |_| ()).await;
    assert!(built.is_err() && !files.directory.path().join("none.index").exists());
    // A file that is not Parquet, and one that was replaced after it was listed, are left out.
    let listed: Vec<_> = store.list(Some(&"spans".into())).try_collect().await.unwrap();
    std::fs::write(files.path(0), b"PAR1 and nothing else").unwrap();
    std::fs::copy(files.path(2), files.path(1)).unwrap();
    let column = file_index_column(schema().field_with_name("trace_id").unwrap()).unwrap();
    let options = FileIndexOptions::new(vec![column], 1);
    let to: Arc<dyn ObjectStore> = store.clone();
    let report = build_file_index(to, listed, &options, &"some.index".into(), |_| ()).await;
    let left_out: Vec<String> =
        report.unwrap().left_out.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    let some: Arc<dyn ObjectStore> = store;
    let index = StoredFileIndex::open(some, &"some.index".into()).await.unwrap();
    let names: Vec<_> = index.manifest().files().map(|f| f.identity().name().to_string()).collect();
    assert!(names.len() == FILES - 2 && !left_out.iter().any(|path| names.contains(path)));
}

/// The index of a file with every type equals the index that the Python package builds, byte for
/// byte. The Python tests read the same two files.
#[tokio::test]
async fn the_index_equals_that_of_the_python_package() {
    use datafusion::object_store::memory::InMemory;
    use datafusion::object_store::{ObjectMeta, ObjectStoreExt};
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/python/tests");
    let file = std::fs::read(golden.join("golden_files.parquet")).unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let name: datafusion::object_store::path::Path = "golden_files.parquet".into();
    store.put(&name, file.clone().into()).await.unwrap();
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    let reader = datafusion::parquet::arrow::arrow_reader::ArrowReaderMetadata::load(
        &bytes::Bytes::from(file),
        Default::default(),
    );
    let own = reader.unwrap().schema().clone();
    let columns = own.fields().iter().map(|field| file_index_column(field).unwrap());
    let options = FileIndexOptions::new(columns.collect(), 1)
        .with_part_values(256)
        .with_false_row_groups(1.0, 1_000);
    // Only name, length and time are known. The time is later than that of the store.
    let later = std::time::Duration::from_nanos(4_000_000_000_123_456_789);
    let last_modified = (std::time::SystemTime::UNIX_EPOCH + later).into();
    let listed = listed.into_iter().map(|file: ObjectMeta| ObjectMeta {
        last_modified,
        e_tag: None,
        ..file
    });
    let index = "golden.index".into();
    build_file_index(store.clone(), listed.collect(), &options, &index, |_| ()).await.unwrap();
    let built = store.get(&index).await.unwrap().bytes().await.unwrap();
    let found = blocked_bloom_file_index::FileIndex::from_bytes(&built[..]).unwrap();
    let hash = blocked_bloom::KeyHasher::default().hash(&built);
    let mut lines = vec![format!("{hash:#018x}")];
    lines.extend(found.manifest().columns().enumerate().map(|(number, column)| {
        let KeyHash::Xxh3 { seed } = column.key_hash() else { panic!("{column:?}") };
        let types: Vec<&str> = found.manifest().types(number).collect();
        format!("{} {seed} {}", column.name(), types.join(" "))
    }));
    let expected = std::fs::read_to_string(golden.join("golden_files.txt")).unwrap();
    assert_eq!(lines[1..], expected.lines().skip(1).collect::<Vec<_>>());
    assert_eq!(lines[0], expected.lines().next().unwrap());
    // The Python package creates the etags of local files in the same way as this store.
    use std::os::unix::fs::MetadataExt;
    let files = Files::new(17);
    let listed: Vec<_> = files.store().list(None).try_collect::<Vec<ObjectMeta>>().await.unwrap();
    for file in listed {
        let path = files.directory.path().join(file.location.to_string());
        let found = std::fs::metadata(path).unwrap();
        let nanoseconds = found.mtime() * 1_000_000_000 + found.mtime_nsec();
        let etag = format!("{:x}-{:x}-{:x}", found.ino(), nanoseconds / 1000, found.len());
        assert_eq!(file.e_tag, Some(etag));
        assert_eq!(file.last_modified.timestamp_nanos_opt(), Some(nanoseconds));
    }
}

/// The index has every listed file once, rules all of them out for an absent value, and changes the
/// answer of no query.
async fn check_index(files: &Files, store: &Arc<Counting>) {
    let listed = std::fs::read_dir(files.directory.path().join("spans")).unwrap().count();
    for in_memory in [false, true] {
        let index = files.open(store, in_memory).await;
        let names = index.manifest().files().map(|file| file.identity().name().to_string());
        assert_eq!(names.collect::<std::collections::BTreeSet<_>>().len(), listed);
        assert_eq!(index.manifest().files().len(), listed);
        let indexed = TableSetup::new().context(store, Some(index), &files.traces);
        let plain = TableSetup::new().context(store, None, &files.traces);
        let plan = plan(&indexed, "SELECT * FROM spans WHERE trace_id = 'absent'").await;
        assert!(plan.contains(&format!("file_index_left=[0 of {listed} files]")), "{plan}");
        let mut random = Random(7);
        for kind in 0..KINDS {
            let sql = query(kind, &mut random, &files.traces);
            match (answer(&indexed, &sql).await, answer(&plain, &sql).await) {
                (Ok(a), Ok(b)) => assert_eq!(a, b, "{sql}"),
                (a, b) => assert!(a.is_err() && b.is_err(), "{sql}"),
            }
        }
    }
}

/// An update adds new and changed files and drops files that are no longer listed. Lookups find the
/// same values as before.
#[tokio::test]
async fn an_update_adds_new_files_and_drops_missing_ones() {
    let mut files = Files::new(13);
    files.build(&["trace_id", "user_id"]).await;
    let path = files.directory.path().join("spans.index");
    let store = files.store();
    let update = async |tag: u64, same_file: SameFile| {
        let store: Arc<dyn ObjectStore> = store.clone();
        let listed: Vec<_> = store.list(Some(&"spans".into())).try_collect().await.unwrap();
        let mut calls = 0;
        let count = |_: &_| calls += 1;
        let index = "spans.index".into();
        let report = update_file_index(store, listed, &index, same_file, tag, count).await;
        let report = report.unwrap();
        // The last files have no users, or users of another type.
        let expected: &[&str] = match tag {
            4 => &["spans/f016.parquet", "spans/f017.parquet"],
            _ => &[],
        };
        let mut reported: Vec<&str> =
            report.left_out.iter().map(|(path, _)| path.as_ref()).collect();
        // In the order of the listing, which file systems choose.
        reported.sort_unstable();
        assert_eq!((report.files, &reported[..]), (calls, expected), "{report:?}");
        assert_eq!(report.bytes, std::fs::metadata(&path).unwrap().len());
        report.files
    };
    let before = std::fs::read(&path).unwrap();
    assert_eq!(update(2, SameFile::Tag).await, 0);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let new = |files: &mut Files, file: usize| {
        let batch = spans(&mut Random(file as u64), 50, START);
        files.traces.extend(traces_of(&batch, 5));
        write(&files.path(file), &batch, 2, false).unwrap();
    };
    // A small update is merged with the planes that are there. Updates take at most 2.5 times the
    // bytes of an index that is built at once.
    (FILES..FILES + 2).for_each(|file| new(&mut files, file));
    assert_eq!(update(3, SameFile::Tag).await, 2);
    let merged = std::fs::read(&path).unwrap();
    build(files.store(), "spans", "anew.index", &["trace_id", "user_id"]).await;
    let anew = std::fs::read(files.directory.path().join("anew.index")).unwrap();
    assert!(merged != before && 2 * merged.len() <= 5 * anew.len());
    check_index(&files, &store).await;
    // Replaced and deleted files are dropped.
    std::thread::sleep(std::time::Duration::from_millis(20));
    change(&mut files, "all", &mut Random(6));
    assert!(update(4, SameFile::Tag).await > 10);
    check_index(&files, &store).await;
    // Compared by name only, no file is new.
    assert_eq!(update(5, SameFile::Name).await, 0);
    // A damaged index stays, and the error says so.
    let mut damaged = std::fs::read(&path).unwrap();
    damaged[70] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let to: Arc<dyn ObjectStore> = store.clone();
    let rule = SameFile::Tag;
    let updated = update_file_index(to, Vec::new(), &"spans.index".into(), rule, 6, |_| ()).await;
    assert!(updated.is_err() && std::fs::read(&path).unwrap() == damaged);
}

/// Reading a truncated file is an error, as it is without an index, even if the index rules the
/// file out.
#[tokio::test]
async fn reading_truncated_files_is_an_error() {
    let files = Files::new(14);
    files.build(&["trace_id"]).await;
    let store = files.store();
    let length = std::fs::metadata(files.path(3)).unwrap().len();
    for left in [length - 1, length / 2, 3, 0] {
        let file = std::fs::OpenOptions::new().write(true).open(files.path(3)).unwrap();
        file.set_len(left).unwrap();
        for (in_memory, statistics) in [(false, true), (true, true), (true, false)] {
            let how = TableSetup { statistics, ..TableSetup::new() };
            let index = files.open(&store, in_memory).await;
            let indexed = how.context(&store, Some(index), &files.traces);
            let plain = how.context(&store, None, &files.traces);
            for trace in ["absent", &files.traces[0]] {
                let sql = format!("SELECT * FROM spans WHERE trace_id = '{trace}'");
                let (a, b) = (answer(&indexed, &sql).await, answer(&plain, &sql).await);
                assert_eq!(a.is_err(), b.is_err(), "{left} bytes left: {a:?}\n{b:?}");
                // The engine reads no rows from an empty file.
                assert_eq!(b.is_err(), left > 0, "{b:?}");
            }
        }
    }
}

/// `EXPLAIN` says why an index is not looked up, or only partly.
#[tokio::test]
async fn plans_say_why_an_index_does_not_help() {
    let files = Files::new(15);
    files.build(&["trace_id"]).await;
    let store = files.store();
    let index = files.open(&store, false).await;
    let context = TableSetup::new().context(&store, Some(index), &files.traces);
    let many: Vec<String> = (0..4097).map(|i| format!("'{i}'")).collect();
    let many = format!("SELECT * FROM spans WHERE trace_id IN ({})", many.join(", "));
    let text = plan(&context, &many).await;
    let expected = "file_index_problems=[4097 values are not looked up (at most 4096)]";
    assert!(text.contains(expected) && !text.contains("file_index_left"), "{text}");
    let one = "SELECT * FROM spans WHERE trace_id = 'absent'";
    let text = plan(&context, one).await;
    assert!(!text.contains("problems"), "{text}");
    let path = files.directory.path().join("spans.index");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, vec![0x55; bytes.len()]).unwrap();
    let text = plan(&context, one).await;
    let (_, problem) =
        text.split_once("file_index_problems=[index of trace_id is damaged: ").unwrap();
    assert!(!problem.starts_with(']') && text.contains("=[20 of 20 files"), "{text}");
    std::fs::remove_file(&path).unwrap();
    let text = plan(&context, one).await;
    assert!(text.contains("file_index_problems=[index of trace_id cannot be read: "), "{text}");
    // The keys that a join fills in are looked up later.
    let join = "EXPLAIN ANALYZE SELECT count(*) FROM keys JOIN spans ON id = trace_id";
    let text = answer(&context, join).await.unwrap().join("\n");
    assert!(text.contains("file_index_problems=1"), "{text}");
}

/// The filter of a sort with a limit changes while the sort runs. The looked-up values do not.
#[tokio::test]
async fn ranges_are_requested_once_for_a_sort_with_a_limit() {
    let files = Files::new(16);
    files.build(&["trace_id"]).await;
    let store = files.store();
    let how = TableSetup { statistics: false, partitions: 1, ..TableSetup::new() };
    let sql = "SELECT ts, message FROM keys JOIN spans ON id = trace_id ORDER BY ts DESC LIMIT 2";
    let plain = how.context(&store, None, &files.traces);
    let expected = answer(&plain, sql).await.unwrap();
    // Only requests for the index count.
    let of_index = files.store();
    let index = files.open(&of_index, false).await;
    let context = how.context(&store, Some(index), &files.traces);
    assert!(plan(&context, sql).await.matches("DynamicFilter").count() > 1);
    _ = of_index.take();
    assert_eq!(answer(&context, sql).await.unwrap(), expected);
    assert_eq!(of_index.take().requests, 1);
}

/// Values in the path are not values of the file, even under the name of an indexed column.
#[tokio::test]
async fn partition_columns_are_not_looked_up() {
    let files = Files::new(8);
    let part = files.directory.path().join("spans/user_id=12345678");
    std::fs::create_dir(&part).unwrap();
    std::fs::rename(files.path(0), part.join("f000.parquet")).unwrap();
    (1..FILES).for_each(|file| std::fs::remove_file(files.path(file)).unwrap());
    files.build(&["trace_id", "user_id"]).await;
    let store = files.store();
    let index = files.open(&store, true).await;
    let url = ObjectStoreUrl::parse(URL).unwrap();
    let state = SessionStateBuilder::new_with_default_features().build();
    let state = with_file_index(state, url.clone(), index);
    let context = SessionContext::new_with_state(state);
    context.register_object_store(url.as_ref(), store);
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
        .with_table_partition_cols(vec![("user_id".into(), DataType::Int64)]);
    let table = ListingTableConfig::new(ListingTableUrl::parse(format!("{URL}/spans/")).unwrap())
        .with_listing_options(options)
        .with_schema(retyped(&spans(&mut Random(1), 1, 0), &[("user_id", None)]).schema());
    context.register_table("spans", Arc::new(ListingTable::try_new(table).unwrap())).unwrap();
    for (filter, any) in [
        ("user_id = 12345678", true),
        ("user_id = 12345678 AND status = 200", true),
        ("user_id = 1", false),
    ] {
        let sql = format!("SELECT count(*) > 0 FROM spans WHERE {filter}");
        let answer = answer(&context, &sql).await.unwrap();
        assert!(answer.iter().any(|line| line.contains(&any.to_string())), "{filter}: {answer:?}");
    }
}

/// Two indexes of one store with one column each: both prune files.
#[tokio::test]
async fn several_indexes_prune_together() {
    let files = Files::new(9);
    let store = files.store();
    build(store.clone(), "spans", "traces.index", &["trace_id"]).await;
    build(store.clone(), "spans", "users.index", &["user_id"]).await;
    let url = ObjectStoreUrl::parse(URL).unwrap();
    let mut state = SessionStateBuilder::new_with_default_features().build();
    for index in ["traces.index", "users.index"] {
        let index = StoredFileIndex::open(store.clone(), &index.into()).await.unwrap();
        state = with_file_index(state, url.clone(), Arc::new(index));
    }
    let context = SessionContext::new_with_state(state);
    context.register_object_store(url.as_ref(), store.clone());
    let table = listing(&format!("{URL}/spans/"), &schema());
    context.register_table("spans", Arc::new(table)).unwrap();
    let both = format!("trace_id = '{}' AND user_id = -5", files.traces[0]);
    let plan = plan(&context, &format!("SELECT * FROM spans WHERE {both}")).await;
    assert!(plan.contains("file_index_left=[0 of 20 files]"), "{plan}");
    assert_eq!(plan.matches("file_index=").count(), 1, "{plan}");
    let one = format!("SELECT * FROM spans WHERE trace_id = '{}'", files.traces[0]);
    let plan = self::plan(&context, &one).await;
    assert!(plan.contains("file_index_left=[1 of 20 files"), "{plan}");
}
