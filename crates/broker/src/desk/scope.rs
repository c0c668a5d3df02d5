//! How far beyond this once a request can be allowed, by the way that its answer would take.

use qd_harness::{codex, opencode};
use qd_session::decision::{Decision, Scope};
use qd_session::monitor::RequestKind;

use super::{CODEX, HOOK, OPENCODE, Reach, Waits};

impl Waits {
    /// Those that the way can carry; an allowance for this once is always possible.
    pub(super) fn scopes(&self, reach: Reach) -> Vec<Scope> {
        if self.shown.kind != RequestKind::Permission {
            return Vec::new();
        }
        match self.way(reach) {
            Some(HOOK) => self.hook.as_ref().map(|(_, asked)| asked.scopes()).unwrap_or_default(),
            Some(CODEX) => codex::reply::scopes(self.tool(), self.ask.input.as_deref()).to_vec(),
            Some(OPENCODE) if !self.kept_by_server().is_empty() => vec![Scope::Always],
            // What we drive is ruled by presets and policy.toml, and a recording by nobody.
            Some(_) | None => Vec::new(),
        }
    }

    /// What "always" would keep, in words.
    pub(super) fn suggestions(&self, reach: Reach) -> Vec<String> {
        if !self.scopes(reach).contains(&Scope::Always) {
            return Vec::new();
        }
        match self.way(reach) {
            Some(CODEX) => vec!["the rule that Codex proposes for this command".to_owned()],
            Some(OPENCODE) => {
                let kept = self.kept_by_server().into_iter();
                kept.map(|rule| format!("{rule} as long as its server runs")).collect()
            }
            Some(_) | None => {
                self.hook.as_ref().map(|(_, asked)| asked.suggestions()).unwrap_or_default()
            }
        }
    }

    /// A sentence, where an answer allows more than can be carried.
    pub(super) fn too_far(&self, answer: &Decision, reach: Reach) -> Option<String> {
        let Decision::Allow { scope, .. } = answer else { return None };
        let scopes = self.scopes(reach);
        if *scope == Scope::Once || scopes.contains(scope) {
            return None;
        }
        let words: String = scopes.iter().map(|scope| format!(" or {}", spelled(*scope))).collect();
        Some(format!("it can only be allowed {}{words} from here", spelled(Scope::Once)))
    }

    pub(super) fn tool(&self) -> Option<&str> {
        self.shown.tool.as_ref().map(|tool| tool.as_str())
    }

    fn kept_by_server(&self) -> Vec<String> {
        self.ask.input.as_deref().map(opencode::kept).unwrap_or_default()
    }
}

fn spelled(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "once",
        Scope::Session => "for the session",
        Scope::Always => "always",
    }
}
