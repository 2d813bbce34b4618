//! shmem.h: constants as they are written down, functions and their forms for any type of the table.

use std::fmt::Write;

use crate::table::{Function, Type};

pub fn text(constants: &str, functions: &[Function]) -> String {
    let mut text = String::from(constants);
    text.push_str("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    for function in functions {
        if function.is_for_c_alone() {
            text.push_str("#ifndef __cplusplus\n");
        }
        for ty in function.each() {
            for context in [false, true] {
                if !context || function.has_context() {
                    let _ = writeln!(text, "{};", declaration(function, ty, context));
                }
            }
        }
        if function.is_for_c_alone() {
            text.push_str("#endif\n");
        }
    }
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n");
    overloads(&mut text, functions);
    generics(&mut text, functions);
    text.push_str("\n#endif\n");
    text
}

/// pshmem.h: the same functions by the names that profilers call (OpenSHMEM 1.5 §10).
pub fn profiling(functions: &[Function]) -> String {
    let mut text = String::from(
        "/* The functions of shmem.h by their names for profilers, which replace those of shmem.h (OpenSHMEM 1.5, section 10). */\n\
         #ifndef TRANSOM_PSHMEM_H\n#define TRANSOM_PSHMEM_H\n\n#include <shmem.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
    );
    for function in functions.iter().filter(|function| function.template.starts_with("shmem_")) {
        for ty in function.each() {
            for context in [false, true] {
                if !context || function.has_context() {
                    let name = function.name(ty, context);
                    let line = declaration(function, ty, context).replacen(&name, &format!("p{name}"), 1);
                    let _ = writeln!(text, "{line};");
                }
            }
        }
    }
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

/// A type of the table, of elements `of`.
fn c(ty: &str, of: &str) -> String {
    match ty.split_once('T') {
        Some((before, after)) if before.is_empty() || before == "const " => format!("{before}{of}{after}"),
        _ => ty.into(),
    }
}

fn spaced(ty: &str, name: &str) -> String {
    if ty.ends_with('*') { format!("{ty}{name}") } else { format!("{ty} {name}") }
}

fn arguments(function: &Function, of: &str, context: bool) -> String {
    let context = context.then(|| "shmem_ctx_t ctx".to_owned());
    let others = function.arguments.iter().map(|argument| spaced(&c(&argument.ty, of), &argument.name));
    let more = function.has_more_arguments().then(|| "...".to_owned());
    let all: Vec<String> = context.into_iter().chain(others).chain(more).collect();
    if all.is_empty() { "void".into() } else { all.join(", ") }
}

fn declaration(function: &Function, ty: Option<&Type>, context: bool) -> String {
    let of = ty.map_or("", |ty| &ty.c);
    let head = spaced(&c(&function.returns, of), &function.name(ty, context));
    let never = if function.returns_never() { " SHMEM_TRANSOM_NORETURN" } else { "" };
    format!("{head}({}){never}", arguments(function, of, context))
}

fn names(function: &Function, context: bool) -> String {
    let own = function.arguments.iter().map(|argument| &*argument.name);
    context.then_some("ctx").into_iter().chain(own).collect::<Vec<_>>().join(", ")
}

/// C++: one function for each type, by one name.
fn overloads(text: &mut String, functions: &[Function]) {
    text.push_str("\n#ifdef __cplusplus\n/* For any type: overloads. */\n");
    for function in functions.iter().filter(|function| function.is_generic()) {
        for ty in function.distinct() {
            for context in [false, true] {
                if context && !function.has_context() {
                    continue;
                }
                let head = spaced(&c(&function.returns, &ty.c), &function.generic_name());
                let returns = if function.returns == "void" { "" } else { "return " };
                let _ = writeln!(
                    text,
                    "static inline {head}({}) {{ {returns}{}({}); }}",
                    arguments(function, &ty.c, context),
                    function.name(Some(ty), context),
                    names(function, context)
                );
            }
        }
    }
    text.push_str(
        "static inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }\n#endif\n",
    );
}

/// C11: a macro that chooses by the type of what the first pointer points to, and by the number of arguments.
fn generics(text: &mut String, functions: &[Function]) {
    text.push_str(
        "\n#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n",
    );
    text.push_str(
        "/* For any type: macros. With one argument more than without a context the first is one. */\n",
    );
    let mut picks: Vec<usize> = Vec::new();
    for function in functions.iter().filter(|function| function.is_generic()) {
        let name = function.generic_name();
        let Some(pointer) = function.arguments.iter().find(|argument| argument.ty.ends_with("T *")) else {
            continue;
        };
        let choice = |context| {
            let of = |ty: &&Type| format!("{}: {}", ty.canonical(), function.name(Some(ty), context));
            let cases: Vec<String> = function.distinct().iter().map(of).collect();
            let names = names(function, context);
            format!("({names}) _Generic(*({}), {})({names})", pointer.name, cases.join(", "))
        };
        let plain = name.replacen("shmem_", "shmem_transom_", 1);
        let _ = writeln!(text, "#define {plain}{}", choice(false));
        if !function.has_context() {
            let _ = writeln!(text, "#define {name}(...) {plain}(__VA_ARGS__)");
            continue;
        }
        let with = name.replacen("shmem_", "shmem_transom_ctx_", 1);
        let count = function.arguments.len();
        if !picks.contains(&count) {
            picks.push(count);
            let ignored: Vec<String> = (0..=count).map(|index| format!("a{index}")).collect();
            let _ = writeln!(
                text,
                "#define SHMEM_TRANSOM_PICK{count}({}, chosen, ...) chosen",
                ignored.join(", ")
            );
        }
        let _ = writeln!(text, "#define {with}{}", choice(true));
        let _ = writeln!(
            text,
            "#define {name}(...) SHMEM_TRANSOM_PICK{count}(__VA_ARGS__, {with}, {plain}, 0)(__VA_ARGS__)"
        );
    }
    text.push_str(
        "#define SHMEM_TRANSOM_PICK_SYNC(a0, a1, a2, a3, chosen, ...) chosen\n\
         #define shmem_sync(...) SHMEM_TRANSOM_PICK_SYNC(__VA_ARGS__, shmem_sync, 0, 0, shmem_team_sync, 0)(__VA_ARGS__)\n\
         #endif\n",
    );
}
