//! Devices, what they say of themselves, and the states of queue pairs.

use ibverbs::{
    CompletionQueue, Context, Mtu, ProtectionDomain, QpState, QueuePair, QueuePairOptions, Status,
};

use crate::support::{PLAN, PORT, Plan, Side, all_access, devices, pair};

#[test]
fn devices_describe_themselves() {
    let Some(devices) = devices() else { return };
    for name in devices {
        let context = Context::open(&name).unwrap();
        let (attributes, port) = (context.attributes().unwrap(), context.port(PORT).unwrap());
        println!("{name}: {attributes:?}\n{port:?}\n{:?}", context.gids(PORT).unwrap());
        assert_eq!(context.name(), name);
        assert!(attributes.ports >= PORT && attributes.max_qp > 0 && attributes.max_cqe > 0);
        assert!(attributes.max_sge >= 1 && attributes.max_mr_size > 0);
        assert!(port.mtu >= Mtu::Bytes256 && port.max_message >= port.mtu.bytes());
        assert_eq!(context.async_event().unwrap(), None);
        assert!(context.port(attributes.ports + 1).is_err());
    }
}

#[test]
fn states_follow_each_other() {
    let Some(devices) = devices() else { return };
    let side = Side::new(&devices[0], &PLAN);
    assert_eq!(side.pair.state().unwrap(), QpState::Reset);
    side.pair.initialise(PORT, all_access()).unwrap();
    assert_eq!(side.pair.state().unwrap(), QpState::Initialised);
    let error = side.pair.initialise(PORT + 100, all_access()).unwrap_err();
    assert!(error.operation.contains("INIT"), "{error}");
    // SAFETY: the memory stays until the side is dropped.
    unsafe { side.pair.post_receive(9, side.memory.part(0, 64)) }.unwrap();
    side.pair.fail().unwrap();
    assert_eq!(side.pair.state().unwrap(), QpState::Error);
    let completion = side.completion();
    assert_eq!((completion.id(), completion.status()), (9, Status::Flushed));
}

#[test]
fn connected_sides_are_ready() {
    let Some([a, b]) = pair(&PLAN) else { return };
    assert_eq!([a.pair.state().unwrap(), b.pair.state().unwrap()], [QpState::ReadyToSend; 2]);
}

#[test]
fn too_much_inline_is_cut_down() {
    let Some(devices) = devices() else { return };
    for inline in [0, 64, 256, 1 << 20] {
        let side = Side::new(&devices[0], &Plan { inline, ..PLAN });
        println!("{}: {inline} bytes inline asked, {} granted", devices[0], side.pair.inline());
        assert!(side.pair.inline() < 1 << 20);
    }
}

#[test]
fn queues_of_another_context_are_refused() {
    let Some(devices) = devices() else { return };
    let [here, there] = [(); 2].map(|()| Context::open(&devices[0]).unwrap());
    let domain = ProtectionDomain::new(&here).unwrap();
    let queue = CompletionQueue::new(&there, 16, None).unwrap();
    assert!(queue.capacity() >= 16);
    let options = QueuePairOptions {
        send: &queue,
        receive: &queue,
        shared: None,
        sends: 1,
        receives: 1,
        parts: 1,
        inline: 0,
        signal_all: false,
    };
    let error = QueuePair::reliable(&domain, &options).unwrap_err();
    assert!(error.text.contains("another context"), "{error}");
}
