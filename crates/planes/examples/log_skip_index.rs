//! A skip index over a log: pages of lines, with tokens as items. A query reads only the pages that
//! may contain its tokens.
//!
//! `cargo run --release -p blocked-bloom-planes --example log_skip_index -- [FILE] [TOKEN...]`;
//! without a file, it generates a log.

#![expect(clippy::print_stdout, reason = "an example")]

use std::collections::BTreeSet;
use std::error::Error;

use blocked_bloom::{Bitmask, FilterOptions, KeyHasher};
use blocked_bloom_planes::{PlanesLayout, PlanesOptions, Query, Shape};

const LINES_A_PAGE: usize = 100;

/// The words of a line, in lower case.
fn tokens(line: &str) -> impl Iterator<Item = String> + '_ {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase)
}

/// Generates log lines of services, with requests and occasional errors.
fn made_up() -> String {
    let services = ["auth", "billing", "cart", "search", "mail", "stock"];
    let mut state = 1_u64;
    let mut next = |limit: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut log = String::new();
    for second in 0..200_000 {
        let (service, request) = (services[next(6) as usize], next(50_000_000));
        log += &match next(3_000) {
            0 => format!(
                "t={second} ERROR {service} request {request:08x} timeout after {} ms\n",
                next(9_000)
            ),
            1 => format!(
                "t={second} WARN {service} disk sd{} at {} percent\n",
                next(9),
                80 + next(20)
            ),
            _ => format!(
                "t={second} INFO {service} request {request:08x} served in {} ms\n",
                next(400)
            ),
        };
    }
    log
}

fn hashes(hasher: KeyHasher, page: &[&str]) -> BTreeSet<u64> {
    page.iter().flat_map(|line| tokens(line)).map(|token| hasher.hash(token)).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let log = match arguments.next() {
        Some(path) => std::fs::read_to_string(path)?,
        None => made_up(),
    };
    let mut queries: Vec<Vec<String>> =
        arguments.map(|token| vec![token.to_ascii_lowercase()]).collect();
    let lines: Vec<&str> = log.lines().collect();
    let pages: Vec<&[&str]> = lines.chunks(LINES_A_PAGE).collect();

    // Sized for the page with the most tokens, with one false match per 1,000 pages.
    let store = FilterOptions::default();
    let hasher = store.hasher()?;
    let most = pages.iter().map(|page| hashes(hasher, page).len()).max().unwrap_or(1);
    let options = PlanesOptions::for_filters(&store, Shape::for_rate(most as u64, 0.001)?);

    // The index is written group by group, together with the log.
    let (mut index, mut builder) = (Vec::new(), options.builder()?);
    for page in &pages {
        index.extend(builder.append(hashes(hasher, page))?.unwrap_or_default());
    }
    index.extend(builder.finish()?);
    println!(
        "log: {} lines, {} bytes, {} pages of {LINES_A_PAGE} lines",
        lines.len(),
        log.len(),
        pages.len()
    );
    println!("index: {} bytes, {} for up to {most} tokens a page", index.len(), options.shape());

    if queries.is_empty() {
        // A request in one line, a rare word, two words together, and an absent word.
        let rare = lines.iter().rev().flat_map(|line| tokens(line)).find(|token| token.len() == 8);
        queries.extend(rare.map(|token| vec![token]));
        queries.extend([
            vec!["timeout".into(), "billing".into()],
            vec!["sd3".into()],
            vec!["nowhere".into()],
        ]);
    }
    // Reads only the planes of the index that a query needs, and only the pages of the log that may
    // match.
    let tail = &index[index.len() - 64..];
    let layout = PlanesLayout::from_tail(tail, index.len() as u64, options.key_hash())?;
    for query in &queries {
        let planes = Query::all(query.iter().map(|token| hasher.hash(token)));
        let (mut index_bytes, mut candidates, mut hits) = (64, Vec::new(), Bitmask::new());
        for group in 0..layout.groups() {
            let at = layout.locate(&planes, group)?;
            let loaded =
                at.planes.iter().map(|at| &index[at.offset as usize..][..at.length as usize]);
            let loaded: Vec<&[u8]> = loaded.collect();
            index_bytes += loaded.iter().map(|bytes| bytes.len()).sum::<usize>();
            layout.open(&at, &loaded)?.query(&planes, &mut hits)?;
            candidates.extend(hits.hits().map(|hit| layout.rows_of(group).start as usize + hit));
        }
        let matches = |page: &[&str]| {
            let has_all = |line: &&&str| {
                let words: BTreeSet<String> = tokens(line).collect();
                query.iter().all(|token| words.contains(token))
            };
            page.iter().filter(has_all).count()
        };
        let found: usize = candidates.iter().map(|&page| matches(pages[page])).sum();
        let page_bytes = |page: &&[&str]| page.iter().map(|line| line.len() + 1).sum::<usize>();
        let read: usize = candidates.iter().map(|&page| page_bytes(&pages[page])).sum();
        println!(
            "{query:?}: {found} lines; {} of {} pages; read {read} bytes of the log and {index_bytes} of the index, without the index {} ({:.0} times as much)",
            candidates.len(),
            pages.len(),
            log.len(),
            log.len() as f64 / (read + index_bytes) as f64
        );
        // No line is lost.
        assert_eq!(found, pages.iter().map(|page| matches(page)).sum::<usize>());
    }
    Ok(())
}
