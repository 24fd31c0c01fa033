//! Each call of `HistoryService`, let in, named, timed and counted.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tideline_wire::RawRecord;
use tideline_wire::history_v1 as v1;
use tideline_wire::history_v1_server::history_service_server::HistoryService;
use tokio_stream::Stream;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use super::{Service, reads, record};
use crate::Gateway;
use crate::auth::Caller;
use crate::op::Op;
use crate::problem::Problem;
use crate::within::within;

pub(super) type Answer<T> = Result<Response<T>, Status>;
pub(super) type Lines<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Gateway {
    /// The caller that metadata names.
    pub(super) async fn grpc_caller(&self, metadata: &MetadataMap) -> Result<Arc<Caller>, Problem> {
        let authorization = metadata.get("authorization").map(|value| value.as_bytes());
        self.inner.auth.caller(authorization, None).await
    }

    /// Runs one call behind the door.
    pub(super) async fn grpc<T, F>(
        &self,
        op: Op,
        metadata: &MetadataMap,
        run: impl FnOnce(Arc<Caller>) -> F,
    ) -> Answer<T>
    where
        F: Future<Output = Result<T, Problem>>,
    {
        self.grpc_waiting(op, metadata, Duration::ZERO, run).await
    }

    /// The same for one that waits up to `wait` for something to come.
    pub(super) async fn grpc_waiting<T, F>(
        &self,
        op: Op,
        metadata: &MetadataMap,
        wait: Duration,
        run: impl FnOnce(Arc<Caller>) -> F,
    ) -> Answer<T>
    where
        F: Future<Output = Result<T, Problem>>,
    {
        let started = Instant::now();
        let result = match self.enter() {
            Err(problem) => Err(problem),
            Ok(_under_way) => {
                let run = async { run(self.grpc_caller(metadata).await?).await };
                let timed = within(self.deadline() + wait, run).await;
                timed.unwrap_or_else(|_| Err(Problem::late()))
            }
        };
        let code = result.as_ref().err().map(|problem| problem.code);
        self.inner.meters.count(op, started.elapsed(), code);
        result.map(Response::new).map_err(Into::into)
    }
}

/// A call that takes a message and gives one back.
macro_rules! plain {
    ($self:ident, $request:ident, $op:expr, $run:expr) => {{
        let (metadata, _, message) = $request.into_parts();
        let gateway = &$self.gateway;
        gateway.grpc($op, &metadata, |caller| $run(gateway, $op, caller, message)).await
    }};
}

#[tonic::async_trait]
impl HistoryService for Service {
    async fn record(&self, request: Request<RawRecord>) -> Answer<v1::RecordResponse> {
        plain!(self, request, Op::Record, record::one)
    }

    async fn record_batch(&self, request: Request<RawRecord>) -> Answer<v1::RecordResponse> {
        plain!(self, request, Op::RecordBatch, record::one)
    }

    async fn merge(&self, request: Request<RawRecord>) -> Answer<v1::RecordResponse> {
        plain!(self, request, Op::Merge, record::one)
    }

    type RecordStreamStream = Lines<v1::RecordResponse>;

    async fn record_stream(
        &self,
        request: Request<Streaming<RawRecord>>,
    ) -> Answer<Self::RecordStreamStream> {
        let (metadata, _, messages) = request.into_parts();
        let caller = self.gateway.grpc_caller(&metadata).await?;
        Ok(Response::new(record::stream(self.gateway.clone(), caller, messages)))
    }

    async fn list(&self, request: Request<v1::ListRequest>) -> Answer<v1::ListResponse> {
        plain!(self, request, Op::List, reads::list)
    }

    async fn count(&self, request: Request<v1::CountRequest>) -> Answer<v1::CountResponse> {
        plain!(self, request, Op::Count, reads::count)
    }

    async fn days(&self, request: Request<v1::CountRequest>) -> Answer<v1::DaysResponse> {
        plain!(self, request, Op::Days, reads::days)
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Answer<v1::Progress> {
        plain!(self, request, Op::Progress, reads::get)
    }

    async fn batch_get(
        &self,
        request: Request<v1::BatchGetRequest>,
    ) -> Answer<v1::BatchGetResponse> {
        plain!(self, request, Op::ProgressBatch, reads::batch_get)
    }

    async fn delete(&self, request: Request<v1::DeleteRequest>) -> Answer<v1::DeletedResponse> {
        plain!(self, request, Op::Delete, reads::delete)
    }

    async fn clear(&self, request: Request<v1::ClearRequest>) -> Answer<v1::DeletedResponse> {
        plain!(self, request, Op::Clear, reads::clear)
    }

    async fn get_settings(&self, request: Request<v1::UserRequest>) -> Answer<v1::Settings> {
        plain!(self, request, Op::Settings, reads::settings)
    }

    async fn set_settings(&self, request: Request<v1::SetSettingsRequest>) -> Answer<v1::Settings> {
        plain!(self, request, Op::SetSettings, reads::set_settings)
    }

    type ExportStream = Lines<v1::ExportLine>;

    async fn export(&self, request: Request<v1::UserRequest>) -> Answer<Self::ExportStream> {
        plain!(self, request, Op::Export, reads::export)
    }

    async fn restore(
        &self,
        request: Request<Streaming<v1::RestoreRequest>>,
    ) -> Answer<v1::RestoreResponse> {
        plain!(self, request, Op::Restore, reads::restore)
    }

    async fn erase(&self, request: Request<v1::UserRequest>) -> Answer<v1::EraseResponse> {
        plain!(self, request, Op::Erase, reads::erase)
    }
}
