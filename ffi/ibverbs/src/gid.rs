//! The addresses of a port.

use std::fs;

use ibverbs_sys as sys;
use nix::errno::Errno;

use crate::error::check;
use crate::{Context, TransportKind, VerbsError};

/// How packets to an address are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GidKind {
    /// InfiniBand; also what iWARP devices say, which do not use it.
    InfiniBand,
    /// RoCE in Ethernet frames, which do not leave their network.
    RoceV1,
    /// RoCE in UDP, which is routed.
    RoceV2,
}

/// An address of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gid {
    /// Its place in the port's table, by which this side names it.
    pub index: u8,
    /// The address: an IPv6 address in form, with RoCE v2 also in meaning (IPv4 ones are mapped).
    pub bytes: [u8; 16],
    /// How packets are framed.
    pub kind: GidKind,
}

impl Context {
    /// The addresses of a port that are in use, in the order of their places (`ibv_query_gid_table`).
    pub fn gids(&self, port: u8) -> Result<Vec<Gid>, VerbsError> {
        let Some(query) = self.library().ibv_query_gid_table else { return self.gids_one_by_one(port) };
        let mut places = 0;
        for number in 1..=self.attributes()?.ports {
            places += self.port(number)?.gids as usize;
        }
        let empty = sys::ibv_gid_entry {
            gid: sys::ibv_gid { raw: [0; 16] },
            gid_index: 0,
            port_num: 0,
            gid_type: 0,
            ndev_ifindex: 0,
        };
        let mut entries = vec![empty; places.max(1)];
        let (room, size) = (entries.len(), size_of::<sys::ibv_gid_entry>());
        // SAFETY: an open device, and room for as many entries of that size as are said.
        let count = unsafe { query(self.as_ptr(), entries.as_mut_ptr(), room, 0, size) };
        let count = usize::try_from(count).map_err(|_| {
            let code = i32::try_from(count.unsigned_abs()).unwrap_or(0);
            VerbsError::new("ibv_query_gid_table", Errno::from_raw(code))
        })?;
        entries.truncate(count);
        Ok(entries.iter().filter(|entry| entry.port_num == u32::from(port)).filter_map(from_entry).collect())
    }

    /// The same, asking for one place after the other.
    fn gids_one_by_one(&self, port: u8) -> Result<Vec<Gid>, VerbsError> {
        let library = self.library();
        let attributes = self.port(port)?;
        let roce = attributes.ethernet && self.transport() == TransportKind::InfiniBand;
        let mut found = Vec::new();
        for index in 0..=u8::try_from(attributes.gids.saturating_sub(1)).unwrap_or(u8::MAX) {
            let mut gid = sys::ibv_gid { raw: [0; 16] };
            // SAFETY: ibv_query_gid(3): an open device and room for one GID.
            let returned = unsafe { (library.ibv_query_gid)(self.as_ptr(), port, index.into(), &mut gid) };
            check("ibv_query_gid", returned)?;
            // SAFETY: every bit pattern is 16 bytes.
            let bytes = unsafe { gid.raw };
            if bytes != [0; 16] {
                let kind = if roce { self.roce_kind(port, index) } else { GidKind::InfiniBand };
                found.push(Gid { index, bytes, kind });
            }
        }
        Ok(found)
    }

    /// The kernel's word for it.
    fn roce_kind(&self, port: u8, index: u8) -> GidKind {
        let path = format!("/sys/class/infiniband/{}/ports/{port}/gid_attrs/types/{index}", self.name());
        match fs::read_to_string(path) {
            Ok(text) if text.trim() == "RoCE v2" => GidKind::RoceV2,
            _ => GidKind::RoceV1,
        }
    }
}

fn from_entry(entry: &sys::ibv_gid_entry) -> Option<Gid> {
    let kind = match entry.gid_type {
        sys::IBV_GID_TYPE_IB => GidKind::InfiniBand,
        sys::IBV_GID_TYPE_ROCE_V1 => GidKind::RoceV1,
        sys::IBV_GID_TYPE_ROCE_V2 => GidKind::RoceV2,
        _ => return None,
    };
    // SAFETY: every bit pattern is 16 bytes.
    let bytes = unsafe { entry.gid.raw };
    // A work request names the place by eight bits (`sgid_index` in ibv_modify_qp(3)).
    u8::try_from(entry.gid_index).ok().map(|index| Gid { index, bytes, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_asking_give_the_same() {
        let names = match crate::device_names() {
            Ok(names) => names,
            Err(error) => {
                assert!(std::env::var_os("TRANSOM_CI_REQUIRE_VERBS").is_none(), "{error}");
                return println!("skipped: {error}");
            }
        };
        for name in names {
            let context = Context::open(&name).unwrap();
            let gids = context.gids(1).unwrap();
            assert!(!gids.is_empty());
            assert_eq!(gids, context.gids_one_by_one(1).unwrap());
        }
    }
}
