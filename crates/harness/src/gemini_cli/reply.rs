//! The operator's decision in, a hook's output out.
