//! What the library offers.

use crate::support;
use libfabric::{EndpointType, Hints, Progress, Threading, flags};

#[test]
fn the_list_of_offers_names_providers() {
    let Some(library) = support::library() else { return };
    let offers = Hints { endpoint_type: None, threading: None, ..Hints::default() }.query(library).unwrap();
    assert!(offers.iter().any(|offer| offer.provider().starts_with("tcp")));
    assert!(offers.iter().all(|offer| !offer.provider().is_empty() && !offer.fabric_name().is_empty()));
}

#[test]
fn an_offer_tells_what_the_provider_does() {
    let Some(library) = support::library() else { return };
    let hints = support::loopback(flags::MSG | flags::RMA);
    let Some(offer) = support::offer(library, &hints) else { return };
    assert_eq!(offer.provider(), "tcp;ofi_rxm");
    assert_eq!(offer.endpoint_type(), EndpointType::Rdm);
    assert_eq!(offer.threading(), Threading::Safe);
    assert_eq!(offer.caps() & flags::RMA, flags::RMA);
    assert_eq!(offer.mr_mode(), 0);
    assert!(offer.mr_key_size() > 0 && offer.max_message_size() > 0 && offer.transmit_size() > 0);
    assert!(offer.source_address().unwrap().ip().is_loopback());
    let again = offer.duplicate().unwrap();
    assert_eq!(again.source_address(), offer.source_address());
    assert_eq!(again.provider(), offer.provider());
}

#[test]
fn progress_is_as_asked_for() {
    let Some(library) = support::library() else { return };
    for progress in [Progress::Auto, Progress::Manual] {
        let hints = Hints { data_progress: Some(progress), ..support::loopback(flags::MSG | flags::RMA) };
        let Some(offer) = support::offer(library, &hints) else { return };
        assert_eq!(offer.data_progress(), progress);
    }
}

#[test]
fn what_nobody_offers_is_an_empty_list() {
    let Some(library) = support::library() else { return };
    let hints = Hints { provider: Some("nonesuch".into()), ..Hints::default() };
    assert!(hints.query(library).unwrap().is_empty());
}
