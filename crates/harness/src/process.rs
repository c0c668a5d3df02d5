//! What a process watcher saw, whichever agent it watched.

use serde::Deserialize;
use serde_json::Value;

/// Everything may be missing: a watcher knows a process, not always whose session it held.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProcessReport {
    pub session_id: Option<String>,
    pub pid: Option<u64>,
    /// Tells two processes with one number apart: text or a number.
    pub proc_start: Option<Value>,
    exited: Option<bool>,
    #[serde(alias = "exit_code", alias = "code")]
    pub exit_code: Option<i32>,
}

impl ProcessReport {
    pub fn has_exited(&self) -> bool {
        self.exited == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload;

    #[test]
    fn an_exit_is_read_with_and_without_its_session() {
        let of = |json: &str| payload::read::<ProcessReport>(json.as_bytes()).expect("a report");
        assert!(of(r#"{"sessionId":"s","exited":true}"#).has_exited());
        assert!(!of(r#"{"sessionId":"s","exited":null,"exitCode":0}"#).has_exited());
        assert_eq!(of(r#"{"exited":true,"code":1}"#).exit_code, Some(1));
        assert_eq!(of(r#"{"exited":true,"exit_code":2}"#).exit_code, Some(2));
    }
}
