//! Participants under a model checker.

use shuttle::sync::Arc;

/// Explores orders in which all of N participants take part, each told its number.
pub fn check<R, const N: usize>(participate: fn(&[R; N], usize))
where
    R: Default + Send + Sync + 'static,
{
    let run = move || {
        let ranks: Arc<[R; N]> = Arc::new(std::array::from_fn(|_| R::default()));
        let others: Vec<_> = (1..N)
            .map(|me| {
                let ranks = ranks.clone();
                shuttle::thread::spawn(move || participate(&ranks, me))
            })
            .collect();
        participate(&ranks, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
    };
    shuttle::check_random(run, 4_000);
    shuttle::check_pct(run, 4_000, 3);
}
