//! Reads what the files around folders forbid, and where links lead what is named there, beside
//! the loop.

use std::collections::VecDeque;
use std::future::pending;
use std::path::{Path, PathBuf};

use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use qd_broker::survey::{Followed, Survey, Surveyed};
use qd_host::links;
use qd_host::policy_file::{SURVEY_WAIT, tightening};

/// Folders that are looked at at once, and how long a look may take. A network that hangs must not
/// keep the others waiting; what is not known in time is asked.
const SURVEYS_MAX: usize = 4;

/// A few at a time; the others wait in line.
#[derive(Debug)]
pub struct Repositories {
    home: PathBuf,
    line: VecDeque<Survey>,
    under_way: JoinSet<Surveyed>,
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
