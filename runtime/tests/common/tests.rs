//! Tests made of rank programs: one for each transport, over jobs of several sizes.

#[path = "child.rs"]
pub mod child;

use std::time::Duration;

use transom::{Job, Result};

/// A rank's program.
pub type Program = fn(&Job) -> Result<()>;

const LIMIT: Duration = Duration::from_secs(180);

/// Runs `program` in a child, as jobs of each number of ranks.
pub fn run(transport: &str, test: &str, sizes: &[usize], program: Program) {
    child::run(transport, test, LIMIT, || {
        for ranks in sizes {
            let job = transom::local(*ranks, |job| program(&job));
            job.unwrap_or_else(|error| panic!("{test} on {ranks} ranks: {error}"));
        }
    });
}

/// `SIZES => module: program = name, …;` makes three tests of each program, `over_shm::name`, `over_ofi::name` and
/// `over_tcp::name`, with jobs of so many ranks.
#[allow(unused_macros, reason = "some make tests of their own")]
macro_rules! tests {
    ($($sizes:expr => $module:ident: $($program:ident = $name:ident),*;)*) => {
        tests! { over_shm "shm" $($sizes => $module: $($program = $name),*;)* }
        tests! { over_ofi "ofi" $($sizes => $module: $($program = $name),*;)* }
        tests! { over_tcp "tcp" $($sizes => $module: $($program = $name),*;)* }
    };
    ($over:ident $transport:literal $($sizes:expr => $module:ident: $($program:ident = $name:ident),*;)*) => {
        mod $over {
            use super::*;

            $($(
                #[test]
                fn $name() {
                    let test = concat!(stringify!($over), "::", stringify!($name));
                    tests::run($transport, test, &$sizes, $module::$program);
                }
            )*)*
        }
    };
}
