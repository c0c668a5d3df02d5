//! Which call a part of a chunk belongs to, for all who number them in their own way.

use serde_json::Value;

use crate::native::Piece;
use crate::native::answer_draft::{AnswerDraft, Place};
use crate::native::failure::Failure;

#[derive(Debug, Default)]
pub(super) struct CallPlaces {
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    place: Place,
    index: Option<u64>,
    id: String,
}

impl CallPlaces {
    pub(super) fn take(
        &mut self,
        part: &Value,
        draft: &mut AnswerDraft,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        let many = part["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        for call in many {
            self.take_call(call, &call["function"], draft, pieces)?;
        }
        // The one call of the first version of the protocol.
        let one = &part["function_call"];
        if one.is_object() {
            self.take_call(&Value::Null, one, draft, pieces)?;
        }
        Ok(())
    }

    fn take_call(
        &mut self,
        call: &Value,
        function: &Value,
        draft: &mut AnswerDraft,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        let (index, id) = (call["index"].as_u64(), call["id"].as_str().unwrap_or_default());
        let name = function["name"].as_str().unwrap_or_default();
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            whole @ Value::Object(_) => whole.to_string(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => String::new(),
        };
        let place = match self.known(index, id, name, draft) {
            Some(_) if arguments.is_empty() => return Ok(()),
            Some(place) => place,
            None => {
                let place = draft.begin_call(id, name)?;
                self.known.push(Known { place, index, id: id.to_owned() });
                place
            }
        };
        pieces.extend(draft.grow(place, &arguments)?);
        Ok(())
    }

    /// None where a new call begins.
    fn known(
        &self,
        index: Option<u64>,
        id: &str,
        name: &str,
        draft: &AnswerDraft,
    ) -> Option<Place> {
        // The last that fits: where one number is given to several calls it means the newest.
        let newest = |fits: &dyn Fn(&Known) -> bool| self.known.iter().rev().find(|at| fits(at));
        match (index, id) {
            (Some(index), id) => {
                let known = newest(&|known| known.index == Some(index))?;
                let is_same = id.is_empty() || known.id.is_empty() || known.id == id;
                is_same.then_some(known.place)
            }
            (None, "") => {
                let known = newest(&|_| true)?;
                // A name again, where arguments have come already: the next whole call.
                let is_next = !name.is_empty() && draft.has_arguments(known.place);
                (!is_next).then_some(known.place)
            }
            (None, id) => newest(&|known| known.id == id).map(|known| known.place),
        }
    }
}
