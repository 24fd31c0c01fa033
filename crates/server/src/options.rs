//! Settings, as each crate wants them: the one place where a key of the file
//! meets the field that it sets.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use tideline_catalogue::SourceOptions;
use tideline_gateway::options::{
    AuthMode, AuthOptions, CommentOptions, HookOptions, JwtAlgorithm, JwtOptions, LimitOptions,
    OnFailure, RateOptions, ServerOptions,
};
use tideline_history::kinds::Kind;
use tideline_store::local::{JournalOptions, LsmOptions};
use tideline_types::limits::{KIND_BYTES_MAX, KINDS_MAX, PARTITIONS_MAX};

use crate::config::{self, Config, ConfigError};

/// The log is cleaned by size before it is full.
const LOG_TARGET_PERCENT: u64 = 80;
/// The longest that a change may wait to be at rest.
const FLUSH_AFTER_MS_MAX: u64 = 600_000;

/// What every part is opened with.
pub(crate) struct Options {
    pub(crate) journal: JournalOptions,
    pub(crate) tables: LsmOptions,
    pub(crate) queue: tideline_queue::Options,
    pub(crate) history: tideline_history::Options,
    pub(crate) danmaku: tideline_danmaku::Options,
    pub(crate) meta: tideline_meta::Options,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) zone: TimeZone,
    pub(crate) partitions: u16,
    pub(crate) catalogue: tideline_catalogue::Options,
    pub(crate) gateway: tideline_gateway::Options,
}

impl Options {
    /// Checks what types alone cannot say.
    pub(crate) fn of(config: &Config) -> Result<Self, ConfigError> {
        if !(1..=PARTITIONS_MAX).contains(&config.queue.partitions) {
            return Err(bad("queue.partitions", format!("must be 1 to {PARTITIONS_MAX}")));
        }
        if !(1..=PARTITIONS_MAX).contains(&config.meta.partitions) {
            return Err(bad("meta.partitions", format!("must be 1 to {PARTITIONS_MAX}")));
        }
        if config.history.flush_after_ms > FLUSH_AFTER_MS_MAX {
            let why = format!("must be at most {FLUSH_AFTER_MS_MAX} (ten minutes)");
            return Err(bad("history.flush_after_ms", why));
        }
        if config.danmaku.flush_after_ms > FLUSH_AFTER_MS_MAX {
            let why = format!("must be at most {FLUSH_AFTER_MS_MAX} (ten minutes)");
            return Err(bad("danmaku.flush_after_ms", why));
        }
        let zone = TimeZone::get(&config.history.timezone)
            .map_err(|_| bad("history.timezone", "no such time zone (such as Asia/Shanghai)"))?;
        Ok(Self {
            journal: JournalOptions {
                max_bytes: config.log.max_bytes,
                ..JournalOptions::default()
            },
            tables: LsmOptions::default(),
            queue: tideline_queue::Options {
                partitions_default: config.queue.partitions,
                retention_default: Duration::from_hours(config.queue.retention_hours.into()),
                log_bytes_target: config.log.max_bytes / 100 * LOG_TARGET_PERCENT,
            },
            history: history(&config.history),
            danmaku: danmaku(&config.danmaku)?,
            meta: tideline_meta::Options {
                partitions: config.meta.partitions,
                rest_bytes: config.meta.rest_bytes,
                rest_after: Duration::from_millis(config.meta.rest_after_ms),
            },
            kinds: kinds(&config.history)?,
            zone,
            partitions: config.queue.partitions,
            catalogue: catalogue(&config.catalogue)?,
            gateway: tideline_gateway::Options {
                server: server(&config.server, &config.catalogue)?,
                auth: auth(&config.auth)?,
                limits: limits(&config.limits),
                danmaku: CommentOptions {
                    public_read: config.danmaku.public_read,
                    batch_ms: config.danmaku.batch_ms,
                    sender_per_minute: config.danmaku.sender_per_minute,
                    bodies_bytes_max: config.danmaku.bodies_bytes_max,
                    hook: hook(&config.danmaku.hook)?,
                },
            },
        })
    }
}

fn history(config: &config::History) -> tideline_history::Options {
    tideline_history::Options {
        hot_budget_bytes: usize::try_from(config.hot_budget_bytes).unwrap_or(usize::MAX),
        flush_after: Duration::from_millis(config.flush_after_ms),
        fast_window: Duration::from_millis(config.fast_window_ms),
        erase_within: Duration::from_hours(config.erase_hours.into()),
        ..tideline_history::Options::default()
    }
}

