//! HTTP and JSON, for apps.
//!
//! Every call comes in by one `door`: it is let in, named, admitted, timed and
//! counted there, and what goes wrong behind it, a panic included, leaves as a
//! problem; `pages` answers what is no call. `face` around all paths answers
//! browsers' preflights, names each request and compresses what is worth it.

mod admin;
mod checkpoints;
mod danmaku;
mod door;
mod face;
mod filters;
mod front;
mod history;
mod items;
mod lists;
mod operate;
mod pages;
mod personal;
mod players;
mod query;
mod review;
mod segments;
mod tokens;
mod topics;
mod tree;
mod undo;
mod uploads;
mod whole;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, get};
use http::{HeaderMap, Method, Uri};
use tideline_wire::Code;

use crate::Gateway;
use crate::live;
use crate::op::Op;
use crate::problem::Problem;
use door::on;

pub(crate) use danmaku::{comment_json, draft_of, is_privileged};
pub(crate) use door::Call;
pub(crate) use front::Front;
pub(crate) use history::{ack_of, object_key};
pub use pages::PageFile;
pub(crate) use pages::Pages;
pub(crate) use query::find_kind;

const GET: MethodFilter = MethodFilter::GET;
const POST: MethodFilter = MethodFilter::POST;
const PUT: MethodFilter = MethodFilter::PUT;
const DELETE: MethodFilter = MethodFilter::DELETE;
const PATCH: MethodFilter = MethodFilter::PATCH;

