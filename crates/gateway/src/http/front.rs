//! A short way for what is asked for most: a video's segments, a user's marks
//! and their list.
//!
//! To answer takes less time there than to find the route and to pass the
//! layers around it. So their paths are known here, and lead to the same door;
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
use tower::{Layer as _, Service};

use super::door::{Params, door};
use super::face::{Asked, compression};
use super::{history, lists, segments};
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
        match Way::of(request.method(), request.uri().path()) {
            Some(Way::Segment(params)) => {
                // Its bodies are compressed by themselves.
                let request = request.map(|_| Body::empty());
                Either::Left(self.short(request, |gateway, request| {
                    door(gateway, Op::ReadComments, request, Some(params), segments::segment)
                }))
            }
            Some(Way::Marks(params)) => {
                let request = request.map(Body::new);
                Either::Left(self.short(request, |gateway, request| {
                    compressed(request, move |request| {
                        door(gateway, Op::Record, request, Some(params), history::record)
                    })
                }))
            }
            Some(Way::List(params)) => {
                let request = request.map(|_| Body::empty());
                Either::Left(self.short(request, |gateway, request| {
                    compressed(request, move |request| {
                        door(gateway, Op::List, request, Some(params), lists::list)
                    })
                }))
            }
            None => Either::Right(self.router.call(request)),
        }
    }
}

impl Front {
    /// Does what the layers around the router do.
    fn short<F, A>(&self, request: Request<Body>, answer: F) -> Short
    where
        F: FnOnce(Gateway, Request<Body>) -> A,
        A: Future<Output = Response> + Send + 'static,
    {
        let gateway = self.gateway.clone();
        let asked = Asked::of(&gateway, request.headers());
        let answer = answer(gateway.clone(), request);
        Box::pin(async move { Ok(asked.answered(&gateway, answer.await)) })
    }
}

/// The answer, compressed if that is worth it.
async fn compressed<F, A>(request: Request<Body>, answer: F) -> Response
where
    F: FnOnce(Request<Body>) -> A,
    A: Future<Output = Response>,
{
    let mut answer = Some(answer);
    let answer = tower::service_fn(move |request| {
        let answer = answer.take().expect("called once, below");
        async move { Ok::<_, Infallible>(answer(request).await) }
    });
    let Ok(answer) = compression().layer(answer).call(request).await;
    answer.map(Body::new)
}

/// A path that is known, with what it names.
enum Way {
    Segment(Params),
    Marks(Params),
    List(Params),
}

impl Way {
    /// Where nothing of the path has to be decoded.
    fn of(method: &Method, path: &str) -> Option<Self> {
        match *method {
            Method::GET => {
                segment_of(path).map(Self::Segment).or_else(|| user_of(path).map(Self::List))
            }
            Method::POST => user_of(path).map(Self::Marks),
            _ => None,
        }
    }
}

/// The video and the segment of `/v1/videos/{video}/danmaku/segments/{n}`.
fn segment_of(path: &str) -> Option<Params> {
    let (video, rest) = path.strip_prefix("/v1/videos/")?.split_once('/')?;
    let number = rest.strip_prefix("danmaku/segments/")?;
    let both = is_plain(video) && is_plain(number);
    both.then(|| Params::Known([Some(("video", video.into())), Some(("n", number.into()))]))
}

/// The user of `/v1/users/{user}/history`.
fn user_of(path: &str) -> Option<Params> {
    let user = path.strip_prefix("/v1/users/")?.strip_suffix("/history")?;
    is_plain(user).then(|| Params::Known([Some(("user", user.into())), None]))
}

fn is_plain(part: &str) -> bool {
    !part.is_empty() && !part.contains(['/', '%'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_of_segments_are_known() {
        let known = |path| match segment_of(path) {
            Some(Params::Known([Some((_, video)), Some((_, n))])) => Some((video.into(), n.into())),
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

    #[test]
    fn only_plain_paths_of_a_users_marks_are_known() {
        let known = |path| match user_of(path) {
            Some(Params::Known([Some((_, user)), None])) => Some(String::from(user)),
            _ => None,
        };
        assert_eq!(known("/v1/users/ann@x/history"), Some("ann@x".into()));
        for other in [
            "/v1/users//history",
            "/v1/users/a%20b/history",
            "/v1/users/a/history/b/history",
            "/v1/users/a/history:merge",
            "/v1/users/history",
        ] {
            assert_eq!(known(other), None, "{other}");
        }
    }
}
