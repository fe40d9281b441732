//! The classes.

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

/// Rows that several threads take at a time, whose hashes are made before they are added: 64 MiB.
/// Between them Ctrl-C is answered.
const ROWS_OF_HASHES: usize = 8 << 20;

/// What both filters have: keys are added, looked up, stored.
///
/// Keys are str, bytes, int and tuples of these. A batch of keys is a NumPy array; a column of
/// pyarrow, Polars, pandas or another library with Arrow's PyCapsule interface; a list or an
/// iterable of keys; or a list of arrays, whose rows are the keys. None and NULL are not added, and
/// the answer for them is NULL, or False where that does not exist.
#[pyclass(frozen, subclass, weakref, module = "blocked_bloom")]
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) store: Shared<Store>,
    pub(crate) hasher: Hasher,
    /// Of a filter that was made for a number of keys.
    full: Option<CapacityCheck>,
}

/// When to look whether a filter has more keys than it was made for.
#[derive(Debug)]
struct CapacityCheck {
    keys: u64,
    fpr: f64,
    /// The number of keys added at which the bits are counted next.
    next: AtomicU64,
}

/// A Bloom filter for a number of keys that is known, at least roughly.
///
/// `keys` is the number of distinct keys; `fpr` the share of absent keys that are found
/// nevertheless once that many were added; `bits_per_key` gives the size instead. Twice as many
/// keys make the rate twelve times as high at 1 %: a `RuntimeWarning`, once for a filter, says so
/// when its rate is more than four times the intended one, and it goes on. Copies, merged and
/// loaded filters do not know the intended rate.
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

/// A Bloom filter for an unknown number of keys: it grows, and keeps its rate.
///
/// `fpr` is never exceeded, however many keys come. The first part is for `first_keys`; each
/// further one is twice as large, and a key is looked up in all of them: if the number is known, a
/// `BloomFilter` is smaller and faster.
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
    /// The number of keys added at which a filter may be too full.
    #[inline]
    pub(crate) fn warns_at(&self) -> u64 {
        self.full.as_ref().map_or(u64::MAX, |full| full.next.load(Ordering::Relaxed))
    }

    fn from_store(store: Store) -> PyResult<Self> {
        let hasher = Hasher::from_key_hash(store.key_hash())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Filter { store: Shared::new(store), hasher, full: None })
    }

    /// Warns, once, if the rate of false positives is more than four times the intended one. The
    /// rate is estimated from the bits, since repeated keys count as added; they are read when
    /// twice the intended number of keys was added, and again at each doubling.
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

/// The Python object of the class that a filter is of.
fn into_python(py: Python<'_>, store: Store) -> PyResult<Py<PyAny>> {
    let growing = store.is_growing();
    let (base, classes) = (PyClassInitializer::from(Filter::from_store(store)?), Classes::get(py));
    let (object, class) = if growing {
        (Bound::new(py, base.add_subclass(GrowingFilter))?.into_any(), &classes.growing)
    } else {
        (Bound::new(py, base.add_subclass(KnownFilter))?.into_any(), &classes.known)
    };
    // Becomes one of the public class, which differs in its functions alone.
    object.setattr(pyo3::intern!(py, "__class__"), class)?;
    Ok(object.unbind())
}

/// The Python object of a filter in a file.
pub(crate) fn open_file(
    py: Python<'_>,
    path: &Path,
    open: impl FnOnce() -> Result<Store, Error> + Send,
) -> PyResult<Py<PyAny>> {
    into_python(py, py.detach(open).map_err(|error| error.for_file(path))?)
}

/// A pool for one call, if the batch is of columns and worth more than one thread: at most one for
/// each core, and for each piece of rows. The threads of a pool that lived longer would be missing
/// in the children of a fork, which would wait for them.
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

/// The rows of a batch, some at a time.
fn slices(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(ROWS_OF_HASHES).map(move |start| start..len.min(start + ROWS_OF_HASHES))
}

#[pymethods]
impl Filter {
    /// Adds a key. Returns True if it was certainly not there before.
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

