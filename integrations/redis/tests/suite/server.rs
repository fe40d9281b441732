//! A server with the module, in a folder and on a port of its own; it ends with the value.
#![allow(dead_code, reason = "the examples have parts of it")]

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue, Value};
use tempfile::TempDir;

/// Tests wait this long for events that take a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Server {
    process: Process,
    pub(crate) port: u16,
    folder: TempDir,
    options: Vec<String>,
    module: PathBuf,
}

/// A server's process. It ends with the value, and with this program, however that ends.
struct Process {
    server: Child,
    /// A shell that waits until this program closes the other end of a pipe, and kills the server.
    guard: Child,
}

impl Process {
    fn start(command: &mut Command) -> Process {
        let server = command.spawn().unwrap();
        let mut guard = Command::new("sh");
        guard.args(["-c", "read -r _; kill -KILL \"$0\"", &server.id().to_string()]);
        // In a group of its own, which an interrupt from the terminal does not reach.
        let guard = guard.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        Process { server, guard: guard.expect("sh") }
    }

    fn has_ended(&mut self) -> bool {
        self.server.try_wait().unwrap().is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guard first: afterwards another process may get the server's number.
        for child in [&mut self.guard, &mut self.server] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The server's program: `REDIS_SERVER`, or `redis-server` wherever it is.
fn program() -> OsString {
    std::env::var_os("REDIS_SERVER").unwrap_or_else(|| "redis-server".into())
}

/// The module, in the profile of this program and as the sources are now: cargo does not build it
/// for tests, which are not linked with it.
pub(crate) fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args([
            "build",
            "--locked",
            "--lib",
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ]);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "the module cannot be built");
        // Two folders above this program.
        let program = std::env::current_exe().unwrap();
        let name = format!(
            "{}blocked_bloom_redis{}",
            std::env::consts::DLL_PREFIX,
            std::env::consts::DLL_SUFFIX
        );
        program.parent().and_then(|folder| folder.parent()).unwrap().join(name)
    })
}

impl Server {
    /// A server with these options; none if there is no program of that name.
    pub(crate) fn start(options: &[&str]) -> Option<Server> {
        Server::start_with(module(), options)
    }

    /// The same with another module, which may be followed by its arguments in the options.
    pub(crate) fn start_with(module: &Path, options: &[&str]) -> Option<Server> {
        let options: Vec<String> = options.iter().map(|&option| option.into()).collect();
        if let Err(error) = Command::new(program()).arg("--version").stdout(Stdio::null()).status()
        {
            assert!(
                std::env::var_os("CI").is_none(),
                "redis-server is missing, and CI is set: {error}"
            );
            println!("NOT RUN: no redis-server ({error})");
            return None;
        }
        // Somebody else may take the port before the server does.
        for _ in 0..10 {
            match Server::start_at(free_port(), module, options.clone()) {
                Ok(server) => return Some(server),
                Err(log) => {
                    let is_taken = log.contains("Address already in use");
                    assert!(is_taken, "the server does not start:\n{log}");
                }
            }
        }
        panic!("no free port");
    }

    /// A server at this port, or its log if it ends.
    pub(crate) fn start_at(
        port: u16,
        module: &Path,
        options: Vec<String>,
    ) -> Result<Server, String> {
        let folder = tempfile::tempdir().unwrap();
        let process = Process::start(&mut command_of(port, &folder, &options, module));
        let mut server = Server { process, port, folder, options, module: module.to_owned() };
        if server.wait() { Ok(server) } else { Err(server.log()) }
    }

    /// The log of a server that does not start with these options.
    pub(crate) fn log_of_failure(options: &[&str]) -> String {
        let options = options.iter().map(|&option| option.into()).collect();
        match Server::start_at(free_port(), module(), options) {
            Ok(_) => panic!("the server has started"),
            Err(log) => log,
        }
    }

