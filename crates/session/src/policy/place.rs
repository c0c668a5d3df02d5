//! Where a path leads, by its letters alone: no disk is asked. Where links lead it, the request
//! says beside it.

use crate::pattern::Glob;

/// An absolute path without `.` and `..`; none if it is not known where it begins.
pub fn resolved(path: &str, folder: Option<&str>) -> Option<String> {
    if path.is_empty() || path.starts_with('~') || path.chars().any(char::is_control) {
        return None;
    }
    let begin = if path.starts_with('/') { "" } else { folder? };
    let mut parts: Vec<&str> = Vec::new();
    for part in begin.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

/// The folder a session works in, if it is one to be trusted as a whole: neither the root nor one
/// that the home lies in, nor the home.
pub fn workspace(cwd: &str, home: &str) -> Option<String> {
    let folder = resolved(cwd, None).filter(|folder| folder != "/")?;
    let home = resolved(home, None);
    (!home.is_some_and(|home| lies_in(&home, &folder))).then_some(folder)
}

pub fn lies_in(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path lies in one of these places, or one of them in it: who searches a folder reads
/// what is below. A pattern is as wide as the folder before its first sign.
pub fn meets(path: &str, places: &[String]) -> bool {
    let plain = path.split('/').take_while(|part| !part.contains(['*', '?', '[', '{']));
    let path = plain.collect::<Vec<_>>().join("/").to_lowercase();
    let meets = |place: &String| {
        let place = place.to_lowercase();
        lies_in(&path, &place) || lies_in(&place, &path)
    };
    places.iter().any(meets)
}

/// Files that decide what runs by itself, or what agents may do. Writing them is more than an edit.
pub fn is_protected(path: &str) -> bool {
    const FOLDERS: [&str; 12] = [
        ".claude",
        ".codex",
        ".devcontainer",
        ".gemini",
        ".git",
        ".github",
        ".husky",
        ".idea",
        ".kilocode",
        ".opencode",
        ".quarterdeck",
        ".vscode",
    ];
    const FILES: [&str; 6] =
        [".envrc", ".gitmodules", ".mcp.json", ".npmrc", "opencode.json", "opencode.jsonc"];
    let is_any = |part: &str| {
        let part = part.to_ascii_lowercase();
        FOLDERS.contains(&part.as_str()) || FILES.contains(&part.as_str())
    };
    path.split('/').any(is_any)
}

/// A path of an operator's rule: from the root, the home, anywhere (`**/`), or the workspace.
#[derive(Debug, Clone)]
pub enum PathPattern {
    Absolute(Glob),
    InWorkspace(Glob),
}

impl PathPattern {
    pub fn new(path: &str, home: &str) -> Result<Self, String> {
        if path.is_empty() {
            return Err("a path is empty".to_owned());
        }
        if path.split('/').any(|part| part == "..") {
            return Err(format!("`{path}` has a `..`"));
        }
        match path.starts_with(['/', '~']) || path.starts_with("**") {
            true => Glob::new(path, home).map(Self::Absolute),
            false => {
                let path = path.strip_prefix("./").unwrap_or(path);
                Glob::new(&format!("/{path}"), home).map(Self::InWorkspace)
            }
        }
    }

    pub fn has(&self, path: &str, workspace: Option<&str>) -> bool {
        match self {
            Self::Absolute(glob) => glob.has(path),
            Self::InWorkspace(glob) => {
                let inside = workspace.filter(|folder| lies_in(path, folder));
                inside.is_some_and(|folder| glob.has(&path[folder.len()..]))
            }
        }
    }
}