fn danmaku(config: &config::Danmaku) -> Result<tideline_danmaku::Options, ConfigError> {
    let limit = Some(config.limit).filter(|limit| *limit > 0);
    if limit.is_some_and(|limit| !tideline_danmaku::top::LIMITS.contains(&limit)) {
        let limits = tideline_danmaku::top::LIMITS.map(|limit| limit.to_string()).join(", ");
        return Err(bad("danmaku.limit", format!("must be 0 or one of {limits}")));
    }
    Ok(tideline_danmaku::Options {
        limit_scope: match config.limit_scope {
            config::LimitScope::Video => tideline_danmaku::top::Scope::Video,
            config::LimitScope::Segment => tideline_danmaku::top::Scope::Segment,
        },
        limit,
        segment_stretches: segment_stretches(config.segment_minutes)?,
        recall_within: Duration::from_secs(config.recall_seconds.into()),
        report_threshold: config.report_threshold,
        sender_per_day: config.sender_per_day,
        look_first: !config.hook.url.is_empty(),
        hot_budget_bytes: usize::try_from(config.hot_budget_bytes).unwrap_or(usize::MAX),
        flush_after: Duration::from_millis(config.flush_after_ms),
        ..tideline_danmaku::Options::default()
    })
}

fn segment_stretches(minutes: u32) -> Result<u16, ConfigError> {
    const STRETCH_MINUTES: u32 = tideline_danmaku::STRETCH_MS / 60_000;
    if !(STRETCH_MINUTES..=60).contains(&minutes) || !minutes.is_multiple_of(STRETCH_MINUTES) {
        let why = format!("must be a multiple of {STRETCH_MINUTES}, at most 60");
        return Err(bad("danmaku.segment_minutes", why));
    }
    Ok((minutes / STRETCH_MINUTES) as u16)
}

fn kinds(config: &config::History) -> Result<Vec<Kind>, ConfigError> {
    if config.kinds.len() > KINDS_MAX {
        return Err(bad("history.kinds", format!("at most {KINDS_MAX} kinds")));
    }
    let rewarded = &config.daily_first.kinds;
    if let Some(unknown) = rewarded.iter().find(|name| !config.kinds.contains_key(*name)) {
        return Err(bad("history.daily_first.kinds", format!("{unknown:?} is no declared kind")));
    }
    let kind = |(name, kind): (&String, &config::Kind)| {
        if name.is_empty() || name.len() > KIND_BYTES_MAX {
            let why = format!("a kind's name must be 1 to {KIND_BYTES_MAX} bytes");
            return Err(bad(&format!("history.kinds.{name}"), why));
        }
        Ok(Kind {
            name: name.as_str().into(),
            declared: kind.declared,
            retention_days: kind.retention_days,
            max_records: kind.max_records,
            max_per_day: kind.max_per_day,
            daily_first: rewarded.contains(name),
        })
    };
    config.kinds.iter().map(kind).collect()
}

fn server(
    config: &config::Server,
    catalogue: &config::Catalogue,
) -> Result<ServerOptions, ConfigError> {
    Ok(ServerOptions {
        http: address("server.http", &config.http)?,
        grpc: address("server.grpc", &config.grpc)?,
        cors_origins: config.cors_origins.clone(),
        body_bytes_max: config.body_bytes_max,
        requests_max: config.requests_max,
        connections_max: config.connections_max,
        deadline_ms: config.deadline_ms,
        head_ms: config.head_ms,
        stop_ms: config.stop_ms,
        enrich_ms: catalogue.enrich_ms,
    })
}

fn catalogue(config: &config::Catalogue) -> Result<tideline_catalogue::Options, ConfigError> {
    let source = |(kind, source): (&String, &config::Source)| {
        let key = |name: &str| format!("catalogue.sources.{kind}.{name}");
        if !(1..=1000).contains(&source.batch_max) {
            return Err(bad(&key("batch_max"), "must be 1 to 1000"));
        }
        let token = token(&source.token_file, &key("token_file"))?;
        let options = SourceOptions {
            token,
            batch_max: source.batch_max,
            in_flight_max: source.in_flight_max,
            timeout: Duration::from_millis(source.timeout_ms),
            ttl: Duration::from_secs(source.ttl_seconds),
            negative_ttl: Duration::from_secs(source.negative_ttl_seconds),
            ..SourceOptions::at(source.url.as_str())
        };
        Ok((kind.clone(), options))
    };
    let sources = config.sources.iter().map(source).collect::<Result<_, _>>()?;
    Ok(tideline_catalogue::Options { cache_bytes: config.cache_bytes, sources })
}

/// What a file holds that a setting names; none is no token.
fn token(file: &Path, key: &str) -> Result<Option<String>, ConfigError> {
    if file.as_os_str().is_empty() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(file).map_err(|e| bad(key, e.to_string()))?;
    Ok(Some(text.trim().to_owned()))
}

fn hook(config: &config::Hook) -> Result<Option<HookOptions>, ConfigError> {
    if config.url.is_empty() {
        return Ok(None);
    }
    let positive = [
        ("deadline_ms", config.deadline_ms),
        ("batch_max", config.batch_max as u64),
        ("in_flight_max", config.in_flight_max as u64),
        ("waiting_max", config.waiting_max as u64),
    ];
    if let Some((name, _)) = positive.iter().find(|(_, value)| !(1..=1_000_000).contains(value)) {
        return Err(bad(&format!("danmaku.hook.{name}"), "must be 1 to 1000000"));
    }
    Ok(Some(HookOptions {
        url: config.url.clone(),
        token: token(&config.token_file, "danmaku.hook.token_file")?,
        deadline: Duration::from_millis(config.deadline_ms),
        batch_max: config.batch_max,
        in_flight_max: config.in_flight_max,
        waiting_max: config.waiting_max,
        on_failure: match config.on_failure {
            config::OnFailure::Hold => OnFailure::Hold,
            config::OnFailure::Pass => OnFailure::Pass,
        },
        ..HookOptions::default()
    }))
}

