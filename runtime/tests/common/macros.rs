//! `SIZES, program => name_over_shm, name_over_ofi;` makes two tests of jobs of so many ranks.

macro_rules! tests {
    ($($sizes:expr, $program:path => $shm:ident, $ofi:ident;)*) => { $(
        #[test]
        fn $shm() {
            tests::run("shm", stringify!($shm), &$sizes, $program);
        }

        #[test]
        fn $ofi() {
            tests::run("ofi", stringify!($ofi), &$sizes, $program);
        }
    )* };
}
