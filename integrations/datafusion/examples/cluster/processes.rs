//! A Ballista scheduler and its executors as processes on this machine. They stop when they are
//! dropped. They also stop when the program that started them ends for any reason, because each
//! exits when its standard input closes.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use blocked_bloom_datafusion::{StoredFileIndex, ballista, with_file_index};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::ObjectStore;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path as Location;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// The only address that processes listen at.
const LOOPBACK: &str = "127.0.0.1";

/// Seconds without a heartbeat after which the scheduler gives up an executor, which then exits.
/// Other work can pause all processes for a while.
pub(crate) const LONG_TIMEOUT: u64 = 600;

/// Runs the scheduler or an executor. The command lines are `scheduler PORT EXECUTORS TIMEOUT
/// [INDEX]`, with the timeout of executors in seconds and the path of an index over local files,
/// and `executor PORT GRPC_PORT SCHEDULER_PORT DIRECTORY CORES`.
pub(crate) async fn run_role(role: &str, arguments: &[String]) -> Result<(), Failure> {
    end_with_standard_input();
    match (role, arguments) {
        ("scheduler", [port, executors, timeout, index @ ..]) => {
            let timeout = timeout.parse()?;
            let config = SchedulerConfig {
                bind_port: port.parse()?,
                min_ready_executors: executors.parse()?,
                scheduling_policy: TaskSchedulingPolicy::PushStaged,
                executor_timeout_seconds: timeout,
                expire_dead_executor_interval_seconds: 5,
                no_executors_grace_period_seconds: timeout.max(180),
                ..Default::default()
            };
            let mut config = ballista::scheduler(config);
            if let [index] = index {
                let files: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new());
                let index = StoredFileIndex::open(files, &Location::from(index.as_str())).await?;
                let (index, url) = (Arc::new(index), ObjectStoreUrl::local_filesystem());
                config.override_session_builder = Some(Arc::new(move |config| {
                    let state = ballista::session_state(config)?;
                    Ok(with_file_index(state, url.clone(), index.clone()))
                }));
            }
            let address = format!("{LOOPBACK}:{port}").parse()?;
            let cluster = BallistaCluster::new_from_config(&config).await?;
            Ok(start_server(cluster, address, Arc::new(config)).await?)
        }
        ("executor", [port, grpc_port, scheduler_port, directory, cores]) => {
            let config = ExecutorProcessConfig {
                port: port.parse()?,
                grpc_port: grpc_port.parse()?,
                bind_host: LOOPBACK.into(),
                scheduler_host: LOOPBACK.into(),
                scheduler_port: scheduler_port.parse()?,
                scheduler_connect_timeout_seconds: 30,
                executor_heartbeat_interval_seconds: 5,
                work_dir: Some(directory.into()),
                vcores: cores.parse()?,
                task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
                ..Default::default()
            };
            Ok(start_executor_process(Arc::new(ballista::executor(config))).await?)
        }
        _ => Err(format!("unknown role {role} with {} arguments", arguments.len()).into()),
    }
}

/// Exits this process when its standard input closes.
pub(crate) fn end_with_standard_input() {
    thread::spawn(|| {
        _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
}

pub(crate) struct Cluster {
    pub(crate) url: String,
    pub(crate) scheduler: Process,
    pub(crate) executors: Vec<Process>,
    directory: PathBuf,
}

pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) log: PathBuf,
}

impl Cluster {
    /// Starts `binary` in the roles of [`run_role`], with logs and shuffle files in `directory`.
    pub(crate) fn start(
        binary: &Path,
        directory: &Path,
        executors: usize,
        cores: usize,
    ) -> Result<Self, Failure> {
        Cluster::start_with(binary, directory, executors, cores, LONG_TIMEOUT, None)
    }

    /// Starts them with a timeout of executors in seconds, and an index over files for the
    /// scheduler.
    pub(crate) fn start_with(
        binary: &Path,
        directory: &Path,
        executors: usize,
        cores: usize,
        timeout: u64,
        index: Option<&Path>,
    ) -> Result<Self, Failure> {
        let ports = free_ports(1 + 2 * executors)?;
        let mut arguments = vec!["scheduler".to_string(), ports[0].to_string()];
        arguments.extend([executors.to_string(), timeout.to_string()]);
        arguments.extend(index.map(|index| index.display().to_string()));
        let log = directory.join("scheduler.log");
        let mut cluster = Cluster {
            url: format!("df://{LOOPBACK}:{}", ports[0]),
            scheduler: Process::start(binary, log, &arguments, &ports[..1])?,
            executors: Vec::new(),
            directory: directory.to_path_buf(),
        };
        for (number, own) in ports[1..].chunks_exact(2).enumerate() {
            let work = cluster.work(number);
            fs::create_dir_all(&work)?;
            let mut arguments = vec!["executor".to_string()];
            arguments.extend([own[0], own[1], ports[0]].map(|port| port.to_string()));
            arguments.extend([work.display().to_string(), cores.to_string()]);
            let log = directory.join(format!("executor{number}.log"));
            cluster.executors.push(Process::start(binary, log, &arguments, own)?);
        }
        Ok(cluster)
    }

    fn work(&self, executor: usize) -> PathBuf {
        self.directory.join(format!("work{executor}"))
    }

