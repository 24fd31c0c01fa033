//! `tideline token`: tokens of a running server, or of a stopped one's folder.

use std::path::Path;
use std::sync::Arc;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use tideline_gateway::{NewToken, TokenInfo, Tokens};
use tideline_store::local::{LsmOptions, LsmTable};
use tideline_store::{Clock, RealClock};
use tideline_types::{DAY_MS, Millis};

use crate::cli::{Failure, TokenArgs, TokenCommand};
use crate::client::{Client, segment};
use crate::folder::DataFolder;

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
    let place = match &args.data {
        Some(data) => Place::Folder(tokens_in(data)?),
        None => Place::Server(Client::new(&args.server)?),
    };
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
    Folder((DataFolder, Tokens)),
}

impl Place {
    async fn make(&self, wish: Wish) -> Result<Token, Failure> {
        match self {
            Self::Server(client) => {
                Ok(client.json(client.request(Method::POST, "/v1/tokens").json(&wish)).await?)
            }
            Self::Folder((_, tokens)) => {
                let Wish { scopes, note, until_ms } = wish;
                let new = NewToken { scopes, note, until_ms: until_ms.map(Millis) };
                let (text, info) =
                    tokens.make(new).map_err(|e| Failure::failed("token create", e))?;
                Ok(Token { token: Some(text), ..Token::from(info) })
            }
        }
    }

    async fn list(&self) -> Result<Vec<Token>, Failure> {
        match self {
            Self::Server(client) => {
                let list: TokenList =
                    client.json(client.request(Method::GET, "/v1/tokens")).await?;
                Ok(list.tokens)
            }
            Self::Folder((_, tokens)) => Ok(tokens.list().into_iter().map(Token::from).collect()),
        }
    }

    async fn revoke(&self, id: &str) -> Result<(), Failure> {
        match self {
            Self::Server(client) => {
                let path = format!("/v1/tokens/{}", segment(id));
                client.send(client.request(Method::DELETE, &path)).await?;
                Ok(())
            }
            Self::Folder((_, tokens)) => {
                let there = tokens.revoke(id).map_err(|e| Failure::failed("token revoke", e))?;
                if there { Ok(()) } else { Err(Failure::Failed(format!("no token {id}"))) }
            }
        }
    }
}

impl From<TokenInfo> for Token {
    fn from(info: TokenInfo) -> Self {
        Self {
            id: info.id.into(),
            scopes: info.scopes,
            note: info.note,
            made_ms: info.made_ms.0,
            until_ms: info.until_ms.map(|until| until.0),
            token: None,
        }
    }
}

fn tokens_in(data: &Path) -> Result<(DataFolder, Tokens), Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::failed(data.display(), e);
    let folder = DataFolder::open(data).map_err(|e| failed(&e))?;
    let table = LsmTable::open(&folder.tables(), &LsmOptions::default()).map_err(|e| failed(&e))?;
    let tokens =
        Tokens::open(Arc::new(table), Arc::new(RealClock::new())).map_err(|e| failed(&e))?;
    Ok((folder, tokens))
}

fn when(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |at| at.to_string())
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::failed("JSON", e))?;
    println!("{text}");
    Ok(())
}
