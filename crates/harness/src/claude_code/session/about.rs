//! What is known of a session besides its state. Told again and again by every source, so each
//! thing is passed on once.

use std::sync::Arc;

use qd_session::monitor::{Fact, Place, Usage};

use super::super::notes::Notes;
use super::Session;
use crate::excerpt::head;

/// Longest title kept.
const TITLE_BYTES_MAX: usize = 200;

/// The last of each that was passed on.
#[derive(Debug, Default)]
pub(super) struct About {
    place: Place,
    mode: Option<Arc<str>>,
    title: Option<Arc<str>>,
    custom_title: Option<Arc<str>>,
}

impl Session {
    pub fn place_known(&mut self, notes: &mut Notes, place: Place) {
        if let Some(place) = self.about.place.learn(place) {
            notes.tell_main(Fact::PlaceKnown { place });
        }
    }

    pub fn knows_transcript(&self) -> bool {
        self.about.place.transcript.is_some()
    }

    pub fn mode_known(&mut self, notes: &mut Notes, mode: Option<&str>) {
        if let Some(mode) = mode.filter(|mode| self.about.mode.as_deref() != Some(mode)) {
            self.about.mode = Some(head(mode, 64).into());
            notes.tell_main(Fact::ModeChanged { mode: head(mode, 64).into() });
        }
    }

    pub fn title_known(&mut self, notes: &mut Notes, title: &str, custom: bool) {
        let title = head(title, TITLE_BYTES_MAX).into();
        let known = if custom { &mut self.about.custom_title } else { &mut self.about.title };
        if known.as_ref() != Some(&title) {
            *known = Some(title.clone());
            notes.tell_main(Fact::TitleKnown { title, custom });
        }
    }

    pub fn usage_known(&self, notes: &mut Notes, model: Option<&str>, tokens: Option<u64>) {
        if model.is_some() || tokens.is_some() {
            let usage = Usage {
                model: model.map(|model| head(model, 128).into()),
                context_tokens: tokens,
                context_window: None,
            };
            notes.tell_main(Fact::UsageReported { usage });
        }
    }
}
