//! An asynchronous writer of tables that builds the filter while it writes the records.
//!
//! ```text
//! cargo run --release --example sst_flush
//! ```
//!
//! Flushes four tables of dictionary words at the same time on tokio's current thread. It writes
//! each record and passes its key to the builder, finishes the filter on a thread for blocking
//! work, and renames the file to its final name after everything is stored. Then it opens each
//! table and looks up the words in it and words that are in no table. Prints the size of each
//! filter and its false-positive rate.
//!
//! ```text
//! table    records | filter | start of the filter, u64
//! record   length of the key, u32 | key | length of the value, u32 | value
//! ```
#![expect(clippy::print_stdout, reason = "an example for the command line")]

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use blocked_bloom::{
    Bitmask, BloomFilter, BloomFilterBuilder, FilterOptions, KeyHasher, Sizing, Stored,
};
use tokio::fs::{self, File};
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::task;

const WORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/keys/words.txt");
const TABLES: usize = 4;

/// The settings on which writers and readers must agree.
fn options() -> FilterOptions {
    // Beyond 16 MiB of hashes, keys go directly into a filter for the expected number of keys.
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    options.with_memory_limit(16 << 20).with_expected_items(5_000_000)
}

struct TableWriter {
    file: BufWriter<File>,
    filter: BloomFilterBuilder,
    path: PathBuf,
    end: u64,
}

impl TableWriter {
    async fn create(path: PathBuf) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path.with_extension("tmp")).await?);
        Ok(TableWriter { file, filter: options().builder(), path, end: 0 })
    }

    async fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.filter.insert(key).map_err(io::Error::other)?;
        for part in [key, value] {
            self.file.write_u32_le(part.len().try_into().map_err(io::Error::other)?).await?;
            self.file.write_all(part).await?;
        }
        self.end += (8 + key.len() + value.len()) as u64;
        Ok(())
    }

    /// Stores the filter after the records. If a writer is dropped earlier, it leaves a `.tmp` file
    /// and no table. No earlier table had this name, so no file mode must be preserved.
    async fn finish(mut self) -> io::Result<()> {
        // Takes milliseconds for a large table: too long for a thread that runs other tasks.
        let build = task::spawn_blocking(|| self.filter.finish_verified_or_pass_all());
        let (filter, error) = build.await?.map_err(io::Error::other)?;
        error.inspect(|error| eprintln!("{}: no filter: {error}", self.path.display()));
        self.file.write_all(&filter.to_bytes()).await?;
        self.file.write_u64_le(self.end).await?;
        self.file.flush().await?;
        self.file.get_ref().sync_all().await?;
        fs::rename(self.path.with_extension("tmp"), self.path).await
    }
}

async fn flush(path: PathBuf, words: Vec<String>) -> io::Result<()> {
    let mut table = TableWriter::create(path).await?;
    for (word, number) in words.iter().zip(0_u64..) {
        table.add(word.as_bytes(), &number.to_le_bytes()).await?;
    }
    table.finish().await
}

async fn open_filter(path: &Path) -> io::Result<BloomFilter<Stored<Vec<u8>>>> {
    let bytes = fs::read(path).await?;
    let filter = bytes
        .split_last_chunk()
        .and_then(|(bytes, start)| bytes.get(usize::try_from(u64::from_le_bytes(*start)).ok()?..));
    // For a damaged table this is an empty slice, which does not open as a filter.
    let filter = filter.unwrap_or_default().to_vec();
    BloomFilter::from_bytes(filter, options().key_hash()).map_err(io::Error::other)
}

async fn run(folder: &Path) -> Result<(), Box<dyn Error>> {
    // The sorted words of each table, followed by the words that are in no table.
    let mut runs: [Vec<String>; TABLES + 1] = Default::default();
    for word in fs::read_to_string(WORDS).await?.lines() {
        let random = KeyHasher::default().hash(word) as usize;
        runs[random % runs.len()].push(word.into());
    }
    runs.iter_mut().for_each(|run| run.sort());
    let path = |i: usize| folder.join(format!("{i}.table"));
    let start = |i: usize| task::spawn(flush(path(i), runs[i].clone()));
    for flush in (0..TABLES).map(start).collect::<Vec<_>>() {
        flush.await??;
    }

    println!("table   records   filter   absent words that pass   predicted");
    for (i, run) in runs[..TABLES].iter().enumerate() {
        let (filter, mut hits) = (open_filter(&path(i)).await?, Bitmask::new());
        filter.contains_batch(run, &mut hits);
        assert_eq!(hits.count_hits(), run.len());
        filter.contains_batch(&runs[TABLES], &mut hits);
        let passed = 100.0 * hits.count_hits() as f64 / runs[TABLES].len() as f64;
        let predicted = 100.0 * filter.expected_false_positive_rate();
        let (records, bytes) = (run.len(), filter.params().stored_bytes());
        println!("{i:>5}{records:>10}{bytes:>9}{passed:>23.2} %{predicted:>10.2} %");
        assert!(passed < 1.5 * predicted);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    tokio::runtime::Builder::new_current_thread().build()?.block_on(run(folder.path()))
}
