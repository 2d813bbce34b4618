//! See [`transom_programs::heat`].

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    transom_programs::program::main(transom_programs::heat::command::main)
}
