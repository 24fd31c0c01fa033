//! `tideline config`: the settings in force, and the layers behind them.

use crate::cli::{ConfigArgs, ConfigCommand, Failure, LayerArgs};
use crate::config::{self, Config, ConfigError, DEFAULT_TEXT, Sources};

/// `tideline config print` and `default`.
pub(crate) fn run(args: &ConfigArgs) -> Result<(), Failure> {
    match &args.command {
        ConfigCommand::Default => print!("{DEFAULT_TEXT}"),
        ConfigCommand::Print { layers, json } => {
            let config = load(layers, &[])?;
            let text = if *json {
                serde_json::to_string_pretty(&config).map_err(|e| Failure::failed("config", e))?
            } else {
                toml::to_string(&config).map_err(|e| Failure::failed("config", e))?
            };
            println!("{}", text.trim_end());
        }
    }
    Ok(())
}

/// The defaults, the file, this process's environment, `--set`, then `flags`
/// as (key, value, flag). What is wrong with them is bad usage.
pub(crate) fn load(layers: &LayerArgs, flags: &[(&str, String, &str)]) -> Result<Config, Failure> {
    let mut over = Vec::new();
    for set in &layers.set {
        let (key, value) = set
            .split_once('=')
            .ok_or_else(|| Failure::Usage(format!("--set {set}: must be KEY=VALUE")))?;
        over.push((key.trim().to_owned(), value.trim().to_owned(), format!("--set {key}")));
    }
    for (key, value, flag) in flags {
        over.push(((*key).to_owned(), value.clone(), (*flag).to_owned()));
    }
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let sources = Sources { file: layers.config.clone(), env, flags: over };
    config::load(&sources).map_err(|error: ConfigError| Failure::Usage(error.to_string()))
}
