//! mpi.h.

use std::fmt::Write;

use crate::constants::{self, Constant};
use crate::functions::{Function, Line};

const COLUMNS: usize = 110;

const BEGIN: &str = "\
/* The C interface of MPI-5.0 with the standard ABI, as libmpi_abi.so.1 of Transom has it.
 * Made from the tables in ffi/mpi/abi: change those. */
#ifndef TRANSOM_MPI_H
#define TRANSOM_MPI_H

#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif
";

const END: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

pub fn text(constants: &[Constant], types: &str, lines: &[Line]) -> String {
    // Handles before the types that have them as arguments, pointers to such types behind.
    let (pointers, others): (Vec<&Constant>, Vec<&Constant>) =
        constants.iter().partition(|constant| matches!(constant, Constant::Pointer { .. }));
    let (first, last) = types.split_once("/* --- */\n").unwrap_or(("", types));
    let mut text = BEGIN.to_owned();
    text.push_str(first);
    text.push_str(&constants::c(others.into_iter()));
    text.push_str(last);
    text.push_str(&constants::c(pointers.into_iter()));
    for prefix in ["MPI", "PMPI"] {
        if prefix == "PMPI" {
            text.push_str("\n/* The same under the names of the profiling interface (section 15.2) */\n");
        }
        for line in lines {
            match line {
                Line::Chapter(chapter) if prefix == "MPI" => {
                    let _ = writeln!(text, "\n/* {chapter} */");
                }
                Line::Chapter(_) => {}
                Line::Function(function) => {
                    declare(&mut text, prefix, function, false);
                    if function.large {
                        declare(&mut text, prefix, function, true);
                    }
                }
            }
        }
    }
    text.push_str(END);
    text
}

fn declare(text: &mut String, prefix: &str, function: &Function, large: bool) {
    let returns = function.returns.as_ref().map_or("int".into(), |ty| ty.c());
    let profiling = prefix.strip_suffix("MPI").unwrap_or_default();
    let mut line = format!("{returns} {profiling}{}(", function.full(large));
    if function.arguments.is_empty() {
        line.push_str("void");
    }
    for (i, argument) in function.arguments.iter().enumerate() {
        let last = i + 1 == function.arguments.len();
        let mut word = argument.ty.c_declaration(&argument.name, large);
        word.push_str(if last { "" } else { "," });
        if line.len() + word.len() + 3 > COLUMNS {
            let _ = writeln!(text, "{}", line.trim_end());
            line = "    ".into();
        }
        line.push_str(&word);
        line.push_str(if last { "" } else { " " });
    }
    let _ = writeln!(text, "{line});");
}