    /// Adds every key of a batch; up to `threads` are used for columns, and for each core one.
    ///
    /// If a key is refused, those before it may have been added: adding the batch again does no
    /// harm.
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

    /// Which keys of a batch may be there: False is certainly absent. `threads` as for `update`.
    ///
    /// Returns pyarrow's or Polars' booleans if the keys are theirs, else NumPy's.
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

    /// Adds every key of a batch. Returns which were certainly not there before: a key that occurs
    /// twice in the batch is new once.
    ///
    /// A list is hashed before its first key is added, so that a key that is refused leaves the
    /// filter as it was. An exception has the attribute `answers`: those for the keys that were
    /// added before it, such as before Ctrl-C. Continue with the key after them.
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
                // An exception may take no attributes.
                let _ = error.value(py).setattr("answers", answers.into_python(keys)?);
                Err(error)
            }
        }
    }

    /// The number of keys that were added; of a `BloomFilter` with those that were there before, of
    /// a `ScalableBloomFilter` without.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.store.read(py, |store| usize::try_from(store.keys()).unwrap_or(usize::MAX))
    }

    /// True, also without keys.
    fn __bool__(&self) -> bool {
        true
    }

    /// The rate of false positives to expect now, by the number of keys: reads nothing.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> f64 {
        self.store.read(py, Store::expected_fpr)
    }

    /// The rate of false positives that the filter's bits give: reads all of it.
    ///
    /// >>> seen = BloomFilter(1000, fpr=0.01)
    /// >>> seen.update(range(1000))
    /// >>> 0.005 < seen.estimate_fpr() < 0.015
    /// True
    fn estimate_fpr(&self, py: Python<'_>) -> f64 {
        let store = self.store.detach(py);
        py.detach(|| store.read(Store::estimated_fpr))
    }

    /// The number of distinct keys that the filter's bits give, None if they are full: reads all of
    /// it.
    ///
    /// >>> seen = BloomFilter(1000)
    /// >>> seen.update([1, 2, 2, 2])
    /// >>> len(seen), seen.estimate_keys()
    /// (4, 2)
    fn estimate_keys(&self, py: Python<'_>) -> Option<u64> {
        let store = self.store.detach(py);
        py.detach(|| store.read(Store::estimated_keys))
    }

    /// Bytes of the filter's blocks.
    #[getter]
    fn memory(&self, py: Python<'_>) -> u64 {
        self.store.read(py, Store::memory)
    }

    /// The seed of the hash.
    #[getter]
    fn seed(&self, py: Python<'_>) -> u64 {
        self.store.read(py, |store| match store.key_hash() {
            KeyHash::Xxh3 { seed } => seed,
            // `of` took no other.
            _ => 0,
        })
    }

    /// Whether the filter is mapped, and cannot be changed.
    #[getter]
    fn read_only(&self, py: Python<'_>) -> bool {
        self.store.read(py, Store::is_read_only)
    }

    /// A copy that can be changed, also of a mapped filter.
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

    /// The keys of both. Filters for a known number of keys must have one shape, or sizes that
    /// divide each other.
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

    /// The keys that may be in both; for filters for a known number of keys, of one shape.
    fn __and__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Filter>() else { return Ok(py.NotImplemented()) };
        let both = self.store.read_both(&other.get().store, py, Store::intersection);
        let store = match both {
            Some(both) => both?,
            None => self.copied(py)?,
        };
        into_python(py, store)
    }

    /// The stored form: the same bytes on every machine, which the Rust crates and the command-line
    /// tool of the project read, too.
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
            // A growing filter may have grown meanwhile.
            if fits {
                return Ok(bytes);
            }
        }
    }

    /// Writes the stored form to a file, and returns its size.
    ///
    /// The file is replaced as a whole: until the new one is on the disk, the path has the old one,
    /// also after a crash. The new one has the mode of the old one. A FIFO or a device is written
    /// into.
    #[pyo3(signature = (path, /))]
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        let Target::File(file, old) = Target::from_path(&path) else {
            // By Python's own file, which answers Ctrl-C while it waits for a reader.
            let bytes = self.to_bytes(py)?;
            let file = py.import(pyo3::intern!(py, "io"))?.call_method1("open", (path, "wb"))?;
            if let Err(error) = file.call_method1("write", (&bytes,)) {
                // What is left is not tried again, which might wait again.
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
            // Three digits, as Python writes them.
            slf.py().import("builtins")?.call_method1("format", (100.0 * filter.fpr(py), ".3g"))?
        ))
    }
}

