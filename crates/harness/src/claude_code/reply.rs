//! Operator's decision in, vendor's answer out.
