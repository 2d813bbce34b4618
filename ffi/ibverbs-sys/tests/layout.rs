//! The bindings have the layout of the headers.
//!
//! The numbers are what a C compiler gives for infiniband/verbs.h and rdma/rdma_cma.h of rdma-core 44.0, on the machine named.
#![cfg(all(target_arch = "x86_64", target_env = "gnu"))]

use std::mem::offset_of;

use ibverbs_sys::*;

macro_rules! layouts {
    ($( $test:ident {$(
        $type:ident: $size:literal, $align:literal { $( $($field:ident).+: $offset:literal ),* $(,)? }
    )*} )*) => {$(
        #[test]
        fn $test() {$(
            assert_eq!((size_of::<$type>(), align_of::<$type>()), ($size, $align), stringify!($type));
            $( assert_eq!(offset_of!($type, $($field).+), $offset, "{}", stringify!($type $($field).+)); )*
        )*}
    )*};
}

layouts! {
    context {
        ibv_context: 328, 8 { device: 0, ops: 8, cmd_fd: 264, async_fd: 268 }
        ibv_context_ops: 256, 8 { poll_cq: 88, req_notify_cq: 96, post_srq_recv: 160, post_send: 200, post_recv: 208 }
        ibv_device: 664, 8 { node_type: 16, transport_type: 20, name: 24 }
    }
    objects {
        ibv_pd: 16, 8 { context: 0 }
        ibv_mr: 48, 8 { lkey: 36, rkey: 40 }
        ibv_comp_channel: 16, 8 { fd: 8 }
        ibv_cq: 128, 8 { context: 0, cqe: 28 }
        ibv_srq: 128, 8 { context: 0 }
        ibv_qp: 160, 8 { context: 0, qp_num: 52 }
        ibv_ah: 24, 8 {}
    }
    answers {
        ibv_device_attr: 232, 8 {
            fw_ver: 0, max_mr_size: 80, vendor_id: 96, vendor_part_id: 100, max_qp: 108, max_qp_wr: 112,
            max_sge: 120, max_sge_rd: 124, max_cq: 128, max_cqe: 132, max_mr: 136, max_pd: 140, max_qp_rd_atom: 144,
            max_qp_init_rd_atom: 156, atomic_cap: 164, max_srq: 212, max_srq_wr: 216, phys_port_cnt: 227,
        }
        ibv_port_attr: 52, 4 { state: 0, active_mtu: 8, gid_tbl_len: 12, max_msg_sz: 20, lid: 34, link_layer: 46 }
        ibv_gid_entry: 32, 8 { gid: 0, gid_index: 16, port_num: 20, gid_type: 24, ndev_ifindex: 28 }
        ibv_async_event: 16, 8 { element: 0, event_type: 8 }
    }
    attributes {
        ibv_global_route: 24, 8 { dgid: 0, flow_label: 16, sgid_index: 20, hop_limit: 21, traffic_class: 22 }
        ibv_ah_attr: 32, 8 {
            grh: 0, dlid: 24, sl: 26, src_path_bits: 27, static_rate: 28, is_global: 29, port_num: 30,
        }
        ibv_srq_init_attr: 24, 8 { srq_context: 0, attr: 8 }
        ibv_srq_attr: 12, 4 { max_wr: 0, max_sge: 4, srq_limit: 8 }
        ibv_qp_cap: 20, 4 { max_send_wr: 0, max_recv_wr: 4, max_send_sge: 8, max_recv_sge: 12, max_inline_data: 16 }
        ibv_qp_init_attr: 64, 8 {
            qp_context: 0, send_cq: 8, recv_cq: 16, srq: 24, cap: 32, qp_type: 52, sq_sig_all: 56,
        }
        ibv_qp_attr: 144, 8 {
            qp_state: 0, path_mtu: 8, qkey: 16, rq_psn: 20, sq_psn: 24, dest_qp_num: 28, qp_access_flags: 32,
            ah_attr: 56, pkey_index: 120, max_rd_atomic: 126, max_dest_rd_atomic: 127, min_rnr_timer: 128,
            port_num: 129, timeout: 130, retry_cnt: 131, rnr_retry: 132,
        }
    }
    requests {
        ibv_sge: 16, 8 { addr: 0, length: 8, lkey: 12 }
        ibv_recv_wr: 32, 8 { wr_id: 0, next: 8, sg_list: 16, num_sge: 24 }
        ibv_send_wr: 128, 8 {
            wr_id: 0, next: 8, sg_list: 16, num_sge: 24, opcode: 28, send_flags: 32, wr: 40,
            wr.rdma.remote_addr: 40, wr.rdma.rkey: 48, wr.atomic.remote_addr: 40, wr.atomic.compare_add: 48,
            wr.atomic.swap: 56, wr.atomic.rkey: 64, wr.ud.ah: 40, wr.ud.remote_qpn: 48, wr.ud.remote_qkey: 52,
        }
        ibv_send_wr_target: 32, 8 { rdma: 0, atomic: 0, ud: 0 }
        ibv_wc: 48, 8 {
            wr_id: 0, status: 8, opcode: 12, vendor_err: 16, byte_len: 20, __bindgen_anon_1: 24, qp_num: 28,
            src_qp: 32, wc_flags: 36,
        }
    }
    rdmacm {
        rdma_event_channel: 4, 4 { fd: 0 }
        rdma_conn_param: 24, 8 {
            private_data: 0, private_data_len: 8, responder_resources: 9, initiator_depth: 10, flow_control: 11,
            retry_count: 12, rnr_retry_count: 13, srq: 14, qp_num: 16,
        }
    }
}

/// The beginnings of structures that librdmacm allocates: of 416 and 80 bytes.
#[test]
fn rdmacm_beginnings() {
    let id =
        (offset_of!(rdma_cm_id, verbs), offset_of!(rdma_cm_id, channel), offset_of!(rdma_cm_id, context));
    assert_eq!((id, offset_of!(rdma_cm_id, qp)), ((0, 8, 16), 24));
    let event = (offset_of!(rdma_cm_event, id), offset_of!(rdma_cm_event, listen_id));
    assert_eq!((event, offset_of!(rdma_cm_event, event)), ((0, 8), 16));
    assert_eq!((offset_of!(rdma_cm_event, status), offset_of!(rdma_cm_event, conn)), (20, 24));
    assert!(size_of::<rdma_cm_id>() <= 416 && size_of::<rdma_cm_event>() <= 80);
}
