//! Reads what the files around folders forbid, and where links lead what is named there, beside
//! the loop.

use std::collections::VecDeque;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qd_session::id::RequestKey;
use qd_session::policy::Tightening;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use tracing::warn;

use super::links;
use crate::limits::{SURVEY_WAIT, SURVEYS_MAX};
use crate::policy_file::RepositoryPolicy;

/// A few at a time; the others wait in line.
#[derive(Debug)]
pub struct Repositories {
    home: PathBuf,
    line: VecDeque<Survey>,
    under_way: JoinSet<Surveyed>,
}

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    pub folder: Arc<str>,
    /// The request that is judged then, and the files that it names; none where only the folder
    /// is to be known.
    pub request: Option<(RequestKey, Vec<String>)>,
}

/// What the files around a folder say.
#[derive(Debug)]
pub struct Surveyed {
    pub folder: Arc<str>,
    pub tightening: Tightening,
    /// Of the request that is judged now.
    pub followed: Option<Followed>,
}

/// Where links lead the files that a request names.
#[derive(Debug)]
pub struct Followed {
    pub request: RequestKey,
    pub named: Vec<String>,
    pub led_to: Vec<Option<String>>,
}

impl Repositories {
    pub fn of(home: &Path) -> Self {
        Self { home: home.to_owned(), line: VecDeque::new(), under_way: JoinSet::new() }
    }

    pub fn read(&mut self, survey: Survey) {
        self.line.push_back(survey);
        self.begin();
    }

    /// The next one that was read; never, while none is. May be dropped and asked again.
    pub async fn next(&mut self) -> Surveyed {
        loop {
            match self.under_way.join_next().await {
                Some(Ok(surveyed)) => {
                    self.begin();
                    return surveyed;
                }
                // It is cancelled with the runtime only.
                Some(Err(_)) => self.begin(),
                None => return pending().await,
            }
        }
    }

    fn begin(&mut self) {
        while self.under_way.len() < SURVEYS_MAX {
            let Some(survey) = self.line.pop_front() else { break };
            self.under_way.spawn(surveyed(survey, self.home.clone()));
        }
    }
}

async fn surveyed(survey: Survey, home: PathBuf) -> Surveyed {
    let Survey { folder, request } = survey;
    let tightening = tightening(folder.clone(), home.clone()).await;
    let Some((request, named)) = request else {
        return Surveyed { folder, tightening, followed: None };
    };
    let (cwd, paths) = (folder.clone(), named.clone());
    let following = spawn_blocking(move || links::led_to(&paths, Some(&cwd), &home));
    let led_to = match timeout(SURVEY_WAIT, following).await {
        Ok(Ok(led_to)) => led_to,
        Ok(Err(_)) | Err(_) => vec![None],
    };
    Surveyed { folder, tightening, followed: Some(Followed { request, named, led_to }) }
}

/// What the files around a folder forbid. What is not known in time may be anything.
pub async fn tightening(folder: Arc<str>, home: PathBuf) -> Tightening {
    let reading = spawn_blocking(move || RepositoryPolicy::read(Path::new(&*folder), &home));
    match timeout(SURVEY_WAIT, reading).await {
        Ok(Ok(RepositoryPolicy { tightening, troubles })) => {
            for trouble in troubles {
                warn!(place = trouble.place, what = trouble.what, "a repository's policy");
            }
            tightening
        }
        Ok(Err(_)) | Err(_) => Tightening::unreadable(),
    }
}
