//! Where the transport listens, and what is said when it cannot be had.

mod support;

use std::time::{Duration, Instant};

use transom_ofi::{Ofi, Options};
use transom_transport::{Transport, TransportError};

fn options() -> Options {
    Options { ranks: 1, provider: None, loopback: true, patience: Some(transom_ofi::PATIENCE) }
}

/// Whether tests of the transport are possible here.
fn available() -> bool {
    (support::OFI.open)(1).is_some()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn ranks_of_one_host_listen_on_loopback_only() {
    if available() {
        let ofi = Ofi::new(options()).unwrap();
        assert!(contains(&ofi.address(), &[127, 0, 0, 1]), "{:?}", ofi.address());
    }
}

#[test]
fn ranks_of_several_hosts_listen_where_others_can_reach_them() {
    if available() {
        match Ofi::new(Options { loopback: false, ..options() }) {
            Ok(ofi) => assert!(!contains(&ofi.address(), &[127, 0, 0, 1]), "{:?}", ofi.address()),
            // No other interface than loopback is up.
            Err(error) => assert!(error.to_string().contains("interface"), "{error}"),
        }
    }
}

#[test]
fn a_provider_that_is_not_there_is_named_with_those_that_are() {
    if available() {
        let error = Ofi::new(Options { provider: Some("carrier-pigeon".into()), ..options() }).unwrap_err();
        assert!(matches!(error, TransportError::Unavailable { .. }));
        let text = error.to_string();
        for part in ["carrier-pigeon", "tcp", "TRANSOM_OFI_PROVIDER", "install"] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }
}

#[test]
fn a_peer_that_takes_nothing_is_out_of_reach_after_the_time_that_was_given() {
    if available() {
        let [ofi, gone] = std::array::from_fn(|_| {
            Ofi::new(Options { ranks: 2, patience: Some(Duration::from_secs(1)), ..options() }).unwrap()
        });
        ofi.connect(1, &gone.address()).unwrap();
        drop(gone);
        let begin = Instant::now();
        let error = loop {
            match ofi.message(1, b"is somebody there", b"").and_then(|_| ofi.progress(&mut |_| {})) {
                Ok(_) => assert!(begin.elapsed() < Duration::from_secs(20), "nothing is said"),
                Err(error) => break error.to_string(),
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(begin.elapsed() >= Duration::from_millis(900), "{error}");
        assert!(error.contains("no connection in 1s (TRANSOM_OFI_SILENCE)"), "{error}");
    }
}