/// Every path there is. The API document is held against it by a test.
pub(crate) fn router(gateway: Gateway) -> Router {
    let router = Router::new()
        .route(
            "/v1/users/{user}/history",
            on(POST, Op::Record, history::record).merge(on(GET, Op::List, lists::list)).merge(on(
                DELETE,
                Op::Clear,
                history::clear,
            )),
        )
        .route("/v1/users/{user}/history:merge", on(POST, Op::Merge, history::merge))
        .route("/v1/users/{user}/history:delete", on(POST, Op::Delete, history::delete_many))
        .route("/v1/users/{user}/history:restore", on(POST, Op::Restore, history::restore))
        .route("/v1/users/{user}/history/count", on(GET, Op::Count, lists::count))
        .route("/v1/users/{user}/history/days", on(GET, Op::Days, lists::days))
        .route("/v1/users/{user}/history/export", on(GET, Op::Export, history::export))
        .route(
            "/v1/users/{user}/history/settings",
            on(GET, Op::Settings, history::settings).merge(on(
                PUT,
                Op::SetSettings,
                history::set_settings,
            )),
        )
        .route("/v1/users/{user}/history/{kind}/{id}", on(DELETE, Op::Delete, history::delete))
        .route("/v1/users/{user}/progress", on(GET, Op::Progress, lists::progress))
        .route("/v1/users/{user}/progress/{kind}/{id}", on(GET, Op::Progress, lists::progress))
        .route(
            "/v1/users/{user}/progress:batchGet",
            on(POST, Op::ProgressBatch, lists::progress_batch),
        )
        .route("/v1/users/{user}/danmaku", on(GET, Op::OwnComments, danmaku::own))
        .route(
            "/v1/users/{user}/danmaku/filters",
            on(GET, Op::OwnComments, filters::of_viewer).merge(on(
                PUT,
                Op::SetViewer,
                filters::set_of_viewer,
            )),
        )
        .route("/v1/users/{user}/danmaku/flags", on(PUT, Op::SetViewer, personal::set_flags))
        .route(
            "/v1/videos/{video}/danmaku",
            on(POST, Op::PostComment, danmaku::post).merge(on(GET, Op::ReadComments, whole::whole)),
        )
        .route("/v1/videos/{video}/danmaku.json", on(GET, Op::ReadComments, whole::whole))
        .route("/v1/videos/{video}/danmaku.xml", on(GET, Op::ReadComments, whole::whole))
        .route("/v1/videos/{video}/danmaku.ass", on(GET, Op::ReadComments, whole::whole))
        .route(
            "/v1/videos/{video}/danmaku/segments/{n}",
            on(GET, Op::ReadComments, segments::segment),
        )
        .route(
            "/v1/videos/{video}/danmaku/special/{pack}",
            on(GET, Op::ReadComments, segments::special),
        )
        .route("/v1/videos/{video}/danmaku:import", on(POST, Op::ImportComments, uploads::import))
        .route(
            "/players/dplayer/v3/",
            on(GET, Op::ReadComments, players::dplayer).merge(on(
                POST,
                Op::ReadComments,
                players::dplayer_post,
            )),
        )
        .route("/players/artplayer/{video}", on(GET, Op::ReadComments, players::artplayer))
        .route("/v1/videos/{video}/danmaku/view", on(GET, Op::ReadComments, danmaku::view))
        .route("/v1/videos/{video}/danmaku/settings", on(PUT, Op::SetVideo, danmaku::set))
        .route(
            "/v1/videos/{video}/danmaku/filters",
            on(GET, Op::SetVideo, filters::of_video).merge(on(
                PUT,
                Op::SetVideo,
                filters::set_of_video,
            )),
        )
        .route("/v1/videos/{video}/danmaku/hidden", on(GET, Op::HiddenComments, danmaku::hidden))
        .route(
            "/v1/videos/{video}/danmaku/{id}",
            on(PATCH, Op::ChangeComment, danmaku::change).merge(on(
                DELETE,
                Op::ChangeComment,
                danmaku::remove,
            )),
        )
        .route("/v1/videos/{video}/danmaku/{id}/like", on(POST, Op::LikeComment, danmaku::like))
        .route(
            "/v1/videos/{video}/danmaku/{id}/report",
            on(POST, Op::ReportComment, danmaku::report),
        )
        .route(
            "/v1/danmaku/filters",
            on(GET, Op::SetSite, filters::of_site).merge(on(
                PUT,
                Op::SetSite,
                filters::set_of_site,
            )),
        )
        .route("/v1/danmaku/flags:batch", on(POST, Op::PutFlags, personal::put_flags))
        .route("/v1/works/{work}/danmaku", on(GET, Op::ReadComments, danmaku::work))
        .route("/v1/danmaku/review", on(GET, Op::Review, review::list))
        .route("/v1/danmaku/audit:undo", on(POST, Op::SetSite, undo::undo))
        .route("/v1/users/{user}", on(DELETE, Op::Erase, history::erase))
        .route("/v1/history:batch", on(POST, Op::RecordBatch, history::batch))
        .route(
            "/v1/items/{kind}/{id}",
            on(PUT, Op::PutItems, items::put).merge(on(GET, Op::GetItem, items::get)),
        )
        .route("/v1/items:batch", on(POST, Op::PutItems, items::put_many))
        .route("/v1/topics", on(GET, Op::Topics, topics::list))
        .route(
            "/v1/topics/{topic}",
            on(GET, Op::Topics, topics::describe)
                .merge(on(PUT, Op::ChangeTopic, topics::create))
                .merge(on(DELETE, Op::ChangeTopic, topics::delete)),
        )
        .route("/v1/topics/{topic}/readers", on(GET, Op::Topics, topics::readers))
        .route(
            "/v1/topics/{topic}/records",
            on(POST, Op::Produce, topics::produce).merge(on(GET, Op::Fetch, topics::fetch)),
        )
        .route("/v1/meta/subtrees", on(GET, Op::MetaRead, tree::subtrees))
        .route("/v1/meta/nodes", on(GET, Op::MetaRead, tree::node))
        .route("/v1/topics/{topic}/checkpoints", on(GET, Op::Topics, checkpoints::list))
        .route(
            "/v1/topics/{topic}/checkpoints/{consumer}",
            on(GET, Op::Topics, checkpoints::get)
                .merge(on(PUT, Op::Checkpoint, checkpoints::keep))
                .merge(on(DELETE, Op::Checkpoint, checkpoints::forget)),
        )
        .route("/v1/live", on(GET, Op::Live, live::connect))
        .route("/v1/tickets", on(POST, Op::Ticket, tokens::ticket))
        .route(
            "/v1/tokens",
            on(GET, Op::Tokens, tokens::list).merge(on(POST, Op::Tokens, tokens::make)),
        )
        .route("/v1/tokens/{id}", on(DELETE, Op::Tokens, tokens::revoke))
        .route("/v1/users", on(GET, Op::Users, admin::users))
        .route("/v1/backup", on(POST, Op::Backup, admin::backup))
        .route("/healthz", get(operate::healthz))
        .route("/readyz", get(operate::readyz))
        .route("/metrics", get(operate::metrics))
        .route("/openapi.json", get(operate::openapi))
        .fallback(no_path)
        .method_not_allowed_fallback(no_method)
        .with_state(gateway.clone());
    face::around(router, gateway)
}

/// What is no call is a page, or nothing.
async fn no_path(
    State(gateway): State<Gateway>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let pages = gateway.inner.pages.get();
    pages.and_then(|pages| pages.answer(&method, uri.path(), &headers)).unwrap_or_else(|| {
        let detail = "there is no such path; /openapi.json lists them";
        Problem::new(Code::NotFound, detail).into_response()
    })
}

async fn no_method(method: Method) -> Problem {
    Problem::new(Code::MethodNotAllowed, format!("{method} is not for this path"))
}
