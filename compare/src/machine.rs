//! What a report says about where and when it was made, and about the versions that were compared.

use std::time::SystemTime;

use blocked_bloom::Kernel;

use crate::peer::{Kind, Package, Role};
use crate::report::{About, Machine};

pub(crate) fn describe() -> Machine {
    Machine {
        cpu: cpu().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        os: std::env::consts::OS.to_owned(),
        kernel: Kernel::default().to_string(),
        date: today(),
        command: command(),
        load: load().into_iter().collect(),
    }
}

/// The processor's name, as the system knows it.
fn cpu() -> Option<String> {
    if cfg!(target_os = "macos") {
        let output = std::process::Command::new("sysctl")
            .args(["-n", "machdep.cpu.brand_string"])
            .output()
            .ok()?;
        return Some(String::from_utf8(output.stdout).ok()?.trim().to_owned());
    }
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split(':').nth(1)?.trim().to_owned())
    };
    let model = field("model name")?;
    Some(match (field("cpu family"), field("model\t")) {
        (Some(family), Some(number)) => format!("{model} (family {family}, model {number})"),
        _ => model,
    })
}

/// The load average of the last minute.
pub(crate) fn load() -> Option<f64> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split(' ').next()?.parse().ok()
}

fn command() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = "cargo run --release --manifest-path compare/Cargo.toml --";
    format!("{command} {}", arguments.join(" ")).trim_end_matches(" --").trim_end().to_owned()
}

/// The date in UTC. From days since 1970 by Hinnant's civil-from-days, years counted from March.
fn today() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let days = now.as_secs() / 86_400 + 719_468;
    let era = days / 146_097;
    let day = days % 146_097;
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) =
        if month < 10 { (era * 400 + year, month + 3) } else { (era * 400 + year + 1, month - 9) };
    format!("{year}-{month:02}-{day:02}")
}

pub(crate) fn about(kind: &Kind) -> About {
    About {
        id: kind.id.to_owned(),
        version: kind.package.and_then(version).unwrap_or_default(),
        configuration: kind.configuration.to_owned(),
        rows: kind.ways.iter().map(|way| way.name.to_owned()).collect(),
        is_package: kind.role == Role::Package,
    }
}

/// The version in this package's Cargo.lock.
fn version(Package(name, start): Package) -> Option<String> {
    let lock = include_str!("../Cargo.lock");
    let name = format!("name = \"{name}\"");
    lock.split("[[package]]").find_map(|package| {
        let mut lines = package.trim().lines();
        let is_it = lines.next() == Some(&name);
        let version = lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')?;
        (is_it && version.starts_with(start)).then(|| version.to_owned())
    })
}