    /// Waits until the server answers; false if it has ended.
    fn wait(&mut self) -> bool {
        let start = Instant::now();
        while !self.process.has_ended() {
            // Where the port was taken, another server answers until this one has ended.
            if let Ok(mut connection) = self.client("").get_connection()
                && redis::cmd("PING").query::<String>(&mut connection).is_ok()
                && let Ok(info) = redis::cmd("INFO").query::<String>(&mut connection)
                && info.lines().any(|line| line == format!("process_id:{}", self.process()))
            {
                return true;
            }
            assert!(start.elapsed() < PATIENCE, "no answer:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    fn client(&self, options: &str) -> redis::Client {
        redis::Client::open(format!("redis://127.0.0.1:{}/{options}", self.port)).unwrap()
    }

    pub(crate) fn connect(&self) -> Connection {
        self.client("").get_connection().unwrap()
    }

    /// A connection of version 3 of the protocol.
    pub(crate) fn connect_3(&self) -> Connection {
        self.client("?protocol=resp3").get_connection().unwrap()
    }

    pub(crate) fn process(&self) -> u32 {
        self.process.server.id()
    }

    /// Nanoseconds that the server's threads have run.
    pub(crate) fn cpu_nanoseconds(&self) -> u64 {
        let threads =
            std::fs::read_dir(format!("/proc/{}/task", self.process.server.id())).unwrap();
        let of_thread = |path: PathBuf| -> u64 {
            let statistics = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            statistics.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default()
        };
        threads.map(|thread| of_thread(thread.unwrap().path())).sum()
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Ends the server at once, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.process.server.kill().unwrap();
        self.process.server.wait().unwrap();
    }

    /// Starts it again, after [`kill`](Self::kill) or a shutdown, on the same port and with the
    /// same files.
    pub(crate) fn start_again(&mut self) {
        let module = self.module.clone();
        assert!(self.starts_again(&module), "the server does not start again:\n{}", self.log());
    }

    /// The same with other options.
    pub(crate) fn start_again_with(&mut self, options: &[&str]) {
        self.options = options.iter().map(|&option| option.into()).collect();
        self.start_again();
    }

    /// The same with another module and other options; false if the server ends.
    pub(crate) fn starts_again_with(&mut self, module: &Path, options: &[&str]) -> bool {
        self.options = options.iter().map(|&option| option.into()).collect();
        self.starts_again(module)
    }

    /// The same with another module; false if the server ends.
    pub(crate) fn starts_again(&mut self, module: &Path) -> bool {
        self.process.server.wait().unwrap();
        self.module = module.to_owned();
        let mut command = command_of(self.port, &self.folder, &self.options, &self.module);
        self.process = Process::start(&mut command);
        self.wait()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    /// Whether the server still runs, and has reported no bug.
    pub(crate) fn is_sound(&mut self) -> bool {
        !self.process.has_ended() && !self.log().contains("BUG REPORT")
    }
}

/// A port that is free now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server in a folder. Options after `--module-arguments` are those of the module.
fn command_of(port: u16, folder: &TempDir, options: &[String], module: &Path) -> Command {
    let mut options = options.split(|option| option == "--module-arguments");
    let mut command = Command::new(program());
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    command.args(["--logfile", "log", "--save", ""]).arg("--dir").arg(folder.path());
    command.args(["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"]);
    command.args(options.next().unwrap_or_default());
    command.arg("--loadmodule").arg(module).args(options.next().unwrap_or_default());
    // Where the server uses glibc's `malloc`, each of its threads reserves 64 MiB of addresses at
    // its first allocation: after a test has read the size of the process, before it sets a limit.
    command.env("MALLOC_ARENA_MAX", "1");
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A command of these words.
pub(crate) fn call<T: FromRedisValue>(connection: &mut Connection, words: &[&str]) -> T {
    let reply = redis::cmd(words[0]).arg(&words[1..]).query(connection);
    let reply = reply.map(|reply| as_elsewhere(words, reply));
    let reply = reply.and_then(|reply| Ok(T::from_redis_value(reply)?));
    reply.unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// One field of `BF.INFO` is the value itself on Valkey, and a list of it on other servers.
fn as_elsewhere(words: &[&str], reply: Value) -> Value {
    match reply {
        Value::Int(_) | Value::Nil | Value::BulkString(_) | Value::Double(_)
            if words[0] == "BF.INFO" && words.len() == 3 =>
        {
            Value::Array(vec![reply])
        }
        reply => reply,
    }
}

/// A number of `INFO`.
pub(crate) fn info(connection: &mut Connection, field: &str) -> u64 {
    let info: String = call(connection, &["INFO", "all"]);
    let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("{field}"))
}

/// A command of a key and items.
pub(crate) fn command<K: AsRef<[u8]>>(command: &str, name: &str, items: &[K]) -> redis::Cmd {
    let mut packed = redis::cmd(command);
    packed.arg(name);
    for item in items {
        packed.arg(item.as_ref());
    }
    packed
}

/// A command of a key and items, and its replies of 1 or 0.
pub(crate) fn items<K: AsRef<[u8]>>(
    connection: &mut Connection,
    name: &str,
    key: &str,
    items: &[K],
) -> Vec<bool> {
    let replies: Vec<i64> = command(name, key, items).query(connection).unwrap();
    replies.into_iter().map(|bit| bit == 1).collect()
}

/// All of `BF.SCANDUMP`, without the last reply.
pub(crate) fn dump(connection: &mut Connection, name: &str) -> Vec<(i64, Vec<u8>)> {
    let mut replies = Vec::new();
    let mut iterator = 0;
    loop {
        let (next, data): (i64, Vec<u8>) =
            redis::cmd("BF.SCANDUMP").arg(name).arg(iterator).query(connection).unwrap();
        if next == 0 {
            assert!(data.is_empty());
            return replies;
        }
        replies.push((next, data));
        iterator = next;
    }
}

/// Keys that an own filter's links are for, by its dump: the keys of all but the last one, and what
/// the container says of the last.
pub(crate) fn stored_capacity(dump: &[(i64, Vec<u8>)]) -> u64 {
    let container: Vec<u8> = dump[1..].iter().flat_map(|(_, data)| data).copied().collect();
    let number = |at: usize| u64::from_le_bytes(container[at..at + 8].try_into().unwrap());
    let (mut links, mut at) = (Vec::new(), 64);
    while at < container.len() {
        links.push(number(at + 32));
        at += 64 + 64 * (number(at + 24) as u32) as usize;
    }
    links.pop();
    links.iter().sum::<u64>() + number(48)
}

pub(crate) fn load_chunk(
    connection: &mut Connection,
    name: &str,
    iterator: i64,
    data: &[u8],
) -> Result<(), String> {
    let result = redis::cmd("BF.LOADCHUNK").arg(name).arg(iterator).arg(data).query(connection);
    result.map_err(|error| error_text(&error))
}

pub(crate) fn load(connection: &mut Connection, name: &str, replies: &[(i64, Vec<u8>)]) {
    for (iterator, data) in replies {
        load_chunk(connection, name, *iterator, data).unwrap();
    }
}

/// The text of an error, as the server sent it.
pub(crate) fn error_text(error: &redis::RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => format!("{error:?}"),
    }
}

/// A command of these words, and its reply as text.
pub(crate) fn reply(connection: &mut Connection, words: &[&str]) -> String {
    // Not `query`, which makes an error of an array that has one.
    connection
        .send_packed_command(&redis::cmd(words[0]).arg(&words[1..]).get_packed_command())
        .unwrap();
    text(&as_elsewhere(words, connection.recv_response().unwrap()))
}

/// A reply as text: numbers and words as they are, arrays in brackets, errors after a minus sign.
fn text(reply: &Value) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(" "));
    match reply {
        Value::Int(number) => number.to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Nil => "nil".into(),
        Value::Okay => "OK".into(),
        Value::SimpleString(text) => text.clone(),
        Value::BulkString(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        Value::Array(items) => list(items.iter().map(text).collect()),
        Value::Map(pairs) => {
            list(pairs.iter().map(|(key, of)| format!("{}: {}", text(key), text(of))).collect())
        }
        Value::ServerError(error) => {
            format!("-{} {}", error.code(), error.details().unwrap_or_default())
        }
        other => format!("{other:?}"),
    }
}
