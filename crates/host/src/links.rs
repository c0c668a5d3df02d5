//! Where links lead the files that a request names. A repository may have a link to anywhere in it.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Links that a path is followed through, as the kernel does.
const LINKS_MAX: usize = 40;

/// The places that these paths lead to and do not spell; none for one of which nobody can say.
/// What lies in the workspace or in the home by its links is spelled as below them, because rules
/// are.
pub fn led_to(paths: &[String], cwd: Option<&str>, home: &Path) -> Vec<Option<String>> {
    let roots: Vec<(PathBuf, PathBuf)> = cwd
        .map(Path::new)
        .into_iter()
        .chain([home])
        .filter_map(|root| Some((followed(root)?, root.to_owned())))
        .collect();
    let spelled = |path: &String| {
        let real = followed(Path::new(path))?;
        let below = roots
            .iter()
            .find_map(|(real_root, root)| Some(root.join(real.strip_prefix(real_root).ok()?)));
        // Without the slash that joining nothing leaves behind.
        let place: PathBuf = below.unwrap_or(real).components().collect();
        Some(place.to_str()?.to_owned())
    };
    let led = paths.iter().map(|path| (path, spelled(path)));
    led.filter(|(path, place)| place.as_ref() != Some(path)).map(|(_, place)| place).collect()
}

/// The path without links. What is not there yet is where its folder is: a file that is to be
/// made, or what a link to nowhere would make.
pub fn followed(path: &Path) -> Option<PathBuf> {
    let mut rest: Vec<PathBuf> = vec![path.to_owned()];
    let mut found = PathBuf::from("/");
    let mut links = 0;
    while let Some(next) = rest.pop() {
        let mut parts = next.components();
        let Some(part) = parts.next() else { continue };
        rest.push(parts.as_path().to_owned());
        match part {
            Component::RootDir => found = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => {
                found.pop();
            }
            Component::Normal(name) => {
                found.push(name);
                match found.read_link() {
                    Ok(target) => {
                        links += 1;
                        if links > LINKS_MAX {
                            return None;
                        }
                        found.pop();
                        rest.push(target);
                    }
                    // No link, or nothing at all.
                    Err(error) if error.kind() == ErrorKind::InvalidInput => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) if error.kind() == ErrorKind::NotADirectory => {}
                    Err(_) => return None,
                }
            }
            Component::Prefix(_) => return None,
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_followed_through_links_and_stays_below_its_roots() {
        let folder = std::env::temp_dir().join(format!("qd-links-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("real/shop/src")).expect("a folder");
        fs::create_dir_all(folder.join("me/.ssh")).expect("a folder");
        symlink(folder.join("real/shop"), folder.join("shop")).expect("a link");
        symlink("../../me/.ssh", folder.join("real/shop/x")).expect("a link");
        symlink("src", folder.join("real/shop/s")).expect("a link");
        symlink("/nowhere/at/all", folder.join("real/shop/dangling")).expect("a link");
        symlink("round", folder.join("real/shop/round")).expect("a link");
        let (cwd, home) = (folder.join("shop"), folder.join("me"));
        let led = |path: &str| {
            let path = cwd.join(path).to_str().expect("text").to_owned();
            led_to(&[path], cwd.to_str(), &home)
        };
        let at = |path: &str| vec![Some(folder.join(path).to_str().expect("text").to_owned())];
        assert_eq!(led("src/main.rs"), [], "the workspace is a link itself");
        assert_eq!(led("made/by/it"), []);
        assert_eq!(led("x/id_rsa"), at("me/.ssh/id_rsa"));
        assert_eq!(led("s/main.rs"), at("shop/src/main.rs"));
        assert_eq!(led("dangling/new"), [Some("/nowhere/at/all/new".to_owned())]);
        assert_eq!(led("round/x"), [None]);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
