//! The index of the files of a data set, written by `blocked-bloom-file-index`:
//! `docs/file-index.md`.

use std::collections::BTreeSet;

use blocked_bloom::{KeyHash, KeyHasher};
use blocked_bloom_file_index::{Candidates, FileEntry, FileIndex, MAGIC, Manifest};
use blocked_bloom_formats::parquet::PhysicalType;

use crate::error::{BadKey, Error, Warning};
use crate::facts::{Facts, List, Summary, hash_parts, sizes};
use crate::message::{LookupOption, Message};
use crate::options::LookupOptions;
use crate::system::{Answers, Format, FoundFile, LookupContext, Stored, System, pass_all};
use crate::typed::ColumnType;
use crate::value::{Value, object};

impl Format {
    /// The index of the files of a data set, written by `blocked-bloom-file-index`.
    pub const FILE_INDEX: Format = Format::new(&System {
        options: &[LookupOption::Column, LookupOption::ValueType],
        ..System::native("file-index", "The index of the files of a data set", MAGIC, |source| {
            source.boxed(FileIndex::from_bytes(source.bytes()?))
        })
    });
}

/// Names of the Arrow types whose values are hashed as their bytes.
const BYTES: [&str; 6] = ["Utf8", "LargeUtf8", "Utf8View", "Binary", "LargeBinary", "BinaryView"];

const BYTES_SEED: u64 = 3;

/// Names of the types whose values are hashed as eight bytes, little-endian.
const INTEGERS: [&str; 8] =
    ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"];
const INTEGERS_SEED: u64 = 1;

/// Numbers of files that a description lists, for people and for programs.
const FILES_SHOWN: usize = 10;
const FILES_LISTED: usize = 1_000;

/// Totals of a column over all files.
struct ColumnTotals {
    known: u64,
    unknown: u64,
    values: u64,
}

impl ColumnTotals {
    fn new(manifest: &Manifest, column: usize) -> Self {
        let known: Vec<u64> =
            manifest.files().flat_map(|file| file.values(column).flatten()).collect();
        let (count, values) = (known.len() as u64, known.iter().sum());
        ColumnTotals { known: count, unknown: manifest.row_groups() - count, values }
    }
}

impl Stored for FileIndex<&[u8]> {
    fn describe(&self, about: &Summary) -> Facts {
        let manifest = self.manifest();
        let heads = [
            "column",
            "types",
            "key hash",
            "row groups",
            "unknown",
            "values",
            "bits a value",
            "read in vain",
        ];
        let mut list = List::new(3, &heads);
        let mut columns = Vec::new();
        for (number, column) in manifest.columns().enumerate() {
            let ColumnTotals { known, unknown, values } = ColumnTotals::new(manifest, number);
            let types: Vec<&str> = manifest.types(number).collect();
            let bytes = manifest.column_bytes(number);
            let bits = (values > 0).then(|| 8.0 * bytes as f64 / values as f64);
            let in_vain = manifest.expected_false_row_groups(number);
            let (hash, seed, tag) = hash_parts(column.key_hash());
            let shape = manifest.shape(number);
            list.lines.push(vec![
                column.name().to_owned(),
                types.join(", "),
                column.key_hash().to_string(),
                known.to_string(),
                unknown.to_string(),
                values.to_string(),
                bits.map_or_else(String::new, |bits| format!("{bits:.1}")),
                format!("{in_vain:.3}"),
            ]);
            columns.push(object! {
                "name": column.name().to_owned(),
                "field_id": column.field_id().map(i64::from),
                "types": types.into_iter().map(Value::from).collect::<Vec<_>>(),
                "hash": hash,
                "seed": seed,
                "tag_of_hash": tag,
                "part_values": shape.map(|(_, part_values)| part_values),
                "shape": shape.map(|(shape, _)| shape.to_string()),
                "row_groups": known,
                "row_groups_unknown": unknown,
                "values": values,
                "bytes": bytes,
                "bits_per_value": bits,
                "row_groups_read_in_vain": in_vain,
            });
        }
        let files = manifest.files().len();
        let json = object! {
            "stored_bytes": about.length,
            "files": files as u64,
            "row_groups": manifest.row_groups(),
            "first_files": manifest.files().take(FILES_LISTED).map(listed).collect::<Vec<_>>(),
            "columns": columns,
            "checksums_ok": true,
        };
        let mut rows = vec![
            ("format", about.format.to_owned()),
            ("files", files.to_string()),
            ("row groups", manifest.row_groups().to_string()),
            ("columns", manifest.columns().len().to_string()),
            ("stored size", sizes(about.length)),
            ("checksums", "ok".to_owned()),
        ];
        let mut first: Vec<String> = manifest.files().take(FILES_SHOWN).map(shown).collect();
        if files > FILES_SHOWN {
            first.push(format!("{} more", files - FILES_SHOWN));
        }
        if files > 0 {
            rows.push(("first files", first.join(", ")));
        }
        Facts { list: Some(list), ..Facts::new(about, json, rows) }
    }

