//! Makes the types from the `.proto` files, with no `protoc`.
//!
//! The history service twice: once whole, for clients and for every message;
//! once the server's side alone, where the requests that carry marks stay raw
//! bytes. The messages of comments once. Services of topics, of metadata and of
//! tiers both sides at once, with keys, values and frames that share the memory they came in.

use prost::Message as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let history = "proto/tideline/history/v1/history.proto";
    let danmaku = "proto/tideline/danmaku/v1/danmaku.proto";
    let live = "proto/tideline/live/v1/live.proto";
    let common = "proto/tideline/common/v1/common.proto";
    let services = ["proto/tideline/queue/v1/queue.proto", "proto/tideline/meta/v1/meta.proto"];
    let tier = "proto/tideline/tier/v1/tier.proto";
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile([&[history, danmaku, live], &services[..]].concat(), ["proto"])?;
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), files.encode_to_vec())?;

    let [client, server, frames, both] =
        ["client", "server", "live", "both"].map(|name| out.join(name));
    for folder in [&client, &server, &frames, &both] {
        std::fs::create_dir_all(folder)?;
    }
    tonic_prost_build::configure()
        .build_server(false)
        .out_dir(client)
        .compile_fds(protox::compile([history, danmaku], ["proto"])?)?;
    tonic_prost_build::configure()
        .extern_path(".tideline.history.v1", "crate::history_v1")
        .extern_path(".tideline.danmaku.v1", "crate::danmaku_v1")
        .out_dir(frames)
        .compile_fds(protox::compile([live], ["proto"])?)?;
    tonic_prost_build::configure()
        .build_client(false)
        .extern_path(".tideline.history.v1", "crate::history_v1")
        .extern_path(".tideline.history.v1.RecordRequest", "crate::RawRecord")
        .out_dir(server)
        .compile_fds(protox::compile([history], ["proto"])?)?;
    tonic_prost_build::configure()
        .out_dir(&both)
        .compile_fds(protox::compile([common], ["proto"])?)?;
    tonic_prost_build::configure()
        .bytes(".")
        .extern_path(".tideline.common.v1", "crate::common_v1")
        .out_dir(both)
        .compile_fds(protox::compile([&services[..], &[tier]].concat(), ["proto"])?)?;
    Ok(())
}
