//! Background work a session has started: it will wake the session when it is done.

use std::sync::Arc;

use serde_json::Value;

use super::wire::BackgroundTask;

/// Most tasks remembered. The client itself allows far fewer at once; the oldest go first.
const TASKS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct Background {
    tasks: Vec<Task>,
    /// Timers, and tasks of kinds the registry does not show as work.
    quiet: u32,
    /// A Stop has told the whole list, so that its absence means something.
    told: bool,
}

#[derive(Debug)]
struct Task {
    id: Arc<str>,
    is_agent: bool,
}

impl Background {
    /// The client's own list at the end of a turn.
    pub fn replace(&mut self, tasks: &[BackgroundTask], timers: usize) {
        let runs = |task: &&BackgroundTask| {
            matches!(task.status.as_deref(), None | Some("running" | "pending"))
        };
        let shown = |task: &BackgroundTask| {
            matches!(task.kind.as_deref(), None | Some("shell" | "subagent"))
        };
        self.tasks.clear();
        self.quiet = u32::try_from(timers).unwrap_or(u32::MAX);
        for task in tasks.iter().filter(runs) {
            match (&task.id, shown(task)) {
                (Some(id), true) => self.launch(id, task.kind.as_deref() == Some("subagent")),
                (Some(_), false) | (None, _) => self.quiet = self.quiet.saturating_add(1),
            }
        }
        self.told = true;
    }

    /// A tool's result says that it went on in the background.
    pub fn note_result(&mut self, result: &Value) {
        let text = |key: &str| result.get(key).and_then(Value::as_str);
        if let Some(task) = text("backgroundTaskId") {
            self.launched(task);
        }
        if let (Some("async_launched"), Some(agent)) = (text("status"), text("agentId")) {
            self.launch(agent, true);
        }
    }

    /// The client's message that wakes the session names the task that is done.
    pub fn note_notification(&mut self, prompt: &str) {
        if let Some((_, rest)) = prompt.split_once("<task-id>")
            && let Some((task, _)) = rest.split_once("</task-id>")
        {
            self.settled(task.trim());
        }
    }

    pub fn launched(&mut self, task: &str) {
        self.launch(task, false);
    }

    fn launch(&mut self, task: &str, is_agent: bool) {
        if let Some(known) = self.tasks.iter_mut().find(|known| *known.id == *task) {
            known.is_agent |= is_agent;
            return;
        }
        if self.tasks.len() == TASKS_MAX {
            self.tasks.remove(0);
        }
        self.tasks.push(Task { id: crate::excerpt::head(task, 128).into(), is_agent });
    }

    /// Nothing is left of what another process had launched.
    pub fn none_left(&mut self) {
        *self = Self { told: true, ..Self::default() };
    }

    pub fn settled(&mut self, task: &str) {
        self.tasks.retain(|known| *known.id != *task);
    }

    /// The subagent that was launched last, of those that work.
    pub fn last_agent(&self) -> Option<&Arc<str>> {
        self.tasks.iter().rev().find(|task| task.is_agent).map(|task| &task.id)
    }

    /// How many are left, where there are any.
    pub fn left(&self) -> Option<u32> {
        Some(self.count()).filter(|count| *count > 0)
    }

    pub fn count(&self) -> u32 {
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX).saturating_add(self.quiet)
    }

    /// The registry says that nothing it can see is at work.
    pub fn registry_idle(&mut self) -> Option<u32> {
        let had_any = !self.tasks.is_empty();
        self.tasks.clear();
        (self.told || had_any).then_some(self.quiet)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_counts_from_its_launch_to_its_notification() {
        let mut background = Background::default();
        background.note_result(&json!({"stdout": "", "backgroundTaskId": "b1"}));
        background.note_result(&json!({"status": "async_launched", "agentId": "a1"}));
        background.note_result(&json!({"status": "completed", "agentId": "a2"}));
        assert_eq!(background.left(), Some(2));
        background.note_notification("<task-notification>\n<task-id>b1</task-id>");
        background.note_notification("<task-notification>\n<summary>Stop hook</summary>");
        assert_eq!(background.left(), Some(1));
    }

    #[test]
    fn a_timer_outlives_an_idle_registry_and_a_shell_does_not() {
        let mut background = Background::default();
        let shell = BackgroundTask {
            id: Some("b1".into()),
            kind: Some("shell".into()),
            status: Some("running".into()),
        };
        background.replace(&[shell], 1);
        assert_eq!(background.count(), 2);
        assert_eq!(background.registry_idle(), Some(1));
    }
}
