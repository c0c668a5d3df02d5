//! What calls are judged on: what the repository forbids, and which tools may change something.

use std::sync::Arc;

use qd_broker::driving::Ground;
use qd_host::policy_file;
use qd_session::id::ToolName;

use super::LocalCrew;

pub(super) async fn survey(crew: &LocalCrew, workspace: Arc<str>, tools: Vec<ToolName>) -> Ground {
    let home = crew.settings().home.clone();
    let tightening = policy_file::tightening(workspace.clone(), home).await;
    // Nobody asks about the tools of an agent that runs its own.
    if tools.is_empty() {
        return Ground { tightening, mutating: Vec::new() };
    }
    let opened = crew.0.workshops.toolbox(&workspace).await;
    let may_change = |tool: &ToolName| match &opened {
        Ok(opened) => opened.toolbox.is_mutating(tool),
        Err(_) => true,
    };
    Ground { tightening, mutating: tools.into_iter().filter(may_change).collect() }
}
