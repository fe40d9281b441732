//! The filter classes.

use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use blocked_bloom::{Bitmask, FilterOptions, KeyHash, Sizing};
use blocked_bloom_scalable::ScalableOptions;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::batch::{Answers, Batch, Keys, PIECE, hash_onto};
use crate::bytes::Bytes;
use crate::classes::Classes;
use crate::columns::CHUNK;
use crate::error::{Error, memory_error};
use crate::hash::Hasher;
use crate::shared::Shared;
use crate::store::Store;
use crate::stored::Target;
use crate::{objects, stored};

/// Rows that several threads hash before the hashes are added (64 MiB of hashes). Ctrl-C is checked
/// between such slices.
const ROWS_OF_HASHES: usize = 8 << 20;

/// Base class of `BloomFilter` and `ScalableBloomFilter`.
///
/// Keys are str, bytes, int, UUID and tuples of these. A batch of keys is a NumPy array; a column
/// of pyarrow, Polars, pandas or another library with Arrow's PyCapsule interface; a list or other
/// iterable of keys; or a list of arrays, whose rows are the keys. Each array of a list is a
/// column: rows of a two-dimensional array are refused wherever NumPy tells them from columns. None
/// and NULL are not added. Their answer is NULL, or False if the library has no NULL.
#[pyclass(frozen, subclass, weakref, module = "blocked_bloom")]
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) store: Shared<Store>,
    pub(crate) hasher: Hasher,
    /// `None` for filters without an intended rate.
    full: Option<CapacityCheck>,
}

/// Decides when to check whether a filter holds too many keys.
#[derive(Debug)]
struct CapacityCheck {
    keys: u64,
    fpr: f64,
    /// Number of added keys at which the bits are counted next.
    next: AtomicU64,
}

/// A Bloom filter for a number of keys known at least roughly.
///
/// `keys` is the expected number of distinct keys, and `fpr` the false positive rate once that many
/// were added. `bits_per_key` sets the size instead of `fpr`. More keys than expected can be added,
/// but twice as many make the rate twelve times as high at 1 %. A `RuntimeWarning` is raised once
/// per filter when its rate exceeds four times the intended one. Copies, merged filters and loaded
/// filters do not know the intended rate and never warn.
///
/// >>> seen = BloomFilter(1_000_000, fpr=0.001)
/// >>> seen.add("apple")
/// True
/// >>> seen.add("apple")
/// False
/// >>> "apple" in seen, "banana" in seen
/// (True, False)
/// >>> seen.update(["cherry", "damson", 7])
/// >>> seen.contains(["cherry", "elder", 7])
/// array([ True, False,  True])
#[pyclass(
    frozen,
    subclass,
    extends = Filter,
    name = "BloomFilter",
    module = "blocked_bloom._native"
)]
#[derive(Debug)]
pub(crate) struct KnownFilter;

/// A Bloom filter for an unknown number of keys: it grows and keeps its rate.
///
/// The false positive rate never exceeds `fpr`. The first part holds `first_keys` keys; each
/// further part is twice as large, and a lookup searches all parts. If you know the number of keys,
/// a `BloomFilter` is smaller and faster.
///
/// >>> seen = ScalableBloomFilter(0.001)
/// >>> seen.add_new(["apple", "banana", "apple"])
/// array([ True,  True, False])
#[pyclass(
    frozen,
    subclass,
    extends = Filter,
    name = "ScalableBloomFilter",
    module = "blocked_bloom._native"
)]
#[derive(Debug)]
pub(crate) struct GrowingFilter;

impl Filter {
    /// Number of added keys at which the filter may be too full.
    #[inline]
    pub(crate) fn warns_at(&self) -> u64 {
        self.full.as_ref().map_or(u64::MAX, |full| full.next.load(Ordering::Relaxed))
    }

