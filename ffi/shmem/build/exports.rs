//! The functions of the table, each for each of its types: `functions.rs` has them, each of which calls the function of its name in `calls`, and their
//! addresses in order; `exports.rs` the names that libsma.so exports, with their places in that order.

use std::fmt::Write;

use crate::table::{Argument, Function, Type};

/// A type of C as Rust has it; `T` is that of the function.
fn rust(ty: &str, of: Option<&Type>) -> String {
    let element = of.map_or("", |of| &of.rust);
    match ty {
        "T" => element.into(),
        "T *" => format!("*mut {element}"),
        "const T *" => format!("*const {element}"),
        "int" => "c_int".into(),
        "long" => "c_long".into(),
        "size_t" => "usize".into(),
        "ptrdiff_t" => "isize".into(),
        "uint64_t" => "u64".into(),
        "void *" => "*mut c_void".into(),
        "const void *" => "*const c_void".into(),
        "char *" => "*mut c_char".into(),
        "int *" => "*mut c_int".into(),
        "const int *" => "*const c_int".into(),
        "long *" => "*mut c_long".into(),
        "size_t *" => "*mut usize".into(),
        "uint64_t *" => "*mut u64".into(),
        "const uint64_t *" => "*const u64".into(),
        "shmem_ctx_t" => "Ctx".into(),
        "shmem_ctx_t *" => "*mut Ctx".into(),
        "shmem_team_t" => "TeamHandle".into(),
        "shmem_team_t *" => "*mut TeamHandle".into(),
        "shmem_team_config_t *" => "*mut TeamConfig".into(),
        "const shmem_ctx_session_config_t *" => "*const SessionConfig".into(),
        "const shmem_team_config_t *" => "*const TeamConfig".into(),
        // The compiler says where.
        other => format!("Unknown<{other}>"),
    }
}

/// The function in `calls`: without the type, and apart where there is one of the same name for teams.
fn own(function: &Function) -> String {
    let name = function.template.replace("_@", "").replace('@', "");
    let name = name.trim_start_matches("shmem_").trim_matches('_');
    let is_active = function.arguments.iter().any(|argument| argument.name == "pSync");
    if is_active { format!("{name}_active") } else { name.into() }
}

/// The functions, and their table.
pub fn functions(functions: &[Function]) -> String {
    let mut text = String::new();
    let mut table = String::new();
    let mut identity = Identity::default();
    for (function, ty, context) in all(functions) {
        match ty {
            Some(ty) if ty.rust == "LongDouble" && passes_value(function) => {
                text.push_str(&long_double(function, ty, context));
            }
            ty => export(&mut text, function, ty, context),
        }
        let name = function.name(ty, context);
        let _ = writeln!(table, "    Function(export_{name} as *const ()),");
        identity.add(&name);
    }
    let count = all(functions).count();
    let _ = writeln!(
        text,
        "/// Number of functions.\npub const COUNT: usize = {count};\n\
         /// A number made of their names and order: another one for another table.\npub const IDENTITY: u64 = {:#x};\n\
         /// The functions.\npub static FUNCTIONS: [Function; COUNT] = ADDRESSES;\n\
         /// What [`FUNCTIONS`] has, for statics of other libraries.\npub const ADDRESSES: [Function; COUNT] = [\n{table}];",
        identity.0
    );
    text
}

/// The names that libsma.so exports, each with that of its profiling interface.
pub fn names(functions: &[Function]) -> String {
    let mut text = String::new();
    for (index, (function, ty, context)) in all(functions).enumerate() {
        let name = function.name(ty, context);
        let profiled =
            if name.starts_with("shmem_") { format!(", export_p{name} \"p{name}\"") } else { String::new() };
        let types = match &*name {
            "shmem_init" => Some("() -> ()"),
            "shmem_init_thread" => Some("(requested: c_int, provided: *mut c_int) -> c_int"),
            "start_pes" => Some("(pes: c_int) -> ()"),
            _ => None,
        };
        let _ = match types {
            None => writeln!(text, "export!(export_{name} \"{name}\"{profiled}, {index});"),
            Some(types) => {
                writeln!(text, "export_start!(export_{name} \"{name}\"{profiled}, {index}, {types});")
            }
        };
    }
    text
}

