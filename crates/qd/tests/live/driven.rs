//! Sessions that we drive, with the real daemon, tools, hooks and agents against a scripted model.

mod agents;
mod chat;
mod native;
mod played;
mod setting;
