//! What the operator was told, so that it is not told again and can be taken back.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::id::NoticeTag;
use crate::limits::NOTICES_REMEMBERED_MAX;

/// The oldest first. It outlives a restart: whoever keeps it writes it down before a notice goes
/// out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Remembered(VecDeque<Told>);

/// One matter that was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub matter: NoticeTag,
    /// The notice that still stands on devices: its own, or a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<NoticeTag>,
}

impl Remembered {
    pub fn of(&self, matter: &NoticeTag) -> Option<&Told> {
        self.0.iter().find(|told| told.matter == *matter)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Told> {
        self.0.iter()
    }

    pub(super) fn tell(&mut self, matter: NoticeTag, notice: NoticeTag) {
        self.0.push_back(Told { matter, notice: Some(notice) });
        while self.0.len() > NOTICES_REMEMBERED_MAX {
            let withdrawn = self.0.iter().position(|told| told.notice.is_none());
            self.0.remove(withdrawn.unwrap_or(0));
        }
    }

    /// The matter has closed. The notice that stood for it, if it stands for nothing else.
    pub(super) fn close(&mut self, matter: &NoticeTag) -> Option<NoticeTag> {
        let told = self.0.iter_mut().find(|told| told.matter == *matter)?;
        let notice = told.notice.take()?;
        let stands = self.0.iter().any(|told| told.notice.as_ref() == Some(&notice));
        (!stands).then_some(notice)
    }

    /// Matters whose notice stands.
    pub(super) fn standing(&self) -> impl Iterator<Item = &NoticeTag> {
        self.0.iter().filter(|told| told.notice.is_some()).map(|told| &told.matter)
    }
}