    /// Returns the CPU seconds of the scheduler and all executors, from Linux's `/proc`; elsewhere
    /// 0.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let processes = self.executors.iter().chain([&self.scheduler]);
        processes.map(|process| cpu_seconds(process.child.id())).sum()
    }

    /// Watches the shuffle files until the result is taken. Ballista deletes them when a job ends.
    pub(crate) fn watch(&self) -> Watch {
        let works: Vec<_> = (0..self.executors.len()).map(|number| self.work(number)).collect();
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Seen>>::default());
        // Jobs that have ended are skipped: looking through them again and again would take half a
        // core after a few queries.
        let jobs = works.iter().flat_map(|work| folders(work)).map(|(job, _)| job);
        let before: BTreeSet<String> = jobs.collect();
        let look = move |seen: &Mutex<Seen>| {
            for (executor, work) in works.iter().enumerate() {
                look(executor, work, &before, seen);
            }
        };
        let (until, to) = (stop.clone(), seen.clone());
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                look(&to);
                thread::sleep(Duration::from_millis(3));
            }
        });
        Watch { stop, seen, thread: Some(thread) }
    }
}

impl Process {
    /// Starts the program in a role, and returns after it listens at all of these ports.
    ///
    /// It is an error if something already answers at a port. Later answers count only if they come
    /// from the new process, because another program may have taken the port in the meantime.
    pub(crate) fn start(
        binary: &Path,
        log: PathBuf,
        arguments: &[String],
        ports: &[u16],
    ) -> Result<Self, Failure> {
        if let Some(port) = ports.iter().find(|port| answers(**port)) {
            return Err(format!("another program already answers at port {port}").into());
        }
        let child = Command::new(binary)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut process = Process { child, log };
        let start = Instant::now();
        while let Some(port) = ports.iter().find(|port| !process.listens_at(**port)) {
            if let Some(status) = process.child.try_wait()? {
                return Err(format!("{status}: see {}", process.log.display()).into());
            }
            if start.elapsed() > Duration::from_secs(60) {
                let log = process.log.display();
                return Err(
                    format!("{arguments:?} does not listen at port {port}: see {log}").into()
                );
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    /// Whether this process listens at a port, from Linux's `/proc`; elsewhere, whether any process
    /// does.
    pub(crate) fn listens_at(&self, port: u16) -> bool {
        if !cfg!(target_os = "linux") {
            return answers(port);
        }
        let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        let local = format!(":{port:04X}");
        // The second field is the local address, the fourth the state (0A is listening), and the
        // tenth the number of the socket.
        let sockets = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let listening = sockets.filter(|s| s.len() > 9 && s[1].ends_with(&local) && s[3] == "0A");
        let listening: Vec<PathBuf> =
            listening.map(|s| format!("socket:[{}]", s[9]).into()).collect();
        let open = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        let mut open = open.into_iter().flatten().flatten().flat_map(|fd| fs::read_link(fd.path()));
        open.any(|file| listening.contains(&file))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Whether any program accepts connections at a port.
fn answers(port: u16) -> bool {
    TcpStream::connect((LOOPBACK, port)).is_ok()
}

/// Returns ports that are free now. [`Process::start`] checks them again.
pub(crate) fn free_ports(count: usize) -> std::io::Result<Vec<u16>> {
    let listeners: Result<Vec<_>, _> =
        (0..count).map(|_| TcpListener::bind((LOOPBACK, 0))).collect();
    listeners?.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

pub(crate) fn cpu_seconds(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may contain spaces.
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |field: usize| -> f64 {
        after.split_whitespace().nth(field).and_then(|ticks| ticks.parse().ok()).unwrap_or(0.0)
    };
    // utime and stime, in hundredths of a second on Linux
    (ticks(11) + ticks(12)) / 100.0
}

/// Maximum bytes of shuffle files seen so far, by job, stage and executor.
pub(crate) type Seen = BTreeMap<(String, String), BTreeMap<usize, u64>>;

fn look(executor: usize, work: &Path, before: &BTreeSet<String>, seen: &Mutex<Seen>) {
    // Files that vanish in the meantime keep the sizes that were seen.
    for (job, path) in folders(work).into_iter().filter(|(job, _)| !before.contains(job)) {
        for (stage, path) in folders(&path) {
            let bytes = bytes_below(&path);
            let mut seen = seen.lock().unwrap();
            let most = seen.entry((job.clone(), stage)).or_default().entry(executor).or_default();
            *most = bytes.max(*most);
        }
    }
}

fn folders(path: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.map(|entry| (entry.file_name().to_string_lossy().into(), entry.path())).collect()
}

fn bytes_below(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    pub(crate) seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

/// The shuffle files of all jobs since a watch began.
#[derive(Debug, Default)]
pub(crate) struct Shuffled {
    /// Bytes by job and stage.
    pub(crate) stages: BTreeMap<(String, String), u64>,
    /// The executors that wrote files.
    pub(crate) executors: BTreeSet<usize>,
}

impl Shuffled {
    pub(crate) fn bytes(&self) -> u64 {
        self.stages.values().sum()
    }
}

impl Watch {
    /// Stops watching.
    pub(crate) fn finish(mut self) -> Shuffled {
        self.stop.store(true, Ordering::Relaxed);
        _ = self.thread.take().map(JoinHandle::join);
        let mut shuffled = Shuffled::default();
        for ((job, stage), executors) in self.seen.lock().unwrap().iter() {
            let bytes = executors.values().sum();
            shuffled.stages.insert((job.clone(), stage.clone()), bytes);
            shuffled.executors.extend(executors.keys());
        }
        shuffled
    }
}