    fn from_store(store: Store) -> PyResult<Self> {
        let hasher = Hasher::from_key_hash(store.key_hash())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Filter { store: Shared::new(store), hasher, full: None })
    }

    /// Warns once if the false positive rate exceeds four times the intended one. The rate is
    /// estimated from the bits, because repeated keys count as added. The bits are read after twice
    /// the intended number of keys, and again at each doubling.
    fn warn_if_full(&self, py: Python<'_>) -> PyResult<()> {
        let Some(CapacityCheck { keys, fpr, next }) = &self.full else { return Ok(()) };
        let added = self.store.read(py, Store::keys);
        if added < next.load(Ordering::Relaxed) {
            return Ok(());
        }
        next.store(added.saturating_mul(2), Ordering::Relaxed);
        let found = self.estimate_fpr(py);
        if found <= 4.0 * fpr {
            return Ok(());
        }
        next.store(u64::MAX, Ordering::Relaxed);
        let text = format!(
            "{added} keys were added to a BloomFilter for {keys}: \
             {:.2} % false positives in place of {:.2} %",
            100.0 * found,
            100.0 * fpr
        );
        let text = std::ffi::CString::new(text)?;
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)
    }

    fn copied(&self, py: Python<'_>) -> PyResult<Store> {
        let store = self.store.detach(py);
        Ok(py.detach(|| store.read(Store::copy))?)
    }
}

/// Wraps a filter in its Python class.
fn into_python(py: Python<'_>, store: Store) -> PyResult<Py<PyAny>> {
    let growing = store.is_growing();
    let (base, classes) = (PyClassInitializer::from(Filter::from_store(store)?), Classes::get(py));
    let (object, class) = if growing {
        (Bound::new(py, base.add_subclass(GrowingFilter))?.into_any(), &classes.growing)
    } else {
        (Bound::new(py, base.add_subclass(KnownFilter))?.into_any(), &classes.known)
    };
    // The public class has the same layout and differs only in its methods.
    object.setattr(pyo3::intern!(py, "__class__"), class)?;
    Ok(object.unbind())
}

/// Opens a filter in a file and wraps it in its Python class.
pub(crate) fn open_file(
    py: Python<'_>,
    path: &Path,
    open: impl FnOnce() -> Result<Store, Error> + Send,
) -> PyResult<Py<PyAny>> {
    into_python(py, py.detach(open).map_err(|error| error.for_file(path))?)
}

