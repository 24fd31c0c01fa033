//! `tideline token`: tokens of a running server, or of a stopped one's folder.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use tideline_store::{Clock, RealClock};
use tideline_types::DAY_MS;

use crate::cli::{Failure, TokenArgs, TokenCommand};
use crate::client::{Client, segment};

#[derive(Debug, Serialize, Deserialize)]
struct Token {
    id: String,
    scopes: Vec<String>,
    #[serde(default)]
    note: String,
    made_ms: i64,
    until_ms: Option<i64>,
    /// Only in the answer to the call that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

#[derive(Deserialize)]
struct TokenList {
    tokens: Vec<Token>,
}

#[derive(Serialize)]
struct Wish {
    scopes: Vec<String>,
    note: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ms: Option<i64>,
}

/// Does what `args` say, through the server or straight in the folder.
pub(crate) async fn run(args: TokenArgs) -> Result<(), Failure> {
    let place = Place::Server(Client::new(&args.server)?);
    match args.command {
        TokenCommand::Create { mut scopes, user, note, days, json } => {
            scopes.extend(user.map(|user| format!("user:{user}")));
            let until_ms = days.map(|days| RealClock::new().now().0 + i64::from(days) * DAY_MS);
            let made = place.make(Wish { scopes, note, until_ms }).await?;
            if json {
                print_json(&made)?;
            } else {
                println!("{}", made.token.unwrap_or_default());
                eprintln!("id {}; shown this once, only its hash is kept", made.id);
            }
        }
        TokenCommand::Ls { json } => {
            let tokens = place.list().await?;
            if json {
                return print_json(&tokens);
            }
            println!("{:<14} {:<26} {:<22} NOTE", "ID", "SCOPES", "UNTIL");
            for token in tokens {
                let until = token.until_ms.map_or("for ever".into(), when);
                println!(
                    "{:<14} {:<26} {until:<22} {}",
                    token.id,
                    token.scopes.join(","),
                    token.note
                );
            }
        }
        TokenCommand::Revoke { id } => place.revoke(&id).await?,
    }
    Ok(())
}

enum Place {
    Server(Client),
}

impl Place {
    async fn make(&self, wish: Wish) -> Result<Token, Failure> {
        let Self::Server(client) = self;
        Ok(client.json(client.request(Method::POST, "/v1/tokens").json(&wish)).await?)
    }

    async fn list(&self) -> Result<Vec<Token>, Failure> {
        let Self::Server(client) = self;
        let list: TokenList = client.json(client.request(Method::GET, "/v1/tokens")).await?;
        Ok(list.tokens)
    }

    async fn revoke(&self, id: &str) -> Result<(), Failure> {
        let Self::Server(client) = self;
        let path = format!("/v1/tokens/{}", segment(id));
        client.send(client.request(Method::DELETE, &path)).await?;
        Ok(())
    }
}

fn when(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |at| at.to_string())
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::failed("JSON", e))?;
    println!("{text}");
    Ok(())
}
