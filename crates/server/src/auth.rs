//! Tokens and what they allow.
//!
//! One token for each scope, in a file of its own that only this user can read. A token of a
//! wider scope may do what a narrower one may.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use qd_host::bounded_file::{Links, read_regular_text};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Error;
use crate::limits::TOKEN_FILE_BYTES_MAX;

/// What somebody may do. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Report what an agent does. A hook's token can never approve.
    Ingest,
    /// See the board.
    Observe,
    /// Answer, prompt, stop.
    Operate,
    /// Change settings and hand out tokens.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 4] = [Self::Ingest, Self::Observe, Self::Operate, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Observe => "observe",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// The tokens of this machine.
#[derive(Clone)]
pub struct Tokens {
    folder: PathBuf,
    tokens: [String; 4],
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Reads the tokens, and makes those that are missing.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Tokens { path: folder.to_owned(), source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let mut tokens = <[String; 4]>::default();
        for (scope, token) in Scope::ALL.into_iter().zip(&mut tokens) {
            *token = read_or_make(&folder.join(scope.name()))?;
        }
        Ok(Self { folder: folder.to_owned(), tokens })
    }

    /// Where they are kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn token(&self, scope: Scope) -> &str {
        &self.tokens[scope as usize]
    }

    /// Where the token of a scope is kept, for those who read it from a file.
    pub fn path(&self, scope: Scope) -> PathBuf {
        self.folder.join(scope.name())
    }

    /// What a token allows. Takes as long for a wrong one as for a right one.
    pub fn scope_of(&self, token: &str) -> Option<Scope> {
        let mut found = None;
        for scope in Scope::ALL {
            if same(self.token(scope), token) {
                found = Some(scope);
            }
        }
        found
    }
}

fn read_or_make(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::Tokens { path: path.to_owned(), source };
    match read_regular_text(path, TOKEN_FILE_BYTES_MAX, Links::Followed) {
        Ok(text) if is_token(text.trim()) => return Ok(text.trim().to_owned()),
        // A half-written one opens nothing: a new one is made.
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let token = random_hex::<32>().map_err(failed)?;
    // Written beside it and moved: nobody reads half a token.
    let fresh = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(&fresh).map_err(failed)?;
    file.write_all(token.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&fresh, path).map_err(failed)?;
    Ok(token)
}

fn is_token(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// As many random bytes, spelled.
pub fn random_hex<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares every byte, however early they differ.
pub fn same(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn tokens_are_made_once_private_and_told_apart() {
        let folder = std::env::temp_dir().join(format!("qd-tokens-{}", std::process::id()));
        let tokens = Tokens::open(&folder).expect("made");
        let again = Tokens::open(&folder).expect("read");
        for scope in Scope::ALL {
            assert_eq!(tokens.token(scope), again.token(scope));
            assert_eq!(tokens.scope_of(tokens.token(scope)), Some(scope));
            let rights = fs::metadata(tokens.path(scope)).expect("there").permissions().mode();
            assert_eq!(rights & 0o777, 0o600);
            assert_eq!(Scope::named(scope.name()), Some(scope));
        }
        for wrong in ["", "x", &tokens.token(Scope::Admin)[..63], &"0".repeat(64)] {
            assert_eq!(tokens.scope_of(wrong), None);
        }
        fs::write(tokens.path(Scope::Admin), "cut o").expect("damaged");
        let mended = Tokens::open(&folder).expect("mended");
        assert_ne!(mended.token(Scope::Admin), tokens.token(Scope::Admin));
        fs::remove_dir_all(folder).expect("cleaned");
    }
}
