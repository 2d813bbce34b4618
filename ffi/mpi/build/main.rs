//! Makes the library's constants and what it exports from the tables of its ABI: `abi/`. The standard's has mpi.h, too; the
//! others have their functions besides those of the standard's.

mod constants;
mod fortran;
mod functions;
mod header;
mod interfaces;
mod modules;
mod mpif;
mod notation;
mod passed;
mod shims;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A table of the package at `root`.
fn table(root: &Path, name: &str) -> Result<String> {
    let path = root.join("abi").join(name);
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()).into())
}

fn main() -> Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let is_mpich = env::var("CARGO_PKG_NAME")? == "transom-mpich";
    println!("cargo::rustc-check-cfg=cfg(mpich)");
    let constants = constants::parse(&table(&root, "constants.txt")?)?;
    let mut functions = functions::parse(&table(&root.join("../mpi"), "functions.txt")?)?;
    if is_mpich {
        println!("cargo::rustc-cfg=mpich");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.12");
        functions.extend(functions::parse(&table(&root, "functions.txt")?)?);
    } else {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
        fs::write(out.join("mpi.h"), header::text(&constants, &table(&root, "types.h")?, &functions))?;
    }
    fs::write(out.join("constants.rs"), constants::rust(&constants))?;
    let mut exports = shims::rust(&functions);
    if is_mpich {
        exports.push_str(&fortran::rust(&functions));
        fs::write(out.join("mpif.h"), mpif::text(&constants))?;
        // Beside the library, where install.sh finds them.
        let folder =
            out.ancestors().nth(3).ok_or("OUT_DIR is not below that of the profile")?.join("fortran");
        fs::create_dir_all(&folder)?;
        let callbacks = table(&root, "callbacks.f90")?;
        fs::write(folder.join("mpi_f08.f90"), modules::f08(&constants, &callbacks, &functions))?;
        fs::write(folder.join("mpi.f90"), modules::mpi(&constants, &functions))?;
    }
    fs::write(out.join("shims.rs"), exports)?;
    Ok(())
}
