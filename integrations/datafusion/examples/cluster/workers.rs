//! Workers of datafusion-distributed as processes on this machine. They stop when they are dropped.

use std::net::Ipv4Addr;
use std::path::Path;

use blocked_bloom_datafusion::distributed::worker_session;
use datafusion_distributed::Worker;
use tonic::transport::Server;
use url::Url;

use crate::processes::{self, Failure, Process, end_with_standard_input, free_ports};
use crate::urls::Urls;

/// Runs a worker.
pub(crate) async fn run_role(port: u16) -> Result<(), Failure> {
    end_with_standard_input();
    let worker = Worker::from_session_builder(worker_session).into_worker_server();
    Ok(Server::builder().add_service(worker).serve((Ipv4Addr::LOCALHOST, port).into()).await?)
}

pub(crate) struct Workers {
    urls: Vec<Url>,
    processes: Vec<Process>,
}

impl Workers {
    /// Starts `binary` in the role `worker PORT` `count` times, with logs in `directory`.
    pub(crate) fn start(binary: &Path, directory: &Path, count: usize) -> Result<Self, Failure> {
        let mut workers = Workers { urls: Vec::new(), processes: Vec::new() };
        for (number, port) in free_ports(count)?.into_iter().enumerate() {
            let log = directory.join(format!("worker{number}.log"));
            let arguments = ["worker".to_string(), port.to_string()];
            workers.processes.push(Process::start(binary, log, &arguments, &[port])?);
            workers.urls.push(Url::parse(&format!("http://{}:{port}", Ipv4Addr::LOCALHOST))?);
        }
        Ok(workers)
    }

    pub(crate) fn resolver(&self) -> Urls {
        Urls(self.urls.clone())
    }

    /// Returns the CPU seconds of all workers, from Linux's `/proc`; elsewhere 0.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let processes = self.processes.iter();
        processes.map(|process| processes::cpu_seconds(process.child.id())).sum()
    }
}