/// Creates a pool for one call if the batch is columns and worth more than one thread: at most one
/// thread per core and per piece of rows. A longer-lived pool would have no threads in a forked
/// child, which would wait for them forever.
fn pool(threads: i64, batch: &Batch<'_>) -> PyResult<Option<rayon::ThreadPool>> {
    let threads = usize::try_from(threads).unwrap_or(0);
    if threads == 0 {
        return Err(PyValueError::new_err("threads must be 1 or more"));
    }
    let Batch::Columns { len, .. } = batch else { return Ok(None) };
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(cores).min(len.div_ceil(PIECE));
    if threads < 2 {
        return Ok(None);
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().map(Some).map_err(memory_error)
}

/// Splits the rows of a batch into slices.
fn slices(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(ROWS_OF_HASHES).map(move |start| start..len.min(start + ROWS_OF_HASHES))
}

#[pymethods]
impl Filter {
    /// Adds a key and returns True if it was certainly not in the filter before.
    ///
    /// >>> seen = BloomFilter(100)
    /// >>> seen.add("apple"), seen.add("apple")
    /// (True, False)
    #[pyo3(signature = (key, /))]
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = objects::hash(self.hasher, key)?;
        let new = self.store.write(py, |store| store.insert_hash(hash))?;
        self.warn_if_full(py)?;
        Ok(new)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = objects::hash(self.hasher, key)?;
        Ok(self.store.read(py, |store| store.contains_hash(hash)))
    }

    /// Adds every key of a batch. Columns use up to `threads` threads, at most one per core.
    ///
    /// If a key is refused, earlier keys may have been added. Adding the batch again does no harm.
    ///
    /// >>> import numpy as np
    /// >>> seen = BloomFilter(1000)
    /// >>> seen.update(np.arange(1000))
    /// >>> len(seen)
    /// 1000
    #[pyo3(signature = (keys, *, threads=1))]
    fn update(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: i64) -> PyResult<()> {
        let batch = Batch::new(keys, self.hasher)?;
        if let Some(pool) = pool(threads, &batch)?
            && let Batch::Columns { columns, are_tuples, len, hasher } = &batch
        {
            let store = self.store.detach(py);
            for rows in slices(*len) {
                py.detach(|| {
                    pool.install(|| {
                        let hashes = Batch::hashes(columns, *are_tuples, rows, *hasher)?;
                        store.write(|store| store.par_insert_hashes(&hashes))
                    })
                })?;
                py.check_signals()?;
            }
            return self.warn_if_full(py);
        }
        self.run_changing(py, batch, &mut Answers::default(), |store, keys, _| store.insert(keys))?;
        self.warn_if_full(py)
    }

    /// Returns for each key of a batch whether it may be in the filter; False means certainly
    /// absent.
    ///
    /// The answers are booleans of pyarrow or Polars for their keys, else of NumPy. `threads` works
    /// as in `update`.
    ///
    /// >>> import pyarrow as pa
    /// >>> seen = BloomFilter(100)
    /// >>> seen.update(["apple", "banana"])
    /// >>> seen.contains(pa.array(["apple", None, "cherry"])).to_pylist()
    /// [True, None, False]
    #[pyo3(signature = (keys, *, threads=1))]
    fn contains<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batch = Batch::new(keys, self.hasher)?;
        if let Some(pool) = pool(threads, &batch)?
            && let Batch::Columns { columns, are_tuples, len, hasher } = &batch
        {
            let (store, mut answers) = (self.store.detach(py), Answers::default());
            for rows in slices(*len) {
                answers.append(py.detach(|| {
                    pool.install(|| {
                        Batch::run_shared(columns, *are_tuples, rows, *hasher, |keys, words| {
                            store.read(|store| store.contains(keys, words))
                        })
                    })
                })?);
                py.check_signals()?;
            }
            return answers.into_python(keys);
        }
        let detached = batch.is_columns().then(|| self.store.detach(py));
        let mut answers = Answers::default();
        batch.run(py, &mut answers, |py, keys, words| {
            let op = |store: &Store| store.contains(keys, words);
            match (&detached, py) {
                (Some(store), _) => store.read(op),
                (None, py) => self.store.read(py.expect("attached for objects"), op),
            }
            Ok::<_, Error>(())
        })?;
        answers.into_python(keys)
    }

    /// Adds every key of a batch and returns which were certainly not in the filter before. A key
    /// that occurs twice in the batch is new only once.
    ///
    /// A list is hashed before its first key is added, so a refused key leaves the filter
    /// unchanged. If the call is interrupted, for example by Ctrl-C, the exception's attribute
    /// `answers` holds the answers for the keys added so far. Continue with the next key.
    ///
    /// >>> seen = BloomFilter(100)
    /// >>> seen.add_new(["apple", "banana", "apple"])
    /// array([ True,  True, False])
    /// >>> try:
    /// ...     seen.add_new(["cherry", 1.5])
    /// ... except TypeError as error:
    /// ...     len(error.answers), "cherry" in seen
    /// (0, False)
    fn add_new<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut new = Bitmask::new();
        let mut insert = |store: &mut Store, keys: Keys<'_>, words: &mut [u64]| {
            store.insert_new(keys, &mut new)?;
            words.copy_from_slice(new.words());
            Ok(())
        };
        let mut answers = Answers::default();
        let done = Batch::new(keys, self.hasher).and_then(|batch| match batch {
            Batch::Columns { .. } => self.run_changing(py, batch, &mut answers, insert),
            Batch::Objects { .. } => {
                let (mut hashes, mut given, hasher) = (Vec::new(), Answers::default(), self.hasher);
                batch.run(py, &mut given, |_, keys, _| {
                    hash_onto(hasher, keys, &mut hashes);
                    Ok::<_, Error>(())
                })?;
                given.for_chunks(&hashes, |hashes, valid, rows| {
                    py.check_signals()?;
                    let mut words = [0; CHUNK / 64];
                    let room = &mut words[..hashes.len().div_ceil(64)];
                    self.store.write(py, |store| insert(store, Keys::Hashes(hashes), room))?;
                    answers.extend(&words, valid, rows);
                    Ok(())
                })
            }
        });
        match done.and_then(|()| self.warn_if_full(py)) {
            Ok(()) => answers.into_python(keys),
            Err(error) => {
                // Some exceptions accept no attributes.
                let _ = error.value(py).setattr("answers", answers.into_python(keys)?);
                Err(error)
            }
        }
    }

    /// The number of keys added. A `BloomFilter` counts repeated keys too; a `ScalableBloomFilter`
    /// does not.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.store.read(py, |store| usize::try_from(store.keys()).unwrap_or(usize::MAX))
    }

    /// Always True, even for an empty filter.
    fn __bool__(&self) -> bool {
        true
    }

    /// The false positive rate to expect now, computed from the number of keys. Reads no bits.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> f64 {
        self.store.read(py, Store::expected_fpr)
    }

    /// Estimates the false positive rate from the filter's bits. Reads the whole filter.
    ///
    /// >>> seen = BloomFilter(1000, fpr=0.01)
    /// >>> seen.update(range(1000))
    /// >>> 0.005 < seen.estimate_fpr() < 0.015
    /// True
    fn estimate_fpr(&self, py: Python<'_>) -> f64 {
        let store = self.store.detach(py);
        py.detach(|| store.read(Store::estimated_fpr))
    }

    /// Estimates the number of distinct keys from the filter's bits, or returns None if all bits
    /// are set. Reads the whole filter. A `ScalableBloomFilter` returns `len` instead.
    ///
    /// >>> seen = BloomFilter(1000)
    /// >>> seen.update([1, 2, 2, 2])
    /// >>> len(seen), seen.estimate_keys()
    /// (4, 2)
    fn estimate_keys(&self, py: Python<'_>) -> Option<u64> {
        let store = self.store.detach(py);
        py.detach(|| store.read(Store::estimated_keys))
    }

    /// Size of the filter's blocks in bytes.
    #[getter]
    fn memory(&self, py: Python<'_>) -> u64 {
        self.store.read(py, Store::memory)
    }

    /// The seed of the hash.
    #[getter]
    fn seed(&self, py: Python<'_>) -> u64 {
        self.store.read(py, |store| match store.key_hash() {
            KeyHash::Xxh3 { seed } => seed,
            // `from_store` accepts no other hash.
            _ => 0,
        })
    }

    /// Whether the filter is memory-mapped and thus cannot be changed.
    #[getter]
    fn read_only(&self, py: Python<'_>) -> bool {
        self.store.read(py, Store::is_read_only)
    }

    /// Returns a copy that can be changed, even of a mapped filter.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        into_python(py, self.copied(py)?)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let _ = memo;
        self.copy(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Filter>() else { return Ok(py.NotImplemented()) };
        let equal = self.store.read_both(&other.get().store, py, |left, right| left == right);
        equal.unwrap_or(true).into_py_any(py)
    }

    /// Returns a filter with the keys of both. Two `BloomFilter`s must have the same shape, or
    /// sizes that divide each other.
    fn __or__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Filter>() else { return Ok(py.NotImplemented()) };
        let mut union = self.copied(py)?;
        let other = other.get().store.detach(py);
        py.detach(|| other.read(|other| union.union(other)))?;
        into_python(py, union)
    }

    fn __ior__(&self, py: Python<'_>, other: &Filter) -> PyResult<()> {
        self.store.write_from(&other.store, py, Store::union).unwrap_or(Ok(()))?;
        Ok(())
    }

    /// Returns a filter of the keys that may be in both. Both must be `BloomFilter`s of the same
    /// shape.
    fn __and__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Filter>() else { return Ok(py.NotImplemented()) };
        let both = self.store.read_both(&other.get().store, py, Store::intersection);
        let store = match both {
            Some(both) => both?,
            None => self.copied(py)?,
        };
        into_python(py, store)
    }

    /// Returns the stored form. It is the same on every machine, and the project's Rust crates and
    /// command-line tool read it.
    ///
    /// >>> seen = BloomFilter(100)
    /// >>> BloomFilter.from_bytes(seen.to_bytes()) == seen
    /// True
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        loop {
            let len = self.store.read(py, Store::stored_bytes);
            let store = self.store.detach(py);
            let mut fits = false;
            let bytes = PyBytes::new_with(py, len as usize, |mut bytes| {
                fits = py.detach(|| {
                    store.read(|store| {
                        store.stored_bytes() == len && store.write_to(&mut bytes).is_ok()
                    })
                });
                Ok(())
            })?;
            // A growing filter may have grown between the two reads.
            if fits {
                return Ok(bytes);
            }
        }
    }

    /// Writes the stored form to a file and returns its size in bytes.
    ///
    /// The file is replaced as a whole: the path keeps the old file until the new one is on disk,
    /// even after a crash. The new file has the mode of the old one. FIFOs and devices are written
    /// to directly.
    #[pyo3(signature = (path, /))]
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        let Target::File(file, old) = Target::from_path(&path) else {
            // Python's own file object answers Ctrl-C while it waits for a reader.
            let bytes = self.to_bytes(py)?;
            let file = py.import(pyo3::intern!(py, "io"))?.call_method1("open", (path, "wb"))?;
            if let Err(error) = file.call_method1("write", (&bytes,)) {
                // Closing the raw file discards the rest: flushing it might block again.
                file.getattr("raw")?.call_method0("close")?;
                return Err(error);
            }
            file.call_method0("close")?;
            return Ok(bytes.as_bytes().len() as u64);
        };
        let store = self.store.detach(py);
        py.detach(|| stored::replace(&file, old, |file| store.read(|store| store.write_to(file))))
            .map_err(|error| Error::Io(error).for_file(&path))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        Ok((
            slf.get_type().getattr(pyo3::intern!(py, "from_bytes"))?,
            (slf.get().to_bytes(py)?,).into_pyobject(py)?,
        ))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, filter) = (slf.py(), slf.get());
        let (keys, memory) = (filter.__len__(py), filter.memory(py));
        Ok(format!(
            "<{}: {keys} keys added, {memory} bytes, {} % false positives>",
            slf.get_type().name()?,
            // Three digits, formatted by Python.
            slf.py().import("builtins")?.call_method1("format", (100.0 * filter.fpr(py), ".3g"))?
        ))
    }
}

