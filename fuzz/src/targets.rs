//! Every decoder of bytes from disk, network or user, by the name of its
//! target. Read by the targets and by the test that replays their corpora.

/// Names, in order, and what each feeds.
macro_rules! targets {
    ($($name:ident => $entry:path,)*) => {
        $(
            /// Feeds the decoder of this name.
            #[allow(dead_code)]
            pub fn $name(bytes: &[u8]) {
                $entry(bytes);
            }
        )*
        /// Every target by name.
        pub const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $entry)),*];
    };
}

targets! {
    // The log.
    log_batch => tideline_record::fuzz::batch,
    log_frame => tideline_record::fuzz::frame,
    key_operation => tideline_record::fuzz::key_operation,
    log_rounds => tideline_store::fuzz::journal_file,
    log_manifest => tideline_store::fuzz::manifest,
    topic_row => tideline_queue::fuzz::topic_row,
    producers_row => tideline_queue::fuzz::producers_row,
    tier_row => tideline_tier::fuzz::tier_row,
    derived_row => tideline_queue::fuzz::derived_row,
    operator => tideline_operators::fuzz::operator,
    // The tables.
    table_files => tideline_store::fuzz::table_files,
    place => tideline_store::fuzz::place,
    outcome => tideline_history::fuzz::outcome,
    day_row => tideline_history::fuzz::day_row,
    facts_row => tideline_history::fuzz::facts_row,
    retries_row => tideline_history::fuzz::retries_row,
    cold_user => tideline_history::fuzz::cold_user,
    partition_key => tideline_history::fuzz::partition_key,
    danmaku_outcome => tideline_danmaku::fuzz::danmaku_outcome,
    danmaku_rows => tideline_danmaku::fuzz::danmaku_rows,
    meta_entry => tideline_meta::fuzz::meta_entry,
    meta_row => tideline_meta::fuzz::meta_row,
    meta_snapshot => tideline_meta::fuzz::meta_snapshot,
    catalogue_item => tideline_catalogue::fuzz::item,
    token_row => tideline_gateway::fuzz::token_row,
    // Calls, and answers to ours.
    json_marks => tideline_wire::fuzz::json_marks,
    json_bodies => tideline_wire::fuzz::json_bodies,
    protobuf_batch => tideline_wire::fuzz::protobuf_batch,
    cursor => tideline_wire::fuzz::cursor,
    live_frames => tideline_wire::fuzz::live_frames,
    meta_frame => tideline_meta::fuzz::meta_frame,
    owner_answer => tideline_catalogue::fuzz::answer,
    danmaku_filters => tideline_danmaku::fuzz::danmaku_filters,
    danmaku_scores => tideline_danmaku::fuzz::danmaku_scores,
    // Files of a user.
    export_lines => tideline_gateway::fuzz::export,
    import_ndjson => tideline_server::fuzz::import_ndjson,
    import_csv => tideline_server::fuzz::import_csv,
    import_movielens => tideline_server::fuzz::import_movielens,
    import_titles => tideline_server::fuzz::import_titles,
    import_netflix => tideline_server::fuzz::import_netflix,
    import_youtube => tideline_server::fuzz::import_youtube,
    import_export => tideline_server::fuzz::import_export,
    zookeeper_answer => tideline_server::fuzz::zookeeper_answer,
    config => tideline_server::fuzz::config,
    // Files of comments.
    danmaku_xml => tideline_wire::fuzz::danmaku::xml,
    danmaku_protobuf => tideline_wire::fuzz::danmaku::protobuf,
    danmaku_json => tideline_wire::fuzz::danmaku::json,
    danmaku_dplayer => tideline_wire::fuzz::danmaku::dplayer,
    danmaku_artplayer => tideline_wire::fuzz::danmaku::artplayer,
    danmaku_dandanplay => tideline_wire::fuzz::danmaku::dandanplay,
    danmaku_niconico_xml => tideline_wire::fuzz::danmaku::niconico_xml,
    danmaku_niconico_json => tideline_wire::fuzz::danmaku::niconico_json,
    danmaku_acfun => tideline_wire::fuzz::danmaku::acfun,
    danmaku_packed => tideline_wire::fuzz::danmaku::packed,
    danmaku_positioned => tideline_wire::fuzz::danmaku::positioned,
    danmaku_flags => tideline_wire::fuzz::danmaku::flags,
}
