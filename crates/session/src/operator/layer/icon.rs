//! The icons that a layer may ask for. A reader draws them as it can; one that it does not know
//! falls back to the sub-state's.

use serde::{Deserialize, Serialize};

macro_rules! icons {
    ($($name:ident = $text:literal),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Icon {
            $(#[serde(rename = $text)] $name),*
        }

        impl Icon {
            /// Every icon, as it is documented.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text),*
                }
            }

            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|icon| icon.name() == name)
            }
        }
    };
}

icons! {
    Branch = "branch",
    Bug = "bug",
    Build = "build",
    Chat = "chat",
    Clock = "clock",
    Commit = "commit",
    Data = "data",
    Deploy = "deploy",
    Design = "design",
    Docs = "docs",
    Draft = "draft",
    Feedback = "feedback",
    Flag = "flag",
    PullRequest = "pull_request",
    Push = "push",
    Research = "research",
    Review = "review",
    Revision = "revision",
    Star = "star",
    Tests = "tests",
    TestsFailed = "tests_failed",
    TestsPassed = "tests_passed",
}
