//! A second reader and writer of lines that shares no code with the crate: lists of tags, following
//! `docs/format.md`.

/// Lines as lists of 32 tags; 0 is an empty lane.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Naive(pub(crate) Vec<[u16; 32]>);

impl Naive {
    pub(crate) fn new(lines: usize) -> Self {
        Naive(vec![[0; 32]; lines])
    }

    /// The lines after the header of stored bytes.
    pub(crate) fn from_stored(bytes: &[u8]) -> Self {
        let line = |line: &[u8]| {
            std::array::from_fn(|i| u16::from(line[2 * i]) + 256 * u16::from(line[2 * i + 1]))
        };
        Naive(bytes[64..].chunks(64).map(line).collect())
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.iter().flatten().flat_map(|tag| [(tag % 256) as u8, (tag / 256) as u8]).collect()
    }

    /// First line, second line and tag.
    pub(crate) fn place(&self, hash: u64) -> (usize, usize, u16) {
        let (hash, n) = (u128::from(hash), self.0.len() as u128);
        let tag = (hash / (1 << 48)).max(1);
        let first = hash % (1 << 32) * n / (1 << 32);
        let sum = tag * 0x9e37_79b9 % (1 << 32) * n / (1 << 32);
        (first as usize, ((sum + n - first) % n) as usize, tag as u16)
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        let (first, second, tag) = self.place(hash);
        self.0[first].contains(&tag) || self.0[second].contains(&tag)
    }

    fn empty(&self, line: usize) -> usize {
        self.0[line].iter().filter(|&&tag| tag == 0).count()
    }

    pub(crate) fn insert(&mut self, hash: u64) -> bool {
        let (first, second, tag) = self.place(hash);
        let first_is_better = self.empty(first) > 8 || self.empty(first) >= self.empty(second);
        let line = &mut self.0[if first_is_better { first } else { second }];
        let lane = line.iter().position(|&tag| tag == 0);
        if let Some(lane) = lane {
            line[lane] = tag;
        }
        lane.is_some()
    }

    pub(crate) fn remove(&mut self, hash: u64) -> bool {
        let (first, second, tag) = self.place(hash);
        let mut lines = [first, second];
        lines.sort_unstable();
        for line in lines {
            if let Some(lane) = self.0[line].iter().position(|&other| other == tag) {
                self.0[line][lane] = 0;
                return true;
            }
        }
        false
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.iter().flatten().filter(|&&tag| tag != 0).count() as u64
    }
}
