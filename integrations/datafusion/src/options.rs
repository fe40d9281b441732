//! Settings of the join pre-filters.

use std::any::Any;
use std::fmt::{self, Display};
use std::str::FromStr;

use datafusion::common::{Result, config_err};
use datafusion::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};

const PREFIX: &str = "bloom_join";

/// When filters are planned: the setting `bloom_join.enabled`.
///
/// ```
/// use blocked_bloom_datafusion::Enabled;
/// assert_eq!("auto".parse(), Ok(Enabled::Auto));
/// assert_eq!(Enabled::True.to_string(), "true");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// Wherever the build side drops rows and the query stays correct.
    True,
    /// Never.
    False,
    /// Only where rows cross a network (never in one process), and only if the filter costs little
    /// compared with its maximum saving (`bloom_join.max_cost`).
    Auto,
}

impl FromStr for Enabled {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "true" => Ok(Enabled::True),
            "false" => Ok(Enabled::False),
            "auto" => Ok(Enabled::Auto),
            _ => Err("must be true, false or auto"),
        }
    }
}

impl Display for Enabled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Refuses a value that is not allowed. No range contains NaN.
fn check_value<T: Copy + Display>(
    name: &str,
    value: T,
    allowed: &str,
    is_allowed: impl Fn(T) -> bool,
) -> Result<()> {
    match is_allowed(value) {
        true => Ok(()),
        false => config_err!("{PREFIX}.{name}: {value} is not allowed (must be {allowed})"),
    }
}

/// Defines the settings with their types, defaults and allowed values. Unlike DataFusion's
/// `extensions_options!`, it lists entries by their full names, which Ballista's clients need for
/// sending them.
macro_rules! options {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $type:ty = $default:expr $(, $allowed:literal: $is_allowed:expr)?;
    )+) => {
        /// Settings of the join pre-filters. In SQL: `SET bloom_join.enabled = false`.
        ///
        /// Ballista's clients send them to the scheduler, which must know them; see
        /// [`ballista::session_config`](crate::ballista::session_config).
        ///
        /// ```
        /// use blocked_bloom_datafusion::{BloomJoinOptions, Enabled};
        /// use datafusion::prelude::SessionConfig;
        ///
        /// let options = BloomJoinOptions { min_probe_rows: 10_000, ..Default::default() };
        /// let config = SessionConfig::new().with_option_extension(options);
        /// let config = config.set_bool("bloom_join.enabled", false);
        /// assert_eq!(BloomJoinOptions::from_config(config.options()).enabled, Enabled::False);
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
                    _ => return config_err!("unknown setting {PREFIX}.{key}"),
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
            /// Checks a struct literal, which can contain values that `SET` refuses.
            pub(crate) fn check(&self) -> Result<()> {
                $($(check_value(stringify!($name), self.$name, $allowed, $is_allowed)?;)?)+
                Ok(())
            }
        }
    };
}

options! {
    /// When to plan filters: `true`, `false`, or `auto`, where `max_cost` decides (never in one
    /// process).
    enabled: Enabled = Enabled::Auto;
    /// With `auto`, the maximum cost of a filter, as a share of the time and bytes that it would
    /// save by dropping every row.
    max_cost: f64 = 0.25, "0 or more": |share| share >= 0.0;
    /// The false-positive rate of filters. At least 2e-9, the lowest rate that any number of keys
    /// can have, and below 1.
    false_positive_rate: f64 = 0.01,
        "at least 2e-9 and below 1": |rate| (2e-9..1.0).contains(&rate);
    /// Maximum bytes of one filter. At most 12 MiB in a cluster, because Ballista's messages hold
    /// 16 MiB.
    max_filter_bytes: u64 = 8 << 20, "1 or more": |bytes| bytes >= 1;
    /// Maximum bytes of filters that all tasks read together. Each probing task reads the partial
    /// filters of all build partitions, or one merged filter. In Ballista it reads none if the
    /// build side has one partition.
    max_bytes_read: u64 = 1 << 30, "1 or more": |bytes| bytes >= 1;
    /// The expected number of keys if the rows of the build side are unknown.
    default_keys: u64 = 1_000_000,
        "from 1 to 1e12": |keys| (1..=1_000_000_000_000).contains(&keys);
    /// Sides with fewer rows are not probed. Sides with an unknown number of rows are.
    min_probe_rows: u64 = 100_000;
    /// If more than this share of a partition's rows are hits, only samples are probed.
    stop_above: f64 = 0.9, "from 0 to 1": |share| (0.0..=1.0).contains(&share);
    /// A filter that would have a higher false-positive rate within `max_filter_bytes` is not
    /// built.
    max_false_positive_rate: f64 = 0.25, "from 0 to 1": |rate| (0.0..=1.0).contains(&rate);
    /// Whether to plan a filter even if a broadcast of the build side is likely, which would avoid
    /// the shuffle.
    despite_broadcast: bool = false;
}

impl ConfigExtension for BloomJoinOptions {
    const PREFIX: &'static str = PREFIX;
}

impl BloomJoinOptions {
    /// Returns the settings of a session, or the defaults if it has none.
    pub fn from_config(config: &ConfigOptions) -> Self {
        config.extensions.get::<BloomJoinOptions>().cloned().unwrap_or_default()
    }
}
