//! Property: however keys come to a builder, singly, in chunks or from threads, under whatever
//! limit, the outcome is that of adding them one by one: the same bytes or the same error. The
//! filter is the one that the documented probe scheme and sizing give. What a builder cannot take,
//! keys where the caller hashes or hashes where prefixes are added, is an error that changes
//! nothing.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use blocked_bloom::{
    BloomFilterBuilder, BuildError, FilterOptions, KeyError, KeyHash, KeyHasher, MAX_BITS_PER_KEY,
    PrefixExtractor, Sizing, probe,
};
use libfuzzer_sys::fuzz_target;
use rayon::{ThreadPool, ThreadPoolBuilder};

#[derive(Arbitrary, Debug)]
enum Size {
    Bits(u16),
    Rate(u8),
    Bytes(u16),
}

#[derive(Arbitrary, Debug)]
enum Step {
    One(Vec<u8>),
    Chunk(Vec<Vec<u8>>),
    FromThreads(Vec<Vec<u8>>),
    /// So many keys of their own, counted from `first`, each as often as `repeats` says.
    Many {
        first: u16,
        count: u16,
        shift: u8,
        repeats: u8,
        from_threads: bool,
    },
    Clone,
}

#[derive(Arbitrary, Debug)]
struct Input {
    size: Size,
    probes: Option<u8>,
    foldable: bool,
    /// The caller's hashes instead of keys; then there are no prefixes.
    hashes: bool,
    prefixes: u8,
    memory_limit: Option<u16>,
    expected_items: Option<u16>,
    verified: bool,
    threads: u8,
    steps: Vec<Step>,
}

static POOLS: LazyLock<Vec<ThreadPool>> = LazyLock::new(|| {
    (1..=4).map(|threads| ThreadPoolBuilder::new().num_threads(threads).build().unwrap()).collect()
});

impl Input {
    fn sizing(&self) -> Sizing {
        match self.size {
            Size::Bits(bits) => Sizing::BitsPerKey(f64::from(bits) % MAX_BITS_PER_KEY / 2.0),
            Size::Rate(rate) => Sizing::FalsePositiveRate((f64::from(rate) + 1.0) / 256.0),
            Size::Bytes(bytes) => Sizing::MaxBytes(u64::from(bytes) * 4),
        }
    }

    fn extractor(&self) -> Option<PrefixExtractor> {
        let length = usize::from(self.prefixes / 8 % 4);
        match self.prefixes % 8 {
            _ if self.hashes => None,
            0 | 4 => Some(PrefixExtractor::fixed(length)),
            1 | 5 => Some(PrefixExtractor::capped(length)),
            2 | 6 => Some(PrefixExtractor::delimiter(b'/', length)),
            _ => None,
        }
    }

    fn whole_keys(&self) -> bool {
        self.extractor().is_none() || self.prefixes % 8 < 4
    }

    fn options(&self) -> FilterOptions {
        let key_hash = if self.hashes { KeyHash::Caller { tag: 7 } } else { KeyHash::default() };
        let mut options = FilterOptions::new(self.sizing()).with_key_hash(key_hash);
        if let Some(probes) = self.probes {
            options = options.with_probes(u32::from(probes) % 32);
        }
        if self.foldable {
            options = options.foldable();
        }
        match self.extractor() {
            Some(extractor) if self.whole_keys() => options = options.with_prefixes(extractor),
            Some(extractor) => options = options.with_only_prefixes(extractor),
            None => {}
        }
        if let Some(limit) = self.memory_limit {
            options = options.with_memory_limit(u64::from(limit) % 1_024 * 8);
        }
        if let Some(expected) = self.expected_items {
            options = options.with_expected_items(u64::from(expected) % 1_024);
        }
        options
    }
}

impl Step {
    /// The keys of a step, in order.
    fn keys(&self) -> Vec<Vec<u8>> {
        match self {
            Step::One(key) => vec![key.clone()],
            Step::Chunk(keys) | Step::FromThreads(keys) => keys.clone(),
            Step::Many { first, count, shift, repeats, .. } => {
                let count = u32::from(count >> (shift % 13 + 3));
                let key =
                    |i: u32| (u32::from(*first) + i / (u32::from(*repeats) % 3 + 1)).to_be_bytes();
                (0..count).map(|i| key(i).to_vec()).collect()
            }
            Step::Clone => Vec::new(),
        }
    }

    fn add(&self, hashes: bool, builder: &mut BloomFilterBuilder) -> Result<(), KeyError> {
        let keys = self.keys();
        let from_threads =
            matches!(self, Step::FromThreads(_) | Step::Many { from_threads: true, .. });
        match self {
            Step::Clone => {
                *builder = builder.clone();
                Ok(())
            }
            _ if hashes && from_threads => {
                builder.insert_hashes(&keys.iter().map(hash).collect::<Vec<_>>())
            }
            _ if from_threads => builder.par_extend(keys),
            _ if hashes => keys.iter().try_for_each(|key| builder.insert_hash(hash(key))),
            Step::One(key) => builder.insert(key),
            _ => builder.extend(keys),
        }
    }
}

fn hash(key: &Vec<u8>) -> u64 {
    KeyHasher::default().hash(key)
}

