//! Endpoints of models: can each be asked, as far as one can tell without asking it?

use std::io::ErrorKind;

use qd_host::bounded_file::{Links, read_regular_text};
use qd_runners::model::Models;

use super::finding::Finding;
use crate::config::CONFIG_BYTES_MAX;
use crate::paths::Paths;

/// One finding for each endpoint; nothing is sent.
pub fn models(paths: &Paths) -> Vec<Finding> {
    const CHECK: &str = "models";
    let place = paths.config.display();
    let text = match read_regular_text(&paths.config, CONFIG_BYTES_MAX, Links::Followed) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return vec![Finding::bad(CHECK, format!("cannot read {place}: {error}"))],
    };
    let models = match Models::parsed(&text) {
        Ok(models) => models,
        Err(error) => {
            let finding = Finding::bad(CHECK, format!("{place}, {error}"));
            return vec![finding.advise("no model can be asked until then; see docs/models.md")];
        }
    };
    let variable = |name: &str| std::env::var(name).ok();
    let names = models.names(variable);
    if names.is_empty() {
        return vec![Finding::ok(CHECK, "none; docs/models.md says how to set one up")];
    }
    let finding = |name: &String| match models.endpoint(Some(name), None, variable) {
        Ok(endpoint) => {
            let reason = format!("{name}: {} at {}", endpoint.model, endpoint.url());
            Finding::ok(CHECK, reason)
        }
        Err(error) => Finding::warn(CHECK, format!("{name}: {error}")).advise("see docs/models.md"),
    };
    names.iter().map(finding).collect()
}
