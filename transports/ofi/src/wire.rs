//! What ranks exchange: addresses and keys of regions.

use transom_transport::{TransportError, TransportResult};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Most bytes of an address.
const MAX_ADDRESS: usize = 200;

/// The name of the provider, then the provider's address of the endpoint.
pub(crate) fn encode_address(provider: &str, name: &[u8]) -> TransportResult<Vec<u8>> {
    let len = 1 + provider.len() + name.len();
    let Ok(provider_len) = u8::try_from(provider.len()) else { return Err(too_long(len)) };
    if len > MAX_ADDRESS {
        return Err(too_long(len));
    }
    Ok([&[provider_len], provider.as_bytes(), name].concat())
}

fn too_long(len: usize) -> TransportError {
    TransportError::System {
        operation: "fi_getname",
        reason: format!("provider name and address take {len} bytes, more than {MAX_ADDRESS}"),
    }
}

/// Provider and address; nothing if the bytes make no sense.
pub(crate) fn decode_address(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = bytes.split_first()?;
    let (provider, name) = rest.split_at_checked(usize::from(*len))?;
    let provider = std::str::from_utf8(provider).ok()?;
    (!provider.is_empty() && !name.is_empty() && bytes.len() <= MAX_ADDRESS).then_some((provider, name))
}

/// A region's key. Numbers as the machine has them: all ranks are of one architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Key {
    /// The provider's address of the first byte: virtual, or zero where it counts from the region's start.
    pub base: u64,
    /// Bytes.
    pub len: u64,
    /// The provider's key.
    pub key: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive() {
        let bytes = encode_address("tcp;ofi_rxm", &[1, 2, 3]).unwrap();
        assert_eq!(decode_address(&bytes), Some(("tcp;ofi_rxm", &[1, 2, 3][..])));
        assert!(encode_address("tcp", &[0; 200]).is_err());
    }

    #[test]
    fn nonsense_is_no_address() {
        let no_text = [2, 0xff, 0xfe, 1];
        for bytes in [&[][..], &[3], &[3, b't', b'c', b'p'], &[0, 1], &[200, 1], &no_text, &[1; 201]] {
            assert_eq!(decode_address(bytes), None, "{bytes:?}");
        }
    }
}
