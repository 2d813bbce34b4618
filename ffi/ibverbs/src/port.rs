//! A device's port.

use ibverbs_sys as sys;

use crate::error::check;
use crate::{Context, VerbsError};

/// The payload of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mtu {
    /// 256 bytes.
    Bytes256 = 1,
    /// 512 bytes.
    Bytes512,
    /// 1024 bytes.
    Bytes1024,
    /// 2048 bytes.
    Bytes2048,
    /// 4096 bytes.
    Bytes4096,
}

impl Mtu {
    /// How many bytes that is.
    pub fn bytes(self) -> u32 {
        128 << self as u8
    }

    /// As verbs number them; a size from the future is at least the largest one known here.
    pub(crate) fn from_raw(raw: sys::ibv_mtu) -> Mtu {
        match raw {
            0 | sys::IBV_MTU_256 => Mtu::Bytes256,
            sys::IBV_MTU_512 => Mtu::Bytes512,
            sys::IBV_MTU_1024 => Mtu::Bytes1024,
            sys::IBV_MTU_2048 => Mtu::Bytes2048,
            _ => Mtu::Bytes4096,
        }
    }

    pub(crate) fn to_raw(self) -> sys::ibv_mtu {
        self as sys::ibv_mtu
    }
}

/// The state of a port (ibv_query_port(3)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Whether data can be sent through it.
    pub active: bool,
    /// The largest payload of a packet at present.
    pub mtu: Mtu,
    /// Its address in an InfiniBand subnet; zero on Ethernet.
    pub lid: u16,
    /// Whether its link is Ethernet, so that peers are named by GID.
    pub ethernet: bool,
    /// Places in its GID table.
    pub gids: u32,
    /// The longest message, in bytes.
    pub max_message: u32,
}

impl Context {
    /// The state of a port; they are numbered from 1.
    pub fn port(&self, number: u8) -> Result<Port, VerbsError> {
        // SAFETY: numbers only, for which zero is valid.
        let mut raw: sys::ibv_port_attr = unsafe { std::mem::zeroed() };
        // SAFETY: ibv_query_port(3): an open device and room for the answer.
        check("ibv_query_port", unsafe { (self.library().ibv_query_port)(self.as_ptr(), number, &mut raw) })?;
        Ok(Port {
            active: raw.state == sys::IBV_PORT_ACTIVE,
            mtu: Mtu::from_raw(raw.active_mtu),
            lid: raw.lid,
            ethernet: raw.link_layer == sys::IBV_LINK_LAYER_ETHERNET,
            gids: u32::try_from(raw.gid_tbl_len).unwrap_or(0),
            max_message: raw.max_msg_sz,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_packets() {
        let all = [Mtu::Bytes256, Mtu::Bytes512, Mtu::Bytes1024, Mtu::Bytes2048, Mtu::Bytes4096];
        assert_eq!(all.map(Mtu::bytes), [256, 512, 1024, 2048, 4096]);
        assert_eq!(all.map(|mtu| Mtu::from_raw(mtu.to_raw())), all);
    }
}
