//! The types of the table of functions, as C and Rust have them.

/// A type as the table names it.
pub struct Type {
    base: String,
    pub shape: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Value,
    /// `T *`.
    Pointer,
    /// `const T *`.
    ConstPointer,
    /// `const T[]`.
    Input,
    /// `T[]`.
    Output,
    /// `T[][3]`.
    Triples,
    /// `F *`.
    Function,
}

/// Table, C, Rust. Large forms have the second ones.
const PAIRS: [(&str, [&str; 2], [&str; 2]); 4] = [
    ("n", ["int", "MPI_Count"], ["c_int", "Count"]),
    ("u", ["int", "MPI_Aint"], ["c_int", "Aint"]),
    ("a", ["MPI_Aint", "MPI_Count"], ["Aint", "Count"]),
    ("d", ["int", "MPI_Aint"], ["c_int", "Aint"]),
];

const PLAIN: [(&str, &str, &str); 27] = [
    ("int", "int", "c_int"),
    ("aint", "MPI_Aint", "Aint"),
    ("count", "MPI_Count", "Count"),
    ("offset", "MPI_Offset", "Offset"),
    ("double", "double", "c_double"),
    ("fint", "MPI_Fint", "c_int"),
    ("buf", "void *", "*mut c_void"),
    ("cbuf", "const void *", "*const c_void"),
    ("str", "const char *", "*const c_char"),
    ("text", "char *", "*mut c_char"),
    ("char", "char", "c_char"),
    ("char*", "char *", "*mut c_char"),
    ("char**", "char **", "*mut *mut c_char"),
    ("char***", "char ***", "*mut *mut *mut c_char"),
    ("status", "MPI_Status", "Status"),
    ("comm", "MPI_Comm", "Comm"),
    ("group", "MPI_Group", "Group"),
    ("win", "MPI_Win", "Win"),
    ("type", "MPI_Datatype", "Datatype"),
    ("op", "MPI_Op", "Op"),
    ("req", "MPI_Request", "Request"),
    ("msg", "MPI_Message", "Message"),
    ("info", "MPI_Info", "Info"),
    ("errh", "MPI_Errhandler", "Errhandler"),
    ("file", "MPI_File", "File"),
    ("session", "MPI_Session", "Session"),
    ("...", "...", ""),
];

pub fn parse(word: &str) -> Result<Type, String> {
    use Shape::*;
    let shapes =
        [("[][3]", Triples), ("[]!", Output), ("[]", Input), ("()", Function), ("*", Pointer), ("", Value)];
    let stem = word.strip_prefix("c-").unwrap_or(word);
    if PLAIN.iter().any(|(name, ..)| *name == stem) {
        return Ok(Type { base: stem.into(), shape: Value });
    }
    let (base, shape) = shapes
        .iter()
        .find_map(|(suffix, shape)| Some((stem.strip_suffix(suffix)?, *shape)))
        .ok_or("no type")?;
    let shape = if stem != word { ConstPointer } else { shape };
    let known = base.starts_with("T_")
        || shape == Function
        || PLAIN.iter().any(|(name, ..)| *name == base)
        || PAIRS.iter().any(|(name, ..)| *name == base);
    if known { Ok(Type { base: base.into(), shape }) } else { Err(format!("{base} is no type")) }
}

pub fn c_handle(kind: &str) -> &'static str {
    PLAIN.iter().find(|(name, ..)| *name == kind).map_or("", |(_, c, _)| c)
}

pub fn rust_handle(kind: &str) -> &'static str {
    PLAIN.iter().find(|(name, ..)| *name == kind).map_or("", |(_, _, rust)| rust)
}

impl Type {
    pub fn is(&self, name: &str) -> bool {
        self.base == name && self.shape == Shape::Value
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    fn pair(&self) -> bool {
        PAIRS.iter().any(|(name, ..)| *name == self.base)
    }

    fn c_base(&self, large: bool) -> String {
        if let Some((_, c, _)) = PAIRS.iter().find(|(name, ..)| *name == self.base) {
            return c[usize::from(large)].into();
        }
        match PLAIN.iter().find(|(name, ..)| *name == self.base) {
            Some((_, c, _)) => (*c).into(),
            None => format!("MPI_{}", self.base),
        }
    }

    /// The type without a name, as of results.
    pub fn c(&self) -> String {
        self.c_base(false)
    }

    /// A declaration of an argument.
    pub fn c_declaration(&self, name: &str, large: bool) -> String {
        let base = self.c_base(large);
        let space = if base.ends_with('*') { "" } else { " " };
        match self.shape {
            _ if self.is("...") => "...".into(),
            Shape::Value => format!("{base}{space}{name}"),
            Shape::Pointer | Shape::Function => format!("{base}{space}*{name}"),
            Shape::ConstPointer => format!("const {base}{space}*{name}"),
            Shape::Input => format!("const {base}{space}{name}[]"),
            Shape::Output => format!("{base}{space}{name}[]"),
            Shape::Triples => format!("{base}{space}{name}[][3]"),
        }
    }

    pub fn rust(&self, large: bool) -> String {
        let base = match PAIRS.iter().find(|(name, ..)| *name == self.base) {
            Some((_, _, rust)) => rust[usize::from(large)],
            None => match PLAIN.iter().find(|(name, ..)| *name == self.base) {
                Some((_, _, rust)) => rust,
                None if matches!(&self.base[..], "T_cb_safety" | "T_source_order") => "c_int",
                None => "*mut c_void",
            },
        };
        match self.shape {
            Shape::Value => base.into(),
            Shape::Pointer | Shape::Output => format!("*mut {base}"),
            Shape::ConstPointer | Shape::Input => format!("*const {base}"),
            Shape::Triples => "*mut [c_int; 3]".into(),
            Shape::Function => "*const c_void".into(),
        }
    }

    /// An argument as the library's own functions take it: one type for both forms, and pointers with the promise that
    /// every C program makes.
    pub fn pass(&self, name: &str, large: bool) -> String {
        let int = !large && self.base != "a";
        match self.shape {
            Shape::Value if self.pair() && int => format!("i64::from({name})"),
            Shape::Value if self.pair() => format!("{name} as i64"),
            Shape::Value if self.base == "str" => format!("Text::new({name}.cast_mut())"),
            Shape::Value if self.base == "text" => format!("Text::new({name})"),
            Shape::Value | Shape::Function => name.into(),
            _ => {
                let constant = matches!(self.shape, Shape::ConstPointer | Shape::Input);
                let place = if constant { format!("{name}.cast_mut()") } else { name.into() };
                match self.pair() {
                    true if int => format!("Counts::Int(Pointer::new({place}))"),
                    true => format!("Counts::Long(Pointer::new({place}.cast()))"),
                    false => format!("Pointer::new({place})"),
                }
            }
        }
    }
}