fn auth(config: &config::Auth) -> Result<AuthOptions, ConfigError> {
    let set = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let jwt = &config.jwt;
    let algorithm = match &*jwt.algorithm {
        "HS256" => JwtAlgorithm::HS256,
        "RS256" => JwtAlgorithm::RS256,
        "EdDSA" => JwtAlgorithm::EdDSA,
        _ => return Err(bad("auth.jwt.algorithm", "must be HS256, RS256 or EdDSA")),
    };
    Ok(AuthOptions {
        mode: match config.mode {
            config::AuthMode::Auto => AuthMode::Auto,
            config::AuthMode::None => AuthMode::None,
            config::AuthMode::Token => AuthMode::Token,
            config::AuthMode::Jwt => AuthMode::Jwt,
        },
        jwt: JwtOptions {
            algorithm,
            key_file: Some(jwt.key_file.clone()).filter(|path| !path.as_os_str().is_empty()),
            jwks_url: set(&jwt.jwks_url),
            issuer: set(&jwt.issuer),
            audience: set(&jwt.audience),
            roles_claim: jwt.roles_claim.clone(),
            service_role: jwt.service_role.clone(),
            moderator_role: jwt.moderator_role.clone(),
            admin_role: jwt.admin_role.clone(),
            leeway_seconds: jwt.leeway_seconds,
            jwks_pause_ms: jwt.jwks_pause_ms,
        },
    })
}

fn limits(config: &config::Limits) -> LimitOptions {
    let methods = config.methods.iter().map(|(name, rate)| {
        let rate = RateOptions {
            user_per_second: rate.user_per_second,
            caller_per_second: rate.caller_per_second,
            method_per_second: rate.method_per_second,
        };
        (name.clone(), rate)
    });
    LimitOptions {
        user_writes_per_second: config.user_writes_per_second,
        user_reads_per_second: config.user_reads_per_second,
        caller_requests_per_second: config.caller_requests_per_second,
        method_requests_per_second: config.method_requests_per_second,
        burst_seconds: config.burst_seconds,
        methods: methods.collect(),
        buckets_max: config.buckets_max,
    }
}

fn address(key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| bad(key, format!("{text:?} is no address (such as 127.0.0.1:7766)")))
}

fn bad(key: &str, why: impl Into<String>) -> ConfigError {
    ConfigError::BadValue { key: key.into(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load, parse};

    #[test]
    fn the_default_text_says_the_defaults_of_every_part() {
        let options = Options::of(&load(&Sources::default()).unwrap()).unwrap();
        let history = tideline_history::Options::default();
        assert_eq!(options.history.hot_budget_bytes, history.hot_budget_bytes);
        assert_eq!(options.history.flush_after, history.flush_after);
        assert_eq!(options.history.fast_window, history.fast_window);
        assert_eq!(options.history.erase_within, history.erase_within);
        let danmaku = tideline_danmaku::Options::default();
        assert_eq!(options.danmaku.limit_scope, danmaku.limit_scope);
        assert_eq!(options.danmaku.limit, danmaku.limit);
        assert_eq!(options.danmaku.recall_within, danmaku.recall_within);
        assert_eq!(options.danmaku.report_threshold, danmaku.report_threshold);
        assert_eq!(options.danmaku.hot_budget_bytes, danmaku.hot_budget_bytes);
        assert_eq!(options.danmaku.flush_after, danmaku.flush_after);
        assert_eq!(options.gateway.danmaku, CommentOptions::default());
        let catalogue = tideline_catalogue::Options::default();
        assert_eq!(options.catalogue.cache_bytes, catalogue.cache_bytes);
        let queue = tideline_queue::Options::default();
        assert_eq!(options.queue.partitions_default, queue.partitions_default);
        assert_eq!(options.queue.retention_default, queue.retention_default);
        assert_eq!(options.gateway.server, ServerOptions::default());
        assert_eq!(options.gateway.auth, AuthOptions::default());
        assert_eq!(options.gateway.limits, LimitOptions::default());
    }

    #[test]
    fn values_that_no_type_can_refuse_are_refused_by_name() {
        let told = |text: &str| {
            let config = parse(text, "t.toml").unwrap();
            Options::of(&config).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(told("[history]\ntimezone = \"Mars/Olympus\"").starts_with("`history.timezone`"));
        assert!(told("[queue]\npartitions = 0").starts_with("`queue.partitions`"));
        assert!(told("[server]\nhttp = \"here\"").starts_with("`server.http`"));
        assert!(told("[auth.jwt]\nalgorithm = \"none\"").starts_with("`auth.jwt.algorithm`"));
        assert!(told("[history.daily_first]\nkinds = [\"song\"]").contains("\"song\""));
        assert_eq!(told("[history.kinds.song]\nmax_records = 5"), "");
    }
}
