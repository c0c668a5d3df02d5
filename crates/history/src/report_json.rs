//! The report as programs read it, with the names that ccusage uses: the same from the command and
//! over HTTP.

use serde_json::{Map, Value, json};

use super::finding::Trouble;
use super::report::{By, Report};

impl By {
    pub const ALL: [Self; 7] = [
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Model,
        Self::Project,
        Self::Session,
        Self::Harness,
    ];

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Model => "model",
            Self::Project => "project",
            Self::Session => "session",
            Self::Harness => "harness",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }

    /// What the list of rows is called, and what names a row in it.
    fn spelled(self) -> (&'static str, &'static str) {
        match self {
            Self::Day => ("daily", "date"),
            Self::Week => ("weekly", "week"),
            Self::Month => ("monthly", "month"),
            Self::Model => ("models", "model"),
            Self::Project => ("projects", "project"),
            Self::Session => ("sessions", "sessionId"),
            Self::Harness => ("harnesses", "harness"),
        }
    }
}

impl Report {
    /// `prices_of` is the day of the price table.
    pub fn json(&self, by: By, prices_of: &str, troubles: &[Trouble]) -> Value {
        let (list, name) = by.spelled();
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let mut object = Map::new();
                object.insert(name.to_owned(), json!(row.name));
                let models: Vec<&str> = row.models.iter().map(|row| row.model.as_str()).collect();
                object.insert("modelsUsed".to_owned(), json!(models));
                if let Value::Object(rest) = json!(row) {
                    object.extend(rest);
                }
                Value::Object(object)
            })
            .collect();
        let troubles: Vec<Value> = troubles
            .iter()
            .map(|trouble| json!({"path": trouble.path.to_string_lossy(), "what": trouble.what}))
            .collect();
        json!({list: rows, "totals": self.totals, "pricesOf": prices_of, "troubles": troubles})
    }
}
