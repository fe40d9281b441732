//! A directory as an object store that counts and delays requests.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path as Location;
use datafusion::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, OBJECT_STORE_COALESCE_DEFAULT,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, coalesce_ranges,
};
use futures::stream::BoxStream;

#[derive(Debug)]
pub(crate) struct Counting {
    inner: LocalFileSystem,
    latency_us: AtomicU64,
    requests: AtomicU64,
    bytes: AtomicU64,
    files: Mutex<BTreeSet<String>>,
}

/// The requests to a store.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Requested {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// Parquet files with at least one read.
    pub(crate) files: usize,
}

impl Counting {
    pub(crate) fn new(root: &Path) -> Result<Self> {
        Ok(Counting {
            inner: LocalFileSystem::new_with_prefix(root)?,
            latency_us: AtomicU64::default(),
            requests: AtomicU64::default(),
            bytes: AtomicU64::default(),
            files: Mutex::default(),
        })
    }

    /// Sets the minimum microseconds of a request.
    pub(crate) fn set_latency(&self, microseconds: u64) {
        self.latency_us.store(microseconds, Relaxed);
    }

    /// Returns the requests since the last call.
    pub(crate) fn take(&self) -> Requested {
        Requested {
            requests: self.requests.swap(0, Relaxed),
            bytes: self.bytes.swap(0, Relaxed),
            files: std::mem::take(&mut *self.files.lock().unwrap()).len(),
        }
    }

    async fn request(&self) {
        self.requests.fetch_add(1, Relaxed);
        match self.latency_us.load(Relaxed) {
            0 => {}
            latency => tokio::time::sleep(Duration::from_micros(latency)).await,
        }
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counting")
    }
}

#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(
        &self,
        location: &Location,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.request().await;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Location,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.request().await;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Location, options: GetOptions) -> Result<GetResult> {
        self.request().await;
        let head = options.head;
        let result = self.inner.get_opts(location, options).await?;
        if !head {
            self.bytes.fetch_add(result.range.end - result.range.start, Relaxed);
            if location.as_ref().ends_with(".parquet") {
                self.files.lock().unwrap().insert(location.to_string());
            }
        }
        Ok(result)
    }

    /// Joins ranges less than 1 MiB apart, as stores over HTTP do.
    async fn get_ranges(&self, location: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let get = |range| self.get_range(location, range);
        coalesce_ranges(ranges, get, OBJECT_STORE_COALESCE_DEFAULT).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Location>>,
    ) -> BoxStream<'static, Result<Location>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Location>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.requests.fetch_add(1, Relaxed);
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Location>) -> Result<ListResult> {
        self.request().await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Location, to: &Location, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