impl Filter {
    /// Gives each chunk of keys to a change of the filter.
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

/// An argument that is a number from 0, which is the default.
fn count(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    let Some(value) = value else { return Ok(0) };
    value.extract().map_err(|error: PyErr| {
        let text = format!("{name} is {value}: must be an int from 0 to 2**64 - 1");
        PyErr::from_type(error.get_type(value.py()), text)
    })
}

/// A rate of false positives, which must be at least `least`.
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
            // With fewer, most absent keys pass.
            (None, Some(bits)) if bits < 1.0 => {
                return Err(PyValueError::new_err(format!(
                    "bits_per_key is {bits}: must be at least 1 (10 give 1 % false positives)"
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

    /// Opens the stored form, bytes or any buffer of them, which is copied and verified.
    /// `FormatError` is raised if it is damaged.
    #[classmethod]
    #[pyo3(signature = (data, /))]
    fn from_bytes(class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        into_python(class.py(), Store::open(Bytes::copy_of(data)?)?)
    }

    /// Reads a file into memory and verifies it. `FormatError` is raised if it is damaged.
    ///
    /// The first key that is added copies the filter, which takes its size once more for that
    /// moment.
    #[classmethod]
    #[pyo3(signature = (path, /))]
    fn load(class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Py<PyAny>> {
        open_file(class.py(), &path, || stored::load(&path))
    }

    /// Maps a file: it is opened at once whatever its size, and processes share its memory. Such a
    /// filter cannot be changed.
    ///
    /// `verify=True` reads and verifies the file first, without keeping it in memory; else only the
    /// header is. If the file changes meanwhile, answers change; if it becomes shorter, this
    /// process ends when it reads there. `save` does neither.
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

    /// Opens the stored form, bytes or any buffer of them, which is copied and verified.
    /// `FormatError` is raised if it is damaged.
    #[classmethod]
    #[pyo3(signature = (data, /))]
    fn from_bytes(class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        into_python(class.py(), Store::open_growing(Bytes::copy_of(data)?)?)
    }

    /// Reads a file into memory and verifies it. `FormatError` is raised if it is damaged.
    ///
    /// The first key that is added copies the filter, which takes its size once more for that
    /// moment.
    #[classmethod]
    #[pyo3(signature = (path, /))]
    fn load(class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Py<PyAny>> {
        open_file(class.py(), &path, || stored::load_growing(&path))
    }

    /// Maps a file: it is opened at once whatever its size, and processes share its memory. Such a
    /// filter cannot be changed.
    ///
    /// `verify=True` reads and verifies the file first, without keeping it in memory; else only the
    /// headers are, one for each part. If the file changes meanwhile, answers change; if it becomes
    /// shorter, this process ends when it reads there. `save` does neither.
    #[classmethod]
    #[pyo3(signature = (path, /, *, verify=false))]
    fn mmap(class: &Bound<'_, PyType>, path: PathBuf, verify: bool) -> PyResult<Py<PyAny>> {
        open_file(class.py(), &path, || stored::map_growing(&path, verify))
    }
}

/// The hash of a key, 64 bits, as a filter of this seed has it: the same in every process, on every
/// machine, and in Rust.
///
/// >>> hex(key_hash("apple"))
/// '0x517a430dcf1f8a00'
#[pyfunction]
#[pyo3(signature = (key, /, *, seed=0))]
pub(crate) fn key_hash(key: &Bound<'_, PyAny>, seed: u64) -> PyResult<u64> {
    objects::hash(Hasher::with_seed(seed), key)
}
