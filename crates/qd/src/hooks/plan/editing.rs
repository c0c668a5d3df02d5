//! Hooks in the tree of a settings file: finding, adding, removing.

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

use super::{Place, is_event};
use crate::hooks::wanted::{Entry, Mode, is_ours, mode};

/// One hook, and what it sits in.
#[derive(Debug)]
pub struct Slot {
    pub event: String,
    pub command: String,
    hook: CstObject,
    group: CstObject,
}

impl Slot {
    pub fn is_ours(&self) -> bool {
        is_ours(&self.command)
    }

    pub fn mode(&self) -> Mode {
        mode(&self.command)
    }

    /// Runs for whatever the event is about.
    pub fn is_unmatched(&self) -> bool {
        let matcher = self.group.get("matcher").and_then(|property| property.to_serde_value());
        matcher.is_none_or(|matcher| matcher == "" || matcher == "*")
    }

    pub fn value(&self) -> Option<Value> {
        self.hook.to_serde_value()
    }
}

pub fn slots(root: &CstRootNode) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (event, groups) in events(root) {
        for group in groups.elements().iter().filter_map(CstNode::as_object) {
            for hook in hooks_of(&group) {
                let Some(hook) = hook.as_object() else { continue };
                let command = command_of(&hook).unwrap_or_default();
                slots.push(Slot { event: event.clone(), command, hook, group: group.clone() });
            }
        }
    }
    slots
}

pub fn places(root: &CstRootNode) -> Vec<Place> {
    let mut places = Vec::new();
    for (event, groups) in events(root) {
        let mut group_after = 0;
        for (group_index, group) in groups.elements().iter().enumerate() {
            let hooks = group.as_object().map(|group| hooks_of(&group)).unwrap_or_default();
            let mut index_after = 0;
            for (index, hook) in hooks.iter().enumerate() {
                let command = hook.as_object().and_then(|hook| command_of(&hook));
                let is_ours = command.is_some_and(|command| is_ours(&command));
                let after = (!is_ours).then_some((group_after, index_after));
                index_after += usize::from(!is_ours);
                let event = event.clone();
                places.push(Place { event, group: group_index, index, is_ours, after });
            }
            // A group that held only ours goes with it; one that was empty stays.
            group_after += usize::from(hooks.is_empty() || index_after > 0);
        }
    }
    places
}

pub fn append_entry(root: &CstRootNode, entry: &Entry) {
    let hooks = root.object_value_or_set().object_value_or_set("hooks");
    let groups = hooks.array_value_or_set(entry.event);
    let list = CstInputValue::Array(vec![hook_input(entry)]);
    groups.append(CstInputValue::Object(vec![("hooks".to_owned(), list)]));
}

/// Field by field, which keeps the layout and the place.
pub fn replace_slot(slot: &Slot, entry: &Entry) {
    for property in slot.hook.properties() {
        let name = property.decoded_name().unwrap_or_default();
        if !entry.fields.iter().any(|(key, _)| *key == name) {
            property.remove();
        }
    }
    for (key, value) in &entry.fields {
        match slot.hook.get(key) {
            Some(property) if property.to_serde_value().as_ref() == Some(value) => {}
            Some(property) => property.set_value(input(value)),
            None => {
                slot.hook.append(key, input(value));
            }
        }
    }
}

/// Takes hooks out, and what held nothing else: group, event, `hooks`. `keeps` says which of the
/// two outer ones (as JSON pointers) stay though they are empty.
pub fn remove_slots(slots: Vec<Slot>, keeps: &dyn Fn(&str) -> bool) {
    for Slot { event, hook, group, .. } in slots {
        hook.remove();
        if !hooks_of(&group).is_empty() {
            continue;
        }
        let Some(groups) = parent_array(&group) else { continue };
        group.remove();
        if !groups.elements().is_empty() || keeps(&format!("/hooks/{event}")) {
            continue;
        }
        let Some(event_property) = groups.parent().and_then(|parent| parent.as_object_prop())
        else {
            continue;
        };
        let all = event_property.parent().and_then(|parent| parent.as_object());
        event_property.remove();
        if let Some(all) = all
            && all.properties().is_empty()
            && !keeps("/hooks")
            && let Some(property) = all.parent().and_then(|parent| parent.as_object_prop())
        {
            property.remove();
        }
    }
}

pub fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(key, v)| (key.clone(), input(v))).collect())
        }
    }
}

fn hook_input(entry: &Entry) -> CstInputValue {
    let fields = entry.fields.iter().map(|(key, value)| ((*key).to_owned(), input(value)));
    CstInputValue::Object(fields.collect())
}

fn events(root: &CstRootNode) -> Vec<(String, CstArray)> {
    let hooks = root.object_value().and_then(|root| root.object_value("hooks"));
    let properties = hooks.map(|hooks| hooks.properties()).unwrap_or_default();
    let event = |property: &jsonc_parser::cst::CstObjectProp| {
        let name = property.decoded_name().filter(|name| is_event(name))?;
        Some((name, property.array_value()?))
    };
    properties.iter().filter_map(event).collect()
}

fn hooks_of(group: &CstObject) -> Vec<CstNode> {
    group.array_value("hooks").map(|hooks| hooks.elements()).unwrap_or_default()
}

fn command_of(hook: &CstObject) -> Option<String> {
    hook.get("command")?.value()?.as_string_lit()?.decoded_value().ok()
}

fn parent_array(node: &CstObject) -> Option<CstArray> {
    node.parent()?.as_array()
}