impl Filter {
    /// Calls `change` for each chunk of keys.
    fn run_changing<'py>(
        &self,
        py: Python<'py>,
        batch: Batch<'py>,
        answers: &mut Answers,
        mut change: impl FnMut(&mut Store, Keys<'_>, &mut [u64]) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let detached = batch.is_columns().then(|| self.store.detach(py));
        batch.run(py, answers, |py, keys, words| match (&detached, py) {
            (Some(store), _) => store.write(|store| change(store, keys, words)),
            (None, py) => self
                .store
                .write(py.expect("attached for objects"), |store| change(store, keys, words)),
        })
    }
}

/// Reads a nonnegative integer argument; 0 if it is missing.
fn count(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    let Some(value) = value else { return Ok(0) };
    value.extract().map_err(|error: PyErr| {
        let text = format!("{name} is {value}: must be an int from 0 to 2**64 - 1");
        PyErr::from_type(error.get_type(value.py()), text)
    })
}

/// Checks a false positive rate, which must be at least `least`.
fn rate(fpr: f64, least: f64) -> PyResult<f64> {
    if (least..1.0).contains(&fpr) {
        return Ok(fpr);
    }
    let percent = match fpr {
        1.0..=100.0 => format!(" (for {fpr} % give {})", fpr / 100.0),
        _ => String::new(),
    };
    Err(PyValueError::new_err(format!(
        "fpr is {fpr:?}: must be at least {least:?} and below 1{percent}"
    )))
}

