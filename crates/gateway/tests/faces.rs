//! Both faces over the memory engines, as callers see them.

#![allow(clippy::unwrap_used)]

#[path = "faces/access.rs"]
mod access;
#[path = "faces/bad_input.rs"]
mod bad_input;
#[path = "faces/catalogue.rs"]
mod catalogue;
#[path = "faces/danmaku.rs"]
mod danmaku;
#[path = "faces/fixture.rs"]
mod fixture;
#[path = "faces/front.rs"]
mod front;
#[path = "faces/grpc.rs"]
mod grpc;
#[path = "faces/grpc_topics.rs"]
mod grpc_topics;
#[path = "faces/history.rs"]
mod history;
#[path = "faces/hook.rs"]
mod hook;
#[path = "faces/live.rs"]
mod live;
#[path = "faces/moderation.rs"]
mod moderation;
#[path = "faces/operate.rs"]
mod operate;
#[path = "faces/pages.rs"]
mod pages;
#[path = "faces/scenarios.rs"]
mod scenarios;
#[path = "faces/topics.rs"]
mod topics;
