//! Makes mpi.h, the library's constants and what it exports from the tables in `abi/`.

mod constants;
mod functions;
mod header;
mod notation;
mod shims;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=abi");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    let read = |name: &str| fs::read_to_string(root.join("abi").join(name));
    let constants = constants::parse(&read("constants.txt")?)?;
    let functions = functions::parse(&read("functions.txt")?)?;
    fs::write(out.join("constants.rs"), constants::rust(&constants))?;
    fs::write(out.join("shims.rs"), shims::rust(&functions))?;
    fs::write(out.join("mpi.h"), header::text(&constants, &read("types.h")?, &functions))?;
    Ok(())
}