/// Each function for each type, with and without a context.
fn all(functions: &[Function]) -> impl Iterator<Item = (&Function, Option<&Type>, bool)> {
    functions.iter().flat_map(|function| {
        let forms = if function.has_context() { &[false, true][..] } else { &[false] };
        let each = function.each().into_iter();
        each.flat_map(move |ty| forms.iter().map(move |context| (function, ty, *context)))
    })
}

/// The FNV-1a hash of names.
struct Identity(u64);

impl Default for Identity {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Identity {
    fn add(&mut self, name: &str) {
        for byte in name.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

fn export(text: &mut String, function: &Function, ty: Option<&Type>, context: bool) {
    let name = function.name(ty, context);
    let mut arguments: Vec<String> = Vec::new();
    let mut given = vec![format!("\"{name}\"")];
    if context {
        arguments.push("ctx: Ctx".into());
    }
    if function.has_context() {
        given.push(if context { "ctx".into() } else { "Ctx::DEFAULT".into() });
    }
    for Argument { ty: of, name } in &function.arguments {
        let name = format!("{}_", name.to_lowercase());
        arguments.push(format!("{name}: {}", rust(of, ty)));
        given.push(name);
    }
    let returns = match &*function.returns {
        "void" if function.returns_never() => " -> !".into(),
        "void" => String::new(),
        returns => format!(" -> {}", rust(returns, ty)),
    };
    let turbofish = ty.map_or(String::new(), |ty| format!("::<{}>", ty.rust));
    let _ = writeln!(
        text,
        "unsafe extern \"C\" fn export_{name}({}){returns} {{ unsafe {{ calls::{}{turbofish}({}) }} }}",
        arguments.join(", "),
        own(function),
        given.join(", ")
    );
}

/// Whether an element itself is passed or returned: `long double`, which Rust does not pass as C does, takes another way then.
fn passes_value(function: &Function) -> bool {
    function.returns == "T" || function.arguments.iter().any(|argument| argument.ty == "T")
}

/// `p` and `g` of `long double`: a few instructions turn them into put and get of one element in memory, where the System V ABI for x86-64
/// has the argument anyway (§3.2.3: class X87 is passed in memory, and returned in st(0)).
fn long_double(function: &Function, ty: &Type, context: bool) -> String {
    let name = function.name(Some(ty), context);
    let form = if context { "ctx_" } else { "" };
    let (lines, to) = match (function.returns == "T", context) {
        // put(dest, source, 1, pe) of p(dest, value, pe)
        (false, false) => (vec!["mov ecx, esi", "lea rsi, [rsp + 8]", "mov edx, 1", "jmp {to}"], "put"),
        // put(ctx, dest, source, 1, pe) of p(ctx, dest, value, pe)
        (false, true) => (vec!["mov r8d, edx", "lea rdx, [rsp + 8]", "mov ecx, 1", "jmp {to}"], "put"),
        // get(dest, source, 1, pe) of g(source, pe)
        (true, false) => (
            vec![
                "sub rsp, 24",
                "mov ecx, esi",
                "mov rsi, rdi",
                "mov rdi, rsp",
                "mov edx, 1",
                "call {to}",
                "fld tbyte ptr [rsp]",
                "add rsp, 24",
                "ret",
            ],
            "get",
        ),
        // get(ctx, dest, source, 1, pe) of g(ctx, source, pe)
        (true, true) => (
            vec![
                "sub rsp, 24",
                "mov r8d, edx",
                "mov rdx, rsi",
                "mov rsi, rsp",
                "mov ecx, 1",
                "call {to}",
                "fld tbyte ptr [rsp]",
                "add rsp, 24",
                "ret",
            ],
            "get",
        ),
    };
    let lines: Vec<String> = lines.iter().map(|line| format!("\"{line}\"")).collect();
    format!(
        "#[cfg(target_arch = \"x86_64\")]\n#[unsafe(naked)]\n\
         unsafe extern \"C\" fn export_{name}() {{ core::arch::naked_asm!({}, to = sym export_shmem_{form}longdouble_{to}) }}\n",
        lines.join(", ")
    )
}
