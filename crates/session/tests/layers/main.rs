//! Domain layers: what they show, and what they can never change.

mod built_in;
mod properties;
mod rules;
mod world;
