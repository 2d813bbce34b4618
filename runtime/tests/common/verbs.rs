//! Whether tests can use verbs here.

/// The RDMA devices of this machine, with commas: ranks take turns, and talk across the wire where there are two. Nothing, and
/// the test is skipped, where there are none, unless `TRANSOM_CI_REQUIRE_VERBS=1`.
pub fn devices() -> Option<String> {
    match transom_verbs::devices() {
        Ok(names) => Some(std::env::var("TRANSOM_VERBS_DEVICE").unwrap_or_else(|_| names.join(","))),
        Err(error) => {
            assert!(!std::env::var("TRANSOM_CI_REQUIRE_VERBS").is_ok_and(|value| value == "1"), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}
