//! The mutations, the counts and the table.

use std::ops::Range;

use crate::common::Random;

const RANDOM: usize = 10_000;

/// The result of reading a damaged copy.
pub(crate) struct Outcome {
    pub(crate) error: bool,
    /// Answers to the lookups of the case, inserted keys first. `None` if the copy cannot be looked
    /// up.
    pub(crate) answers: Option<Vec<bool>>,
}

impl Outcome {
    pub(crate) fn refused() -> Self {
        Outcome { error: true, answers: None }
    }

    pub(crate) fn answers(answers: Vec<bool>) -> Self {
        Outcome { error: false, answers: Some(answers) }
    }
}

/// The result of a second reader, written from the description of the format.
#[derive(Debug, PartialEq)]
pub(crate) enum Expected {
    Refused,
    Answers(Vec<bool>),
    /// The second reader does not cover this.
    Unknown,
}

impl Expected {
    pub(crate) fn from_answers(answers: Option<Vec<bool>>) -> Self {
        answers.map_or(Expected::Refused, Expected::Answers)
    }
}

/// Corrects checksums.
pub(crate) type Seal = dyn Fn(&mut [u8]);

/// A format under damage.
pub(crate) struct Case<'a> {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// Another filter of the same kind, for splices.
    pub(crate) other: Vec<u8>,
    /// Lookups of inserted keys.
    pub(crate) added: usize,
    /// Bytes for which every value is tried, with corrected checksums.
    pub(crate) header: Range<usize>,
    /// Corrects the checksums, if the format has any.
    pub(crate) seal: Option<&'a Seal>,
    pub(crate) look_up: &'a dyn Fn(&[u8]) -> Outcome,
    pub(crate) naive: &'a dyn Fn(&[u8]) -> Expected,
}

/// The number of damaged copies with each result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) refused: usize,
    pub(crate) harmless: usize,
    pub(crate) wrong: usize,
}

/// The counts of each kind of damage.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) truncated: Counts,
    pub(crate) flipped: Counts,
    pub(crate) random: Counts,
    pub(crate) spliced: Counts,
    pub(crate) header: Counts,
    pub(crate) sealed: Counts,
}

impl Report {
    /// All damage without corrected checksums.
    pub(crate) fn unsealed(&self) -> [Counts; 4] {
        [self.truncated, self.flipped, self.random, self.spliced]
    }

    /// Every checksum or length must detect it.
    pub(crate) fn all_refused(&self) -> bool {
        self.unsealed()
            .iter()
            .all(|counts| counts.refused > 0 && counts.harmless + counts.wrong == 0)
    }

    pub(crate) fn has_no_wrong_answer(&self) -> bool {
        self.unsealed().iter().all(|counts| counts.refused > 0 && counts.wrong == 0)
    }
}

