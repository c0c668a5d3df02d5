//! What a call put out, as much of it as a model is given.

use std::sync::Arc;

use qd_session::limits::CALL_OUTPUT_BYTES_MAX;

/// The beginning and the end; the middle tells least.
pub fn clipped(output: Arc<str>) -> Arc<str> {
    if output.len() <= CALL_OUTPUT_BYTES_MAX {
        return output;
    }
    let half = CALL_OUTPUT_BYTES_MAX / 2;
    let head = output.floor_char_boundary(half);
    let tail = output.ceil_char_boundary(output.len() - half);
    let left_out = tail - head;
    format!("{}\n[{left_out} bytes left out]\n{}", &output[..head], &output[tail..]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_ends() {
        let output: Arc<str> = format!("first{}last", "ü".repeat(CALL_OUTPUT_BYTES_MAX)).into();
        let short = clipped(output);
        assert!(short.len() < CALL_OUTPUT_BYTES_MAX + 100);
        assert!(short.starts_with("first") && short.ends_with("last"));
        assert_eq!(&*clipped("as it is".into()), "as it is");
    }
}
