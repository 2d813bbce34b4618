//! An epoch in which everybody accesses everybody.

use std::fmt::Debug;

use transom::{Assert, Element, Job, Result, Window};

/// Every rank posts to all, starts to all, itself included, and puts `value` to all.
pub fn put_to_all<T: Element + PartialEq + Debug>(job: &Job, window: &Window<T>, value: T) -> Result<()> {
    let (rma, size) = (window.explicit(), job.size());
    let all: Vec<usize> = (0..size).collect();
    rma.post(&all, Assert::NONE)?;
    rma.start(&all, Assert::NONE)?;
    all.iter().try_for_each(|target| rma.put(*target, job.rank(), &[value]))?;
    rma.complete()?;
    rma.wait()?;
    assert_eq!(window.local().to_vec()?, vec![value; size]);
    Ok(())
}