/// Gives the builder what it cannot take, in every way.
fn add_wrongly(input: &Input, builder: &mut BloomFilterBuilder) {
    let before = (builder.len(), builder.memory_bytes());
    let key = [1, 2, 3];
    if input.hashes {
        let error = Err(KeyError::NoHasher { tag: 7 });
        assert_eq!(builder.insert(key), error);
        assert_eq!(builder.extend([key, key]), error);
        assert_eq!(builder.par_extend([key, key]), error);
        assert_eq!(builder.insert_with_prefix(key, Some(&key)), error);
    } else if input.extractor().is_some() {
        let error = Err(KeyError::NoPrefix { contents: builder.options().contents() });
        assert_eq!(builder.insert_hash(7), error);
        assert_eq!(builder.insert_hashes(&[7, 8]), error);
    }
    assert_eq!(before, (builder.len(), builder.memory_bytes()));
}

/// What is added for the keys: neighbours that are equal once, of keys and of prefixes.
fn additions(input: &Input) -> Vec<u64> {
    let (mut added, mut last, mut last_prefix) = (Vec::new(), None, None);
    for key in input.steps.iter().flat_map(Step::keys) {
        let of_key = input.whole_keys().then(|| hash(&key));
        if of_key.is_some() && of_key != last {
            added.extend(of_key);
            last = of_key;
        }
        let prefix =
            input.extractor().and_then(|extractor| Some(hash(&extractor.prefix(&key)?.to_vec())));
        if prefix.is_some() && prefix != of_key && prefix != last_prefix {
            added.extend(prefix);
            last_prefix = prefix;
        }
    }
    added
}

fn finish(
    builder: BloomFilterBuilder,
    verified: bool,
    threads: bool,
) -> Result<Vec<u8>, BuildError> {
    let filter = match (verified, threads) {
        (false, false) => builder.finish(),
        (true, false) => builder.finish_verified(),
        (false, true) => builder.par_finish(),
        (true, true) => builder.par_finish_verified(),
    };
    filter.map(|filter| filter.to_bytes())
}

fuzz_target!(|input: Input| {
    let build = || {
        let mut builder = input.options().builder();
        for step in &input.steps {
            step.add(input.hashes, &mut builder).unwrap();
            add_wrongly(&input, &mut builder);
        }
        (builder.len(), finish(builder, input.verified, true))
    };
    let pool = POOLS.get(usize::from(input.threads)).unwrap_or(&POOLS[0]);
    let (len, built) = pool.install(build);

    let mut one_by_one = input.options().builder();
    for (i, key) in input.steps.iter().flat_map(Step::keys).enumerate() {
        match input.extractor() {
            _ if input.hashes => one_by_one.insert_hash(hash(&key)),
            Some(extractor) if i % 2 == 1 => {
                one_by_one.insert_with_prefix(&key, extractor.prefix(&key))
            }
            _ => one_by_one.insert(&key),
        }
        .unwrap();
    }
    assert_eq!(len, one_by_one.len());
    assert_eq!(built, finish(one_by_one.clone(), !input.verified, false));

    let added = additions(&input);
    assert_eq!(len, added.len() as u64);
    let predicted = one_by_one.params();
    let filter = one_by_one.finish();
    let filter = match filter {
        // Only the finished filter shows that it passes most absent keys.
        Err(BuildError::MemoryLimit { .. }) if input.expected_items.is_some() => return,
        Err(error) => return assert_eq!(predicted, Err(error)),
        Ok(filter) => filter,
    };
    assert_eq!(predicted, Ok(filter.params()));
    let params = filter.params();
    assert_eq!(filter.keys_inserted(), len);
    if params.is_pass_all() {
        return assert!(added.iter().all(|&hash| filter.contains_hash(hash)));
    }
    assert_eq!(filter.contents(), input.options().contents());
    // Blocks are those of the sizing. So are probes, unless they are set or have to serve half of
    // the blocks as well.
    let shape = |items| {
        let sizing = input.sizing();
        let shape =
            if input.foldable { sizing.foldable_params(items) } else { sizing.params(items) };
        let shape = shape.unwrap();
        let probes = match input.probes {
            Some(probes) => u32::from(probes) % 32,
            None if input.foldable => input.options().params(items).unwrap().probes(),
            None => shape.probes(),
        };
        assert!(input.probes.is_some() || probes <= shape.probes());
        (shape.blocks(), probes)
    };
    let found = (params.blocks(), params.probes());
    // Once the limit is reached the filter has its shape: for the expected keys, or for those that
    // had come if they were more.
    let items = match (input.memory_limit.map(u64::from), input.expected_items.map(u64::from)) {
        (Some(limit), Some(expected)) if len > limit % 1_024 => {
            (limit % 1_024).max(expected % 1_024)
        }
        _ => len,
    };
    assert_eq!(found, shape(items));
    let mut blocks = vec![[0; 64]; found.0 as usize];
    for &hash in &added {
        probe::insert(&mut blocks[probe::block_index(hash, found.0) as usize], hash, found.1);
    }
    assert!(filter.blocks() == blocks, "not the bits of the probe scheme");
});
