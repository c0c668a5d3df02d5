//! Names kept once: a history repeats few sessions and fewer models in many responses.

use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub struct Names {
    all: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

/// Stands for a name.
pub type Number = u32;

impl Names {
    pub fn number(&mut self, name: &str) -> Number {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = Number::try_from(self.all.len()).expect("fewer names than bytes read");
        let name: Arc<str> = name.into();
        self.all.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    /// Without a number for one that is new.
    pub fn known(&self, name: &str) -> Option<Number> {
        self.numbers.get(name).copied()
    }

    pub fn name(&self, number: Number) -> &Arc<str> {
        &self.all[number as usize]
    }

    pub fn all(&self) -> &[Arc<str>] {
        &self.all
    }
}
