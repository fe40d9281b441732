//! Settings of the join pre-filters.

use std::any::Any;
use std::fmt::{self, Display};
use std::str::FromStr;

use datafusion::common::{Result, config_err};
use datafusion::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};

const PREFIX: &str = "bloom_join";

/// Whether filters are put before shuffles: `bloom_join.enabled`.
///
/// ```
/// use blocked_bloom_datafusion::Enabled;
/// assert_eq!("auto".parse(), Ok(Enabled::Auto));
/// assert_eq!(Enabled::True.to_string(), "true");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// Filters are planned wherever they give the right rows and the build side drops rows.
    True,
    /// No filters are planned.
    False,
    /// Filters are planned where rows cross a network, which is never in one process, and where the
    /// filter costs little of what it can save (`bloom_join.max_cost`).
    Auto,
}

impl FromStr for Enabled {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "true" => Ok(Enabled::True),
            "false" => Ok(Enabled::False),
            "auto" => Ok(Enabled::Auto),
            _ => Err("one of true, false and auto is expected"),
        }
    }
}

impl Display for Enabled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Enabled::True => "true",
            Enabled::False => "false",
            Enabled::Auto => "auto",
        })
    }
}

/// Refuses a value that a setting cannot have. NaN is in no range.
fn check_value<T: Copy + Display>(
    name: &str,
    value: T,
    allowed: &str,
    is_allowed: impl Fn(T) -> bool,
) -> Result<()> {
    match is_allowed(value) {
        true => Ok(()),
        false => config_err!("{PREFIX}.{name}: {value} is not {allowed}"),
    }
}

/// The settings, their types, defaults and the values that are allowed. Unlike those of
/// DataFusion's `extensions_options!`, entries have their full names, by which Ballista's clients
/// send them.
macro_rules! options {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $type:ty = $default:expr $(, $allowed:literal: $is_allowed:expr)?;
    )+) => {
        /// Settings of the join pre-filters, in SQL `SET bloom_join.enabled = false` and so on.
        ///
        /// Ballista sends them from the client to the scheduler, which must know them: see
        /// [`ballista::session_config`](crate::ballista::session_config).
        ///
        /// ```
        /// use blocked_bloom_datafusion::{BloomJoinOptions, Enabled};
        /// use datafusion::prelude::SessionConfig;
        ///
        /// let options = BloomJoinOptions { min_probe_rows: 10_000, ..Default::default() };
        /// let config = SessionConfig::new().with_option_extension(options);
        /// let config = config.set_bool("bloom_join.enabled", false);
        /// assert_eq!(BloomJoinOptions::of(config.options()).enabled, Enabled::False);
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        pub struct BloomJoinOptions {
            $($(#[doc = $doc])+ pub $name: $type,)+
        }

        impl Default for BloomJoinOptions {
            fn default() -> Self {
                BloomJoinOptions { $($name: $default,)+ }
            }
        }

        impl ExtensionOptions for BloomJoinOptions {
            fn as_any(&self) -> &dyn Any {
                self
            }

            fn as_any_mut(&mut self) -> &mut dyn Any {
                self
            }

            fn cloned(&self) -> Box<dyn ExtensionOptions> {
                Box::new(self.clone())
            }

            fn set(&mut self, key: &str, value: &str) -> Result<()> {
                match key {
                    $(stringify!($name) => match value.parse::<$type>() {
                        Ok(value) => {
                            $(check_value(key, value, $allowed, $is_allowed)?;)?
                            self.$name = value;
                        }
                        Err(error) => return config_err!("{PREFIX}.{key}: {value}: {error}"),
                    },)+
                    _ => return config_err!("{PREFIX}.{key} is no setting"),
                }
                Ok(())
            }

            fn entries(&self) -> Vec<ConfigEntry> {
                vec![$(ConfigEntry {
                    key: format!("{PREFIX}.{}", stringify!($name)),
                    value: Some(self.$name.to_string()),
                    description: concat!($($doc),+).trim(),
                },)+]
            }
        }

        impl BloomJoinOptions {
            /// Refuses values that `SET` would refuse, as a struct literal may have them.
            pub(crate) fn check(&self) -> Result<()> {
                $($(check_value(stringify!($name), self.$name, $allowed, $is_allowed)?;)?)+
                Ok(())
            }
        }
    };
}

options! {
    /// Whether filters are put before shuffles: `true`, `false`, or `auto`, where `max_cost`
    /// decides, and never in one process.
    enabled: Enabled = Enabled::Auto;
    /// With `auto`, the most that a filter may cost: this share of the time and of the bytes that
    /// it would save if it dropped every row.
    max_cost: f64 = 0.25, "0 or more": |share| share >= 0.0;
    /// The false-positive rate that filters are sized for: at least 2e-9, the lowest that a filter
    /// of any number of keys can have, and below 1.
    false_positive_rate: f64 = 0.01,
        "at least 2e-9 and below 1": |rate| (2e-9..1.0).contains(&rate);
    /// The most bytes of one filter. In a cluster more than 12 MiB mean 12 MiB, since a message of
    /// Ballista holds 16 MiB.
    max_filter_bytes: u64 = 8 << 20, "1 or more": |bytes| bytes >= 1;
    /// The most bytes of filters that all tasks read together. Each task that probes reads the
    /// partial filters of all partitions of the build side, or one merged filter; in Ballista none,
    /// if the build side has one partition.
    max_bytes_read: u64 = 1 << 30, "1 or more": |bytes| bytes >= 1;
    /// The number of keys that a filter is sized for where the rows of the build side are not
    /// known.
    default_keys: u64 = 1_000_000,
        "from 1 to 1e12": |keys| (1..=1_000_000_000_000).contains(&keys);
    /// A side of fewer rows is not probed. A side whose number of rows is not known is probed.
    min_probe_rows: u64 = 100_000;
    /// While more than this share of the rows of a partition are hits, only samples of them are
    /// probed.
    stop_above: f64 = 0.9, "from 0 to 1": |share| (0.0..=1.0).contains(&share);
    /// A filter that would have a higher false-positive rate within `max_filter_bytes` is not
    /// built.
    max_false_positive_rate: f64 = 0.25, "from 0 to 1": |rate| (0.0..=1.0).contains(&rate);
    /// Whether to filter also where the build side is likely to be broadcast, which avoids the
    /// shuffle itself.
    despite_broadcast: bool = false;
}

impl ConfigExtension for BloomJoinOptions {
    const PREFIX: &'static str = PREFIX;
}

impl BloomJoinOptions {
    /// The settings of a session, or the defaults if it has none.
    pub fn of(config: &ConfigOptions) -> Self {
        config.extensions.get::<BloomJoinOptions>().cloned().unwrap_or_default()
    }
}
