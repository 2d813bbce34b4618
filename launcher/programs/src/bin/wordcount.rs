//! See [`transom_programs::wordcount`].

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    transom_programs::program::main(transom_programs::wordcount::main)
}