#[pymethods]
impl KnownFilter {
    #[new]
    #[pyo3(
        signature = (keys, fpr=None, *, bits_per_key=None, seed=None),
        text_signature = "(keys, fpr=None, *, bits_per_key=None, seed=0)"
    )]
    fn new(
        keys: &Bound<'_, PyAny>,
        fpr: Option<f64>,
        bits_per_key: Option<f64>,
        seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (keys, seed) = (count("keys", Some(keys))?, count("seed", seed)?);
        let sizing = match (fpr, bits_per_key) {
            (Some(_), Some(_)) => {
                return Err(PyTypeError::new_err("fpr or bits_per_key, not both"));
            }
            // Below one bit per key, most absent keys pass.
            (None, Some(bits)) if !(1.0..=100.0).contains(&bits) => {
                return Err(PyValueError::new_err(format!(
                    "bits_per_key is {bits}: must be at least 1, at most 100 (10 give 1 % false \
                     positives)"
                )));
            }
            (None, Some(bits)) => Sizing::BitsPerKey(bits),
            (fpr, None) => Sizing::FalsePositiveRate(rate(fpr.unwrap_or(0.01), 1.3e-9)?),
        };
        let options = FilterOptions::new(sizing).with_key_hash(KeyHash::Xxh3 { seed });
        let filter = options.empty_filter(keys).map_err(Error::from)?;
        let fpr = filter.params().false_positive_rate_at(keys);
        let full =
            CapacityCheck { keys, fpr, next: AtomicU64::new(keys.saturating_mul(2).max(1_000)) };
        let base = Filter { full: Some(full), ..Filter::from_store(Store::Owned(filter))? };
        Ok(PyClassInitializer::from(base).add_subclass(KnownFilter))
    }

    /// Opens the stored form from bytes or any buffer, which is copied and verified. Raises
    /// `FormatError` if it is damaged.
    #[classmethod]
    #[pyo3(signature = (data, /))]
    fn from_bytes(class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        into_python(class.py(), Store::open(Bytes::copy_of(data)?)?)
    }

    /// Reads a file into memory and verifies it. Raises `FormatError` if it is damaged.
    ///
    /// Adding the first key copies the filter, so it takes twice its size for a moment.
    #[classmethod]
    #[pyo3(signature = (path, /))]
    fn load(class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Py<PyAny>> {
        open_file(class.py(), &path, || stored::load(&path))
    }

    /// Memory-maps a file. This takes the same time for any size, and processes share the memory.
    /// The filter is read-only.
    ///
    /// `verify=True` first reads and verifies the whole file without keeping it in memory; by
    /// default only the header is verified. Do not change the file while it is mapped: changed
    /// bytes change answers, and reading past the end of a shortened file kills the process. `save`
    /// replaces files safely.
    #[classmethod]
    #[pyo3(signature = (path, /, *, verify=false))]
    fn mmap(class: &Bound<'_, PyType>, path: PathBuf, verify: bool) -> PyResult<Py<PyAny>> {
        open_file(class.py(), &path, || stored::map(&path, verify))
    }
}

