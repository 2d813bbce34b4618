//! The tables: types, sets of them, and functions.

use std::collections::BTreeMap;

use crate::Result;

/// A type that functions are defined for.
#[derive(Debug, Clone)]
pub struct Type {
    /// In names of functions.
    pub name: String,
    pub rust: String,
    pub c: String,
}

impl Type {
    /// The type of C that this is another name for: those of one name are one to `_Generic` and to overloads.
    pub fn canonical(&self) -> &str {
        match &*self.c {
            "int8_t" => "signed char",
            "int16_t" => "short",
            "int32_t" => "int",
            "int64_t" | "ptrdiff_t" => "long",
            "uint8_t" => "unsigned char",
            "uint16_t" => "unsigned short",
            "uint32_t" => "unsigned int",
            "uint64_t" | "size_t" => "unsigned long",
            other => other,
        }
    }
}

/// An argument: its type, `T` in it for that of the function, and its name.
#[derive(Debug, Clone)]
pub struct Argument {
    pub ty: String,
    pub name: String,
}

/// A line of the table of functions.
#[derive(Debug)]
pub struct Function {
    /// The types that it is there for; none if it has no type.
    pub types: Vec<Type>,
    pub returns: String,
    /// `@` stands for the type's name.
    pub template: String,
    pub arguments: Vec<Argument>,
    flags: String,
}

impl Function {
    pub fn has_context(&self) -> bool {
        self.flags.contains('c')
    }

    pub fn is_generic(&self) -> bool {
        self.flags.contains('g')
    }

    pub fn is_for_c_alone(&self) -> bool {
        self.flags.contains('o')
    }

    pub fn returns_never(&self) -> bool {
        self.flags.contains('n')
    }

    pub fn has_more_arguments(&self) -> bool {
        self.flags.contains('v')
    }

    /// The name for a type, without a context or with one.
    pub fn name(&self, ty: Option<&Type>, context: bool) -> String {
        let name = self.template.replace('@', ty.map_or("", |ty| &ty.name));
        if context { name.replacen("shmem_", "shmem_ctx_", 1) } else { name }
    }

    /// The name for any type.
    pub fn generic_name(&self) -> String {
        self.template.replace("_@", "")
    }

    /// Each type, or none once.
    pub fn each(&self) -> Vec<Option<&Type>> {
        if self.types.is_empty() { vec![None] } else { self.types.iter().map(Some).collect() }
    }

    /// Types that are different to a compiler.
    pub fn distinct(&self) -> Vec<&Type> {
        let mut distinct: Vec<&Type> = Vec::new();
        for ty in &self.types {
            if distinct.iter().all(|known| known.canonical() != ty.canonical()) {
                distinct.push(ty);
            }
        }
        distinct
    }

    /// Every name that it is exported by.
    pub fn names(&self) -> Vec<String> {
        let forms = if self.has_context() { &[false, true][..] } else { &[false] };
        let name = |ty| forms.iter().map(move |context| self.name(ty, *context));
        self.each().into_iter().flat_map(name).collect()
    }
}

#[derive(Debug, Default)]
pub struct Types {
    types: BTreeMap<String, Type>,
    sets: BTreeMap<String, Vec<Type>>,
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

pub fn types(text: &str) -> Result<Types> {
    let mut all = Types::default();
    for line in lines(text) {
        let wrong = || format!("types.txt: {line}");
        let mut words = line.split(' ');
        match words.next() {
            Some("type") => {
                let mut word = || words.next().map(str::to_owned).ok_or_else(wrong);
                let (name, rust) = (word()?, word()?);
                let c = words.collect::<Vec<_>>().join(" ");
                all.types.insert(name.clone(), Type { name, rust, c });
            }
            Some("set") => {
                let name = words.next().ok_or_else(wrong)?;
                let mut set = Vec::new();
                for word in words {
                    match (all.types.get(word), all.sets.get(word)) {
                        (Some(ty), _) => set.push(ty.clone()),
                        (None, Some(others)) => set.extend(others.iter().cloned()),
                        (None, None) => return Err(format!("{}: {word} is unknown", wrong()).into()),
                    }
                }
                all.sets.insert(name.into(), set);
            }
            _ => return Err(wrong().into()),
        }
    }
    Ok(all)
}

pub fn functions(text: &str, types: &Types) -> Result<Vec<Function>> {
    lines(text)
        .map(|line| function(line, types).map_err(|e| format!("functions.txt: {line}: {e}").into()))
        .collect()
}

fn function(line: &str, types: &Types) -> Result<Function> {
    let mut words = line.splitn(3, ' ');
    let (Some(set), Some(flags), Some(declaration)) = (words.next(), words.next(), words.next()) else {
        return Err("a set, flags and a declaration are expected".into());
    };
    let types = match set {
        "-" => Vec::new(),
        set => types.sets.get(set).cloned().ok_or("there is no such set")?,
    };
    let (head, tail) = declaration.split_once('(').ok_or("there is no (")?;
    let (returns, template) = split(head)?;
    let tail = tail.strip_suffix(')').ok_or("there is no )")?;
    let mut arguments = Vec::new();
    for argument in tail.split(", ").filter(|argument| *argument != "void") {
        let (ty, name) = split(argument)?;
        arguments.push(Argument { ty, name });
    }
    Ok(Function { types, returns, template, arguments, flags: flags.into() })
}

/// A declaration's type and name.
fn split(text: &str) -> Result<(String, String)> {
    let place = text.rfind([' ', '*']).ok_or("a type and a name are expected")?;
    let (ty, name) = text.split_at(place + 1);
    Ok((ty.trim().into(), name.into()))
}
