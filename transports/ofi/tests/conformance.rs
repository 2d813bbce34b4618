//! What every transport must do, on libfabric over loopback. `TRANSOM_OFI_PROVIDER` chooses the provider.

mod support;

use transom_conformance::conformance_tests;

conformance_tests!(super::support::OFI);