#[pymethods]
impl GrowingFilter {
    #[new]
    #[pyo3(
        signature = (fpr=0.01, *, first_keys=None, seed=None),
        text_signature = "(fpr=0.01, *, first_keys=1000000, seed=0)"
    )]
    fn new(
        fpr: f64,
        first_keys: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let first_keys =
            first_keys.map_or(Ok(1_000_000), |keys| count("first_keys", Some(keys)))?;
        let (fpr, seed) = (rate(fpr, 9e-9)?, count("seed", seed)?);
        let options = ScalableOptions::new(fpr, first_keys).with_key_hash(KeyHash::Xxh3 { seed });
        let filter = options.build().map_err(Error::from)?;
        Ok(PyClassInitializer::from(Filter::from_store(Store::Growing(filter))?)
            .add_subclass(GrowingFilter))
    }

    /// Opens the stored form from bytes or any buffer, which is copied and verified. Raises
    /// `FormatError` if it is damaged.
    #[classmethod]
    #[pyo3(signature = (data, /))]
    fn from_bytes(class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        into_python(class.py(), Store::open_growing(Bytes::copy_of(data)?)?)
    }

    /// Reads a file into memory and verifies it. Raises `FormatError` if it is damaged.
    ///
    /// Adding the first key copies the filter, so it takes twice its size for a moment.
    #[classmethod]
    #[pyo3(signature = (path, /))]
    fn load(class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Py<PyAny>> {
        open_file(class.py(), &path, || stored::load_growing(&path))
    }

    /// Memory-maps a file. This takes the same time for any size, and processes share the memory.
    /// The filter is read-only.
    ///
    /// `verify=True` first reads and verifies the whole file without keeping it in memory; by
    /// default only the header of each part is verified. Do not change the file while it is mapped:
    /// changed bytes change answers, and reading past the end of a shortened file kills the
    /// process. `save` replaces files safely.
    #[classmethod]
    #[pyo3(signature = (path, /, *, verify=false))]
    fn mmap(class: &Bound<'_, PyType>, path: PathBuf, verify: bool) -> PyResult<Py<PyAny>> {
        open_file(class.py(), &path, || stored::map_growing(&path, verify))
    }
}

/// Returns the 64-bit hash of a key under this seed. It is the same in every process, on every
/// machine, and in Rust.
///
/// >>> hex(key_hash("apple"))
/// '0x517a430dcf1f8a00'
#[pyfunction]
#[pyo3(signature = (key, /, *, seed=0))]
pub(crate) fn key_hash(key: &Bound<'_, PyAny>, seed: u64) -> PyResult<u64> {
    objects::hash(Hasher::with_seed(seed), key)
}
