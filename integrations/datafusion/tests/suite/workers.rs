//! Workers of datafusion-distributed in this process. They listen at free ports and stop when they
//! are dropped.

use std::net::Ipv4Addr;

use datafusion_distributed::{Worker, WorkerResolver, WorkerSessionBuilder};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use url::Url;

use self::urls::Urls;

#[path = "../../examples/cluster/urls.rs"]
mod urls;

#[derive(Debug)]
pub(crate) struct Workers {
    urls: Vec<Url>,
    _servers: JoinSet<()>,
}

impl Workers {
    pub(crate) async fn start(
        count: usize,
        sessions: impl WorkerSessionBuilder + Clone + Send + Sync + 'static,
    ) -> Self {
        let (mut urls, mut servers) = (Vec::new(), JoinSet::new());
        for _ in 0..count {
            // The port accepts connections from here onwards, before the server runs.
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            urls.push(Url::parse(&url).unwrap());
            let worker = Worker::from_session_builder(sessions.clone());
            servers.spawn(async move {
                let server = Server::builder().add_service(worker.into_worker_server());
                server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
            });
        }
        Workers { urls, _servers: servers }
    }

    pub(crate) fn resolver(&self) -> impl WorkerResolver + use<> {
        Urls(self.urls.clone())
    }
}