impl Case<'_> {
    pub(crate) fn run(&self) -> Report {
        let outcome = (self.look_up)(&self.bytes);
        let answers = outcome.answers.expect("it is whole");
        assert!(
            !outcome.error && answers[..self.added].iter().all(|&found| found),
            "{}",
            self.name
        );
        Report {
            truncated: self.row("truncated at every byte", self.truncations()),
            flipped: self.row("every bit flipped", self.flips()),
            random: self.row("several bytes at random", self.random(false)),
            spliced: self.row("spliced at every byte", self.splices()),
            header: self.row(self.mended("every value of header bytes"), self.header_values()),
            sealed: match self.seal {
                Some(_) => self.row("several bytes, mended", self.random(true)),
                None => Counts::default(),
            },
        }
    }

    fn mended(&self, name: &'static str) -> &'static str {
        if self.seal.is_some() { "every value of header bytes, mended" } else { name }
    }

    #[expect(clippy::print_stdout, reason = "figures to be quoted")]
    fn row(&self, damage: &str, copies: impl Iterator<Item = Vec<u8>>) -> Counts {
        let mut counts = Counts::default();
        for bytes in copies {
            if bytes == self.bytes || bytes == self.other {
                continue;
            }
            *match self.fare(&bytes, damage) {
                (_, true) => &mut counts.wrong,
                (true, false) => &mut counts.refused,
                (false, false) => &mut counts.harmless,
            } += 1;
        }
        let Counts { refused, harmless, wrong } = counts;
        let tried = refused + harmless + wrong;
        println!(
            "| {:<26} | {damage:<35} | {tried:>6} | {refused:>6} | {harmless:>6} | {wrong:>6} |",
            self.name
        );
        counts
    }

    /// Whether there was an error, and whether an inserted key is absent.
    fn fare(&self, bytes: &[u8], damage: &str) -> (bool, bool) {
        let outcome = (self.look_up)(bytes);
        let context = || format!("{}, {damage}: {bytes:02x?}", self.name);
        match (self.naive)(bytes) {
            Expected::Unknown => {}
            Expected::Refused => assert!(outcome.answers.is_none(), "{}", context()),
            Expected::Answers(expected) => {
                assert_eq!(outcome.answers.as_ref(), Some(&expected), "{}", context());
            }
        }
        let wrong = outcome.answers.is_some_and(|answers| answers[..self.added].contains(&false));
        (outcome.error, wrong)
    }

    fn truncations(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..self.bytes.len()).map(|length| self.bytes[..length].to_vec())
    }

    fn flips(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..8 * self.bytes.len()).map(|bit| {
            let mut bytes = self.bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        })
    }

    /// Changes one to four places: new bytes, or a run of zeros, of ones, or of bytes from
    /// elsewhere.
    fn random(&self, seal: bool) -> impl Iterator<Item = Vec<u8>> {
        let mut random = Random(self.bytes.len() as u64);
        (0..RANDOM).map(move |_| {
            let mut bytes = self.bytes.clone();
            // Damage with corrected checksums must sometimes hit the header.
            let reach =
                if seal && random.next().is_multiple_of(2) { self.header.end } else { bytes.len() };
            for _ in 0..=random.next() % 4 {
                let at = random.next() as usize % reach;
                let length = (2 + random.next() as usize % 15).min(bytes.len() - at);
                match random.next() % 5 {
                    0 => bytes[at..at + length].fill(0),
                    1 => bytes[at..at + length].fill(0xff),
                    2 => {
                        let from = random.next() as usize % (bytes.len() - length + 1);
                        bytes.copy_within(from..from + length, at);
                    }
                    3 => bytes[at..at + length].fill_with(|| random.next() as u8),
                    // Nearby values, since few values are just inside or just outside the limits.
                    _ => {
                        bytes[at] = bytes[at].wrapping_add(random.next() as u8 % 5).wrapping_sub(2)
                    }
                }
            }
            if let (true, Some(seal)) = (seal, self.seal) {
                seal(&mut bytes);
            }
            bytes
        })
    }

    /// The start of one copy and the end of the other, in both orders, cut at the same offset and
    /// at the same distance from the end. Cuts between equal bytes have the same result, which
    /// counts once.
    fn splices(&self) -> impl Iterator<Item = Vec<u8>> {
        let mut splices = Vec::new();
        for (first, second) in [(&self.bytes, &self.other), (&self.other, &self.bytes)] {
            for cut in 1..first.len().min(second.len()) {
                splices.push([&first[..cut], &second[cut..]].concat());
                splices.push([&first[..first.len() - cut], &second[second.len() - cut..]].concat());
            }
        }
        splices.sort();
        splices.dedup();
        splices.into_iter()
    }

    fn header_values(&self) -> impl Iterator<Item = Vec<u8>> {
        self.header.clone().flat_map(move |at| {
            (0..=255).map(move |value| {
                let mut bytes = self.bytes.clone();
                bytes[at] = value;
                if let Some(seal) = self.seal {
                    seal(&mut bytes);
                }
                bytes
            })
        })
    }
}
