//! Files of the operator's in JSON, read so that no mistake passes for a setting.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::hooks::limits::HOOK_NAMES_MAX;

/// What cannot be used, and where: `hooks[1].timeout_ms`.
pub(super) struct Fault {
    pub place: String,
    pub what: String,
}

pub(super) fn fault<T>(place: impl Into<String>, what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { place: place.into(), what: what.into() })
}

/// Names of environment variables; more than anybody needs are no names.
pub(super) fn are_variables(names: &[String]) -> bool {
    let is_name = |name: &String| {
        let mut letters = name.bytes();
        let starts = letters.next().is_some_and(|byte| byte == b'_' || byte.is_ascii_alphabetic());
        starts && letters.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
    };
    names.len() <= HOOK_NAMES_MAX && names.iter().all(is_name)
}

/// An object whose fields are taken one by one; what is left over is a mistake.
pub(super) struct Fields {
    place: String,
    left: Map<String, Value>,
}

impl Fields {
    pub fn of(place: String, value: Value) -> Result<Self, Fault> {
        match value {
            Value::Object(left) => Ok(Self { place, left }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => fault(place, "an object is needed here"),
        }
    }

    pub fn at(&self, field: &str) -> String {
        match self.place.is_empty() {
            true => field.to_owned(),
            false => format!("{}.{field}", self.place),
        }
    }

    pub fn taken<T: DeserializeOwned>(&mut self, field: &str) -> Result<Option<T>, Fault> {
        let Some(value) = self.left.remove(field) else { return Ok(None) };
        let read = serde_json::from_value(value).map(Some);
        read.or_else(|error| fault(self.at(field), error.to_string()))
    }

    pub fn needed<T: DeserializeOwned>(&mut self, field: &str) -> Result<T, Fault> {
        match self.taken(field)? {
            Some(value) => Ok(value),
            None => fault(self.at(field), "it is missing"),
        }
    }

    pub fn inner(&mut self, field: &str) -> Result<Option<Self>, Fault> {
        let place = self.at(field);
        self.left.remove(field).map(|value| Self::of(place, value)).transpose()
    }

    pub fn finish(self) -> Result<(), Fault> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(field) => fault(self.at(field), "there is no such field"),
        }
    }
}
