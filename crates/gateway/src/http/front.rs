//! A short way for what is asked for most: a video's segments.
//!
//! A segment that is ready takes less time than finding its route and passing
//! the layers around it. So its path is known here, and leads to the same door;
//! everything else goes to the router. Always: an answer is the one that the
//! router would give.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::Either;
use http::{Method, Request};
use tower::Service;

use super::door::{Params, door};
use super::face::Asked;
use super::segments;
use crate::Gateway;
use crate::op::Op;

/// The router, and the way past it.
#[derive(Clone)]
pub(crate) struct Front {
    gateway: Gateway,
    router: Router,
}

impl Front {
    pub(crate) fn new(gateway: Gateway) -> Self {
        Self { router: gateway.http(), gateway }
    }
}

type Short = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

impl<B> Service<Request<B>> for Front
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Short, <Router as Service<Request<B>>>::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // As the router.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let segment = match *request.method() {
            Method::GET => segment_of(request.uri().path()),
            _ => None,
        };
        let Some(segment) = segment else { return Either::Right(self.router.call(request)) };
        let gateway = self.gateway.clone();
        let request = request.map(|_| Body::empty());
        Either::Left(Box::pin(async move {
            let asked = Asked::of(&gateway, request.headers());
            let (own, op) = (gateway.clone(), Op::ReadComments);
            let response = door(own, op, request, Some(segment), segments::segment).await;
            Ok(asked.answered(&gateway, response))
        }))
    }
}

/// The video and the segment of a path, where nothing has to be decoded.
fn segment_of(path: &str) -> Option<Params> {
    let (video, rest) = path.strip_prefix("/v1/videos/")?.split_once('/')?;
    let number = rest.strip_prefix("danmaku/segments/")?;
    let plain = |part: &str| !part.is_empty() && !part.contains(['/', '%']);
    let both = plain(video) && plain(number);
    both.then(|| Params::Known([("video", video.into()), ("n", number.into())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_of_segments_are_known() {
        let known = |path| match segment_of(path) {
            Some(Params::Known([(_, video), (_, n)])) => Some((video.into(), n.into())),
            _ => None,
        };
        let pair = |video: &str, n: &str| Some((video.to_owned(), n.to_owned()));
        assert_eq!(known("/v1/videos/v-1/danmaku/segments/2.pb"), pair("v-1", "2.pb"));
        for other in [
            "/v1/videos/v%20/danmaku/segments/1",
            "/v1/videos//danmaku/segments/1",
            "/v1/videos/v/danmaku/segments/",
            "/v1/videos/v/danmaku/segments/1/2",
            "/v1/videos/v/danmaku/view",
            "/v1/users/me",
        ] {
            assert_eq!(known(other), None, "{other}");
        }
    }
}
