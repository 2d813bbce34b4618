//! A rank gives up waiting for a reply that comes at the same time: either it has the reply, or the agent that takes the
//! reply releases what was granted.

use shuttle::thread;

use super::check;
use super::requests::Requests;
use super::sync::Arc;

#[test]
fn shuttle_a_grant_is_taken_or_given_back() {
    check(|| {
        let requests = Arc::new(Requests::default());
        let (number, request) = requests.open(None);
        let (other, awaited) = requests.open(None);
        let agent = thread::spawn({
            let requests = requests.clone();
            move || {
                let wanted = requests.reply(number, true, 7, &[]).wanted;
                assert!(requests.reply(other, true, 8, &[]).wanted);
                wanted
            }
        });
        let another = thread::spawn(move || {
            while awaited.outcome().is_none() {
                thread::yield_now();
            }
            awaited.value()
        });
        let taken = !request.give_up();
        if taken {
            assert_eq!((request.outcome(), request.value()), (Some(true), 7));
        }
        assert_eq!(agent.join().unwrap(), taken, "nobody has the grant, or two have it");
        assert_eq!(another.join().unwrap(), 8);
    });
}
