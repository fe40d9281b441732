//! RedisBloom's chains, in files of their dumps.

use blocked_bloom_formats::redis::RedisFilter;

use super::classical;
use crate::facts::{Bits, Facts, List, percent};
use crate::opened::About;
use crate::value::{Value, object};

pub(crate) fn describe(about: &About, filter: &RedisFilter) -> Facts {
    let bits: u64 = filter.links().iter().map(|link| link.shape().bits()).sum();
    let set = filter.links().iter().map(|link| link.fill_ratio() * link.shape().bits() as f64);
    let fill_ratio = set.sum::<f64>() / bits as f64;
    let heads =
        ["keys", "made for", "bits", "probes", "false positives, made for", "from the bits"];
    let (mut list, mut links) = (List::new(0, &heads), Vec::new());
    for link in filter.links() {
        let rate = link.estimated_false_positive_rate();
        list.lines.push(vec![
            link.size().to_string(),
            link.entries().to_string(),
            link.shape().bits().to_string(),
            link.shape().probes().to_string(),
            percent(link.error_rate()),
            percent(rate),
        ]);
        links.push(object! {
            "keys": link.size(),
            "capacity": link.entries(),
            "bits": link.shape().bits(),
            "probes": link.shape().probes(),
            "error_rate": link.error_rate(),
            "fill_ratio": link.fill_ratio(),
            "estimated_false_positive_rate": rate,
        });
    }
    let header = vec![
        ("keys", "keys added", filter.size().into()),
        ("capacity", "keys made for", filter.capacity().into()),
        ("expansion", "expansion", filter.expansion().into()),
        ("hash_bits", "bits of the hash", filter.hash_bits().into()),
        ("links", "links", links.len().into()),
    ];
    let bits = Bits {
        fill_ratio,
        keys: Some(filter.size()),
        false_positive_rate: filter.estimated_false_positive_rate(),
    };
    let mut facts = Facts { list: Some(list), ..classical::facts(about, header, &bits) };
    // The number of links is for people.
    for (name, value) in &mut facts.fields {
        if *name == "links" {
            *value = Value::List(std::mem::take(&mut links));
        }
    }
    facts
}