    /// Looks up values in any row group of any file.
    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        let manifest = self.manifest();
        let column = chosen(manifest, wanted.options.column.as_deref())?;
        let keys = keys(manifest, column, wanted.options)?;
        let unknown = ColumnTotals::new(manifest, column).unknown;
        if unknown > 0 {
            let problem = format!("values of {unknown} row groups are not known");
            wanted.warnings.push(Warning::pass_all(problem));
            return pass_all();
        }
        let Some(key_hash) = manifest.columns().nth(column).map(|column| column.key_hash()) else {
            return pass_all();
        };
        let Ok(hasher) = key_hash.hasher() else {
            wanted.warnings.push(Warning::pass_all(format_args!("a column of {key_hash}")));
            return pass_all();
        };
        let text = "the answers are of the files as they were when they were indexed";
        wanted.warnings.push(Warning::new(Message::new(text), false));
        Ok(Box::new(move |values, hits| {
            let hash = |(index, value): (usize, &&[u8])| {
                keys.hash(hasher, value).map_err(|problem| BadKey { index, problem })
            };
            let hashes = values.iter().enumerate().map(hash).collect::<Result<Vec<_>, _>>()?;
            hits.write(values.len(), |words| {
                words.fill(0);
                for (i, hash) in hashes.into_iter().enumerate() {
                    let lookup = manifest.lookup(column, key_hash, |_| true, [hash]);
                    let found = lookup.and_then(|lookup| self.candidates(&lookup));
                    // Errors do not occur here; if one did, the key must not be absent.
                    let is_hit = found.as_ref().map_or(1, Candidates::count) > 0;
                    words[i / 64] |= u64::from(is_hit) << (i % 64);
                }
            });
            Ok(())
        }))
    }

    fn files_with(&self, key: &[u8], options: &LookupOptions) -> Result<Vec<FoundFile>, Error> {
        let manifest = self.manifest();
        let column = chosen(manifest, options.column.as_deref())?;
        let keys = keys(manifest, column, options)?;
        let failed = |what: &dyn std::fmt::Display| Error::Options(Message::new(what));
        let key_hash = manifest.columns().nth(column).map(|column| column.key_hash());
        let key_hash = key_hash.ok_or_else(|| failed(&"no such column"))?;
        let hasher = key_hash.hasher().map_err(|error| failed(&error))?;
        let hash = keys.hash(hasher, key).map_err(Error::Options)?;
        let lookup = manifest.lookup(column, key_hash, |_| true, [hash]);
        let found = lookup.and_then(|lookup| self.candidates(&lookup));
        let found = found.map_err(|error| failed(&error))?;
        let files = manifest.files().map(|file| {
            let (candidates, values) = (file.candidates(&found), file.values(column));
            let known = values.enumerate().filter(|(_, values)| values.is_some());
            let known: BTreeSet<usize> = known.map(|(number, _)| number).collect();
            let (row_groups, unknown) = candidates.hits().partition(|group| known.contains(group));
            FoundFile { name: file.identity().name().to_owned(), row_groups, unknown }
        });
        Ok(files.filter(|file| !file.row_groups.is_empty() || !file.unknown.is_empty()).collect())
    }
}

/// Describes an indexed file for people.
fn shown(file: FileEntry<'_>) -> String {
    let (identity, row_groups) = (file.identity(), file.row_groups());
    let groups = if row_groups == 1 { "row group" } else { "row groups" };
    format!("{} ({} bytes, {row_groups} {groups})", identity.name(), identity.length())
}

/// Describes an indexed file for programs.
fn listed(file: FileEntry<'_>) -> Value {
    let identity = file.identity();
    object! {
        "name": identity.name().to_owned(),
        "bytes": identity.length(),
        "etag": identity.etag().map(str::to_owned),
        "version": identity.version().map(str::to_owned),
        "modified": identity.modified(),
        "row_groups": u64::from(file.row_groups()),
    }
}

/// How a key is converted to the bytes that are hashed.
enum Keys {
    Bytes,
    /// Decimal text, hashed as eight bytes.
    Integer,
}

impl Keys {
    fn hash(&self, hasher: KeyHasher, key: &[u8]) -> Result<u64, Message> {
        match self {
            Keys::Bytes => Ok(hasher.hash(key)),
            Keys::Integer => {
                let value = ColumnType::from(PhysicalType::Int64).encode(key, false)?;
                Ok(hasher.hash(&value.bytes))
            }
        }
    }
}

/// Returns the number of the column with this name, or of the only column.
fn chosen(manifest: &Manifest, name: Option<&str>) -> Result<usize, Error> {
    let found = match name {
        Some(name) => manifest.column(name),
        None => (manifest.columns().len() == 1).then_some(0),
    };
    found.ok_or_else(|| {
        let names = manifest.columns().map(|column| format!("{:?}", column.name()));
        let names = names.collect::<Vec<_>>().join(", ");
        let after = format!(": columns of the index are {names}");
        Error::Options(Message::naming("give ", LookupOption::Column, after))
    })
}

/// Returns how keys of a column are hashed, if its types determine that.
fn keys(manifest: &Manifest, column: usize, wanted: &LookupOptions) -> Result<Keys, Error> {
    if wanted.encoded {
        return Ok(Keys::Bytes);
    }
    let types: Vec<&str> = manifest.types(column).collect();
    let key_hash = manifest.columns().nth(column).map(|column| column.key_hash());
    // Only the writer knows how it hashes the values of a type. The DataFusion integration uses one
    // seed for each kind of key.
    let all = |(names, seed): (&[&str], u64)| {
        key_hash == Some(KeyHash::Xxh3 { seed }) && types.iter().all(|own| names.contains(own))
    };
    match wanted.value_type {
        None | Some(PhysicalType::ByteArray) if all((&BYTES, BYTES_SEED)) => Ok(Keys::Bytes),
        None | Some(PhysicalType::Int32 | PhysicalType::Int64)
            if all((&INTEGERS, INTEGERS_SEED)) =>
        {
            Ok(Keys::Integer)
        }
        _ => Err(Error::Options(Message::new(format_args!(
            "how values of {} were hashed is not known: give the bytes that were hashed",
            types.join(", ")
        )))),
    }
}
