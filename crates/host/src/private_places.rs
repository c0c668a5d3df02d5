//! Folders that no command of a driven session reaches, whatever its workspace: our own state,
//! settings and socket, and what agents keep their settings, hooks and logins in.
//!
//! Whoever reads ours has the admin's token; whoever writes ours, or an agent's, decides what runs
//! without asking. They are compared by what the disk says they are, not by their letters: a bind
//! mount gives one folder two names.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::links::followed;

/// Each as it is named, and where links lead it. They need not be there yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivatePlaces(Vec<PathBuf>);

/// The same, with what the disk says of them at one moment.
#[derive(Debug)]
pub struct KnownPlaces<'a>(Vec<KnownPlace<'a>>);

#[derive(Debug)]
struct KnownPlace<'a> {
    path: &'a Path,
    identity: Option<Identity>,
    /// The folders above it that are there.
    above: Vec<(&'a Path, Identity)>,
}

/// Device and inode: which folder a name leads to.
type Identity = (u64, u64);

/// Below the home, for agents that are started without variables of their own.
const IN_HOME: [&str; 10] = [
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".opencode",
    ".kilo",
    ".kilocode",
    ".cline",
    ".qwen",
    ".copilot",
];

/// Below the folders of the XDG specification.
const IN_XDG: [&str; 4] = ["opencode", "kilo", "cline", "claude"];

/// Variables that move an agent's folder, and what it is called there.
const MOVED: [(&str, &str); 7] = [
    ("CLAUDE_CONFIG_DIR", ""),
    ("CODEX_HOME", ""),
    ("GEMINI_CLI_HOME", ".gemini"),
    ("OPENCODE_CONFIG_DIR", ""),
    ("OPENCODE_CONFIG", ""),
    ("KILO_CONFIG_DIR", ""),
    ("CLINE_DIR", ""),
];

impl PrivatePlaces {
    /// Ours, and those of the agents that are started with this home and environment.
    pub fn new(
        ours: impl IntoIterator<Item = PathBuf>,
        home: &Path,
        environment: &BTreeMap<OsString, OsString>,
    ) -> Self {
        let named = |variable: &str| {
            let value = environment.get(OsStr::new(variable)).map(PathBuf::from);
            value.filter(|path| path.is_absolute())
        };
        let xdg = [
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_DATA_HOME", ".local/share"),
            ("XDG_STATE_HOME", ".local/state"),
        ];
        let xdg = xdg.map(|(name, usual)| named(name).unwrap_or_else(|| home.join(usual)));
        let moved = MOVED.iter().filter_map(|(variable, name)| Some(named(variable)?.join(name)));
        let mut places: Vec<PathBuf> = ours.into_iter().collect();
        places.extend(IN_HOME.map(|name| home.join(name)));
        places.extend(xdg.iter().flat_map(|folder| IN_XDG.map(|name| folder.join(name))));
        places.extend(moved);
        let led: Vec<PathBuf> = places.iter().filter_map(|place| followed(place)).collect();
        places.extend(led);
        // Without a slash that an empty name leaves behind.
        let mut places: Vec<PathBuf> =
            places.iter().map(|place| place.components().collect()).collect();
        // A variable that names the home, or more, would close everything.
        places.retain(|place| !home.starts_with(place));
        places.sort();
        places.dedup();
        Self(places)
    }

    pub fn paths(&self) -> &[PathBuf] {
        &self.0
    }

    /// As a policy compares them.
    pub fn spelled(&self) -> Vec<String> {
        self.0.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    /// Asks the disk once, for many questions.
    pub fn known(&self) -> KnownPlaces<'_> {
        KnownPlaces(self.0.iter().map(|path| KnownPlace::of(path)).collect())
    }

    pub fn below(&self, folder: &Path) -> Vec<PathBuf> {
        self.known().below(folder)
    }

    pub fn around(&self, folder: &Path) -> Option<&Path> {
        self.known().around(folder)
    }
}

impl<'a> KnownPlace<'a> {
    fn of(path: &'a Path) -> Self {
        let above = path.ancestors().skip(1);
        let above = above.filter_map(|above| Some((above, identity(above)?))).collect();
        Self { path, identity: identity(path), above }
    }
}

impl<'a> KnownPlaces<'a> {
    /// Those that lie below a folder, seen from it.
    pub fn below(&self, folder: &Path) -> Vec<PathBuf> {
        let Some(wanted) = identity(folder) else { return Vec::new() };
        let seen_from = |place: &KnownPlace<'_>| {
            let (above, _) = place.above.iter().find(|(_, identity)| *identity == wanted)?;
            place.path.strip_prefix(above).ok().map(Path::to_owned)
        };
        let mut below: Vec<PathBuf> = self.0.iter().filter_map(seen_from).collect();
        below.sort();
        below.dedup();
        below
    }

    /// The one that a folder is, or lies in.
    pub fn around(&self, folder: &Path) -> Option<&'a Path> {
        let way: Vec<Identity> = folder.ancestors().filter_map(identity).collect();
        let is_around =
            |place: &&KnownPlace<'_>| place.identity.is_some_and(|it| way.contains(&it));
        self.0.iter().find(is_around).map(|place| place.path)
    }
}

fn identity(path: &Path) -> Option<Identity> {
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn places_are_known_by_every_name_and_before_they_are_there() {
        let base = std::env::temp_dir().join(format!("qd-private-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        let home = base.join("home");
        fs::create_dir_all(home.join("dotfiles/config/quarterdeck")).expect("folders");
        fs::create_dir_all(home.join(".codex/sub")).expect("folders");
        symlink("dotfiles/config", home.join(".config")).expect("linked");
        symlink(&home, base.join("again")).expect("linked");
        let ours = home.join(".config/quarterdeck");
        let places = PrivatePlaces::new([ours], &home, &BTreeMap::new());
        let below = places.below(&base.join("again"));
        for name in [
            ".config/quarterdeck",
            "dotfiles/config/quarterdeck",
            ".claude",
            ".claude.json",
            ".local/share/opencode",
        ] {
            assert!(below.contains(&PathBuf::from(name)), "{name}: {below:?}");
        }
        assert_eq!(
            places.below(&home.join("dotfiles/config")),
            ["claude", "cline", "kilo", "opencode", "quarterdeck"].map(PathBuf::from)
        );
        assert_eq!(places.below(&home.join(".codex")), [] as [PathBuf; 0]);
        let codex = home.join(".codex");
        assert_eq!(places.around(&base.join("again/.codex/sub")), Some(codex.as_path()));
        assert_eq!(places.around(&home), None);
        fs::remove_dir_all(&base).expect("removed");
    }

    #[test]
    fn a_variable_that_names_the_home_closes_no_home() {
        let home = Path::new("/home/ann");
        let environment = |value: &str| BTreeMap::from([("CODEX_HOME".into(), value.into())]);
        let places = PrivatePlaces::new([], home, &environment("/home/ann"));
        assert!(!places.paths().contains(&home.to_owned()));
        assert!(!PrivatePlaces::new([], home, &environment("/")).paths().contains(&"/".into()));
    }
}
