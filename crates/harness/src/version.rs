//! Versions of clients, beside those that this release was tried with.
//!
//! Every product's folder has its own [`Tested`]: the recordings of `captured/` and the clients
//! that the live tests run are of these versions.

/// The oldest and the newest of each line of versions that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tested(pub &'static [(&'static str, &'static str)]);

/// How a version stands to those that were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Tested,
    Newer,
    Older,
    /// Its makers changed what others rely on, and nobody has looked yet.
    OtherMajor,
}

impl Tested {
    /// `None` for a version that cannot be read, and where nothing was tried.
    pub fn standing(self, version: &str) -> Option<Standing> {
        let version = parsed(version)?;
        let same_major = self.parsed().find(|(oldest, _)| oldest[0] == version[0]);
        Some(match same_major {
            Some((oldest, _)) if version < oldest => Standing::Older,
            Some((_, newest)) if version > newest => Standing::Newer,
            Some(_) => Standing::Tested,
            None if self.0.is_empty() => return None,
            None => Standing::OtherMajor,
        })
    }

    /// A few words beside the version, for a person.
    pub fn note(self, version: &str) -> Option<String> {
        let newest = self.parsed().map(|(_, newest)| newest).max();
        let is_newer = parsed(version) > newest;
        let how = match self.standing(version)? {
            Standing::Tested => return Some("tested".to_owned()),
            Standing::Newer => "newer than tested",
            Standing::OtherMajor if is_newer => "newer than tested",
            Standing::Older | Standing::OtherMajor => "older than tested",
        };
        Some(format!("{how} ({})", self.spelled()))
    }

    /// Why an agent of this version is not driven, and what to do; `None` where it is.
    pub fn refusal(self, product: &str, version: &str) -> Option<String> {
        if self.standing(version)? != Standing::OtherMajor {
            return None;
        }
        let newest = self.0.last().map_or("", |(_, newest)| newest);
        Some(format!(
            "{product} {version} can't be driven: Quarterdeck was tested with {}. Install {product} \
             {newest} and name its program in config.toml, or update Quarterdeck. Started in a \
             terminal, it is on the board all the same.",
            self.spelled()
        ))
    }

    /// `2.1.325 to 2.1.326`, for each line of versions.
    pub fn spelled(self) -> String {
        let range = |(oldest, newest): &(&str, &str)| match oldest == newest {
            true => (*newest).to_owned(),
            false => format!("{oldest} to {newest}"),
        };
        self.0.iter().map(range).collect::<Vec<_>>().join(", ")
    }

    fn parsed(self) -> impl Iterator<Item = ([u64; 3], [u64; 3])> {
        let both = |(oldest, newest): &(&str, &str)| Some((parsed(oldest)?, parsed(newest)?));
        self.0.iter().filter_map(both)
    }
}

/// The numbers of `2.1.326`, `v1.2`, `0.170.0-alpha.3`.
fn parsed(version: &str) -> Option<[u64; 3]> {
    let version = version.trim().trim_start_matches('v');
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let mut numbers = [0; 3];
    for (number, part) in numbers.iter_mut().zip(version[..end].split('.')) {
        *number = part.parse().ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTED: Tested = Tested(&[("0.26.1", "0.26.1"), ("2.1.325", "2.1.326")]);

    fn check(version: &str, standing: Option<Standing>, note: Option<&str>) {
        let shown = (TESTED.standing(version), TESTED.note(version));
        assert_eq!(shown, (standing, note.map(str::to_owned)), "{version}");
    }

    #[test]
    fn a_version_is_told_beside_those_that_were_tried() {
        const NEWER: Option<&str> = Some("newer than tested (0.26.1, 2.1.325 to 2.1.326)");
        const OLDER: Option<&str> = Some("older than tested (0.26.1, 2.1.325 to 2.1.326)");
        check("2.1.325", Some(Standing::Tested), Some("tested"));
        check("v0.26.1", Some(Standing::Tested), Some("tested"));
        check("2.1.330", Some(Standing::Newer), NEWER);
        check("2.2.0-beta.1", Some(Standing::Newer), NEWER);
        check("2.1.9", Some(Standing::Older), OLDER);
        check("1.9.9", Some(Standing::OtherMajor), OLDER);
        check("3.0", Some(Standing::OtherMajor), NEWER);
        check("nightly", None, None);
        assert_eq!(Tested(&[]).note("1.0.0"), None);
    }

    #[test]
    fn another_major_version_is_not_driven() {
        let why = TESTED.refusal("Claude Code", "3.0.0").expect("a refusal");
        assert!(why.starts_with("Claude Code 3.0.0 can't be driven: Quarterdeck was tested with"));
        assert!(why.contains("Install Claude Code 2.1.326"), "{why}");
        for driven in ["2.1.325", "2.9.0", "2.0.0", "unknown"] {
            assert_eq!(TESTED.refusal("Claude Code", driven), None, "{driven}");
        }
    }
}
