//! The command `transom`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    transom_launcher::main()
}
