//! Workers of datafusion-distributed on this machine, each a process of its own. They end when they
//! are dropped.

use std::net::Ipv4Addr;
use std::path::Path;

use blocked_bloom_datafusion::distributed::{session, worker_session};
use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::{DistributedExt, Worker, WorkerResolver};
use tonic::transport::Server;
use url::Url;

use crate::processes::{Failure, Process, end_with_standard_input, free_ports};

/// Runs a worker.
pub(crate) async fn run_role(port: u16) -> Result<(), Failure> {
    end_with_standard_input();
    let worker = Worker::from_session_builder(worker_session).into_worker_server();
    Ok(Server::builder().add_service(worker).serve((Ipv4Addr::LOCALHOST, port).into()).await?)
}

pub(crate) struct Workers {
    urls: Vec<Url>,
    pub(crate) processes: Vec<Process>,
}

impl Workers {
    /// Starts `binary` in the role `worker PORT` so many times, with logs in `directory`.
    pub(crate) fn start(binary: &Path, directory: &Path, count: usize) -> Result<Self, Failure> {
        let mut workers = Workers { urls: Vec::new(), processes: Vec::new() };
        for port in free_ports(count)? {
            let log = directory.join(format!("worker{port}.log"));
            let arguments = ["worker".to_string(), port.to_string()];
            workers.processes.push(Process::start(binary, log, &arguments, &[port])?);
            workers.urls.push(Url::parse(&format!("http://{}:{port}", Ipv4Addr::LOCALHOST))?);
        }
        Ok(workers)
    }

    /// A session that plans for them, which gives a partition of a scan so many bytes.
    pub(crate) fn session(
        &self,
        config: SessionConfig,
        bytes_per_partition: usize,
    ) -> Result<SessionContext> {
        let config = config.with_distributed_worker_resolver(Urls(self.urls.clone()));
        let builder = SessionStateBuilder::new().with_default_features().with_config(config);
        let builder = session(builder)
            .with_distributed_file_scan_config_bytes_per_partition(bytes_per_partition)?;
        Ok(SessionContext::new_with_state(builder.build()))
    }
}

struct Urls(Vec<Url>);

impl WorkerResolver for Urls {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}
