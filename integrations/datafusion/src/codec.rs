//! [`BloomPhysicalCodec`]: encodes the operators and functions for other processes.

use std::sync::Arc;

use datafusion::common::{Result, exec_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use crate::aggregate::{BLOOM_FILTER_AGG, bloom_filter_agg};
use crate::build::BloomBuildExec;
use crate::contains::{BLOOM_FILTER_CONTAINS, function};
use crate::probe::BloomProbeExec;

/// A codec for physical plans that encodes the operators and functions of this crate, and delegates
/// everything else to another codec.
#[derive(Debug)]
pub struct BloomPhysicalCodec {
    inner: Arc<dyn PhysicalExtensionCodec>,
}

impl BloomPhysicalCodec {
    /// Wraps `inner`, which encodes everything else.
    pub fn new(inner: Arc<dyn PhysicalExtensionCodec>) -> Self {
        BloomPhysicalCodec { inner }
    }
}

/// The first bytes of an encoded operator. Other codecs encode protobuf messages, which never start
/// with this byte.
const MAGIC: &[u8; 8] = b"\xffBBPROBE";

/// The encoding of a function. It must not be empty: otherwise all plans of an executor would share
/// the function that the executor registered, with its open filters.
const PLAN_INSTANCE: &[u8] = b"1";

impl PhysicalExtensionCodec for BloomPhysicalCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // There is no substitute for the operator that builds a filter: its output is the state of
        // an aggregate. If another release encoded it differently, the stage fails.
        if let Some(bytes) = bytes.strip_prefix(BloomBuildExec::MAGIC) {
            return Ok(Arc::new(BloomBuildExec::decode(bytes, inputs)?));
        }
        let Some(bytes) = bytes.strip_prefix(MAGIC) else {
            return self.inner.try_decode(bytes, inputs, context, converter);
        };
        let [input, filter] = inputs else {
            return exec_err!("BloomProbeExec: {} inputs (must be 2)", inputs.len());
        };
        // A scheduler of another release may encode probes differently. Without the probe, the
        // query returns the same rows.
        match decode_probe(bytes, input, filter) {
            Ok(probe) => Ok(Arc::new(probe)),
            Err(error) => {
                log::warn!("filter given up, no rows are dropped: {error}");
                Ok(input.clone())
            }
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(build) = node.downcast_ref::<BloomBuildExec>() {
            build.encode(bytes);
            return Ok(());
        }
        let Some(probe) = node.downcast_ref::<BloomProbeExec>() else {
            return self.inner.try_encode(node, bytes, converter);
        };
        bytes.extend(MAGIC);
        bytes.extend(probe.stop_above().to_le_bytes());
        let Ok(count) = u8::try_from(probe.columns().len()) else {
            return exec_err!(
                "BloomProbeExec: {} key columns (at most 255)",
                probe.columns().len()
            );
        };
        bytes.push(count);
        bytes.extend(probe.columns().iter().flat_map(|&column| (column as u32).to_le_bytes()));
        bytes.extend(probe.decision().as_bytes());
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        match name {
            BLOOM_FILTER_CONTAINS => Ok(Arc::new(function(true))),
            _ => self.inner.try_decode_udf(name, bytes),
        }
    }

    fn try_encode_udf(&self, node: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        if node.name() == BLOOM_FILTER_CONTAINS {
            bytes.extend(PLAN_INSTANCE);
            return Ok(());
        }
        self.inner.try_encode_udf(node, bytes)
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        match name {
            BLOOM_FILTER_AGG => Ok(bloom_filter_agg()),
            _ => self.inner.try_decode_udaf(name, bytes),
        }
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udaf(node, bytes)
    }

    fn try_decode_udwf(&self, name: &str, bytes: &[u8]) -> Result<Arc<WindowUDF>> {
        self.inner.try_decode_udwf(name, bytes)
    }

    fn try_encode_udwf(&self, node: &WindowUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udwf(node, bytes)
    }
}

fn decode_probe(
    bytes: &[u8],
    input: &Arc<dyn ExecutionPlan>,
    filter: &Arc<dyn ExecutionPlan>,
) -> Result<BloomProbeExec> {
    let length = bytes.len();
    let parts = bytes.split_first_chunk().and_then(|(stop_above, rest)| {
        let (&count, rest) = rest.split_first()?;
        let (columns, decision) = rest.split_at_checked(4 * usize::from(count))?;
        Some((f64::from_le_bytes(*stop_above), columns, str::from_utf8(decision).ok()?))
    });
    let Some((stop_above, columns, decision)) = parts else {
        return exec_err!(
            "BloomProbeExec: cannot decode {length} bytes; encoded by another release?"
        );
    };
    let columns = columns.as_chunks::<4>().0.iter();
    let columns = columns.map(|column| u32::from_le_bytes(*column) as usize).collect();
    let probe = BloomProbeExec::try_new(input.clone(), filter.clone(), columns, stop_above)?;
    Ok(probe.with_decision(decision.to_string()))
}
