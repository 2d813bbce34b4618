//! Makes the functions (`door`), and shmem.h and the exported names, of the tables in `abi/`.

mod exports;
mod header;
mod table;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn read(root: &Path, name: &str) -> Result<String> {
    let path = root.join("abi").join(name);
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()).into())
}

fn main() -> Result<()> {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let is_door = env::var("CARGO_PKG_NAME")? == "transom-shmem-door";
    let root = if is_door { package.join("..") } else { package };
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", root.join("build").display());
    let types = table::types(&read(&root, "types.txt")?)?;
    let functions = table::functions(&read(&root, "functions.txt")?, &types)?;
    if is_door {
        fs::write(out.join("functions.rs"), exports::functions(&functions))?;
        return Ok(());
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libsma.so.1");
    // What a profiler in the program has put in a function's place is not what the library itself means by its name.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    fs::write(out.join("exports.rs"), exports::names(&functions))?;
    fs::write(out.join("shmem.h"), header::text(&read(&root, "constants.h")?, &functions))?;
    fs::write(out.join("pshmem.h"), header::profiling(&functions))?;
    let names: Vec<String> = functions.iter().flat_map(table::Function::names).collect();
    fs::write(out.join("names.txt"), names.join("\n") + "\n")?;
    Ok(())
}
