//! Requests of one stream, taken in the order in which they come, and answered in
//! it: many are under way at once.

use std::time::Instant;

use futures_util::StreamExt as _;
use tideline_wire::common_v1;
use tonic::{Request, Response, Status, Streaming};

use super::service::{Answer, Lines};
use crate::Gateway;
use crate::op::Op;
use crate::problem::Problem;

/// Requests of one stream under way at once; more wait with the client.
const UNDER_WAY_MAX: usize = 1_024;

/// What a stream of requests is for.
pub(super) trait Pipelined: Copy + Send + Sync + 'static {
    type Request: Send + 'static;
    type Begun: Send + 'static;
    type Response: Send + 'static;
    const OP: Op;

    /// Begins one request. The next begins after this has returned.
    fn begin(
        gateway: &Gateway,
        asked: Self::Request,
    ) -> impl Future<Output = Result<Self::Begun, Problem>> + Send;
    /// Waits until it is done, while others begin.
    fn end(begun: Self::Begun) -> impl Future<Output = Result<Self::Response, Problem>> + Send;
    /// The answer to one that was refused; the stream goes on.
    fn refused(error: common_v1::Error) -> Self::Response;
}

/// Answers each message of a request until its stream ends or the server stops:
/// what has begun then is answered.
pub(super) async fn pipelined<P: Pipelined>(
    gateway: &Gateway,
    request: Request<Streaming<P::Request>>,
) -> Answer<Lines<P::Response>> {
    let (metadata, _, messages) = request.into_parts();
    let caller = gateway.grpc_caller(&metadata).await?;
    let gateway = gateway.clone();
    let stopping = {
        let gateway = gateway.clone();
        async move { gateway.stopping().await }
    };
    let begun = messages.take_until(stopping).then({
        let gateway = gateway.clone();
        move |message| {
            let (gateway, caller) = (gateway.clone(), caller.clone());
            async move {
                let (started, message) = (Instant::now(), message?);
                let begun = async {
                    let _under_way = gateway.enter()?;
                    gateway.admit(P::OP, &caller, None)?;
                    P::begin(&gateway, message).await
                };
                Ok::<_, Status>((started, begun.await))
            }
        }
    });
    let answers = begun.map(move |begun| {
        let gateway = gateway.clone();
        async move {
            let (started, begun) = begun?;
            let ended = async { P::end(begun?).await }.await;
            let code = ended.as_ref().err().map(|problem| problem.code);
            gateway.inner.meters.count(P::OP, started.elapsed(), code);
            Ok(ended.unwrap_or_else(|problem| P::refused(error(problem))))
        }
    });
    Ok(Response::new(Box::pin(answers.buffered(UNDER_WAY_MAX))))
}

fn error(problem: Problem) -> common_v1::Error {
    common_v1::Error { code: problem.code.as_str().into(), detail: problem.detail.into() }
}
