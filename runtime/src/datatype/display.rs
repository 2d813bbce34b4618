//! Datatypes as text, and their equality.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use super::basic::Leaf;
use super::{Contents, Datatype};

/// Types and list items that are printed before the rest is left out: shared types can unfold to very many.
const PRINTED: usize = 64;

/// Items of one list that are printed.
const LISTED: usize = 8;

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self, &mut { PRINTED })
    }
}

impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn print(f: &mut fmt::Formatter<'_>, ty: &Datatype, budget: &mut usize) -> fmt::Result {
    let Some(left) = budget.checked_sub(1) else { return f.write_char('…') };
    *budget = left;
    match ty.contents() {
        Contents::Basic(ty) => return f.write_str(&Leaf::Of(*ty).name()),
        Contents::Long => return f.write_str(&Leaf::Long.name()),
        Contents::UnsignedLong => return f.write_str(&Leaf::UnsignedLong.name()),
        Contents::Dup(_) => f.write_str("dup(")?,
        Contents::Contiguous { count, .. } => write!(f, "contiguous({count}, ")?,
        Contents::Vector { count, blocklength, stride, .. } => {
            write!(f, "vector({count}, {blocklength}, {stride}, ")?;
        }
        Contents::Hvector { count, blocklength, stride, .. } => {
            write!(f, "hvector({count}, {blocklength}, {stride}, ")?;
        }
        Contents::Indexed { blocks, .. } => write!(f, "indexed({}, ", Listed(blocks))?,
        Contents::Hindexed { blocks, .. } => write!(f, "hindexed({}, ", Listed(blocks))?,
        Contents::IndexedBlock { blocklength, displacements, .. } => {
            write!(f, "indexed_block({blocklength}, {}, ", Listed(displacements))?;
        }
        Contents::HindexedBlock { blocklength, displacements, .. } => {
            write!(f, "hindexed_block({blocklength}, {}, ", Listed(displacements))?;
        }
        Contents::Structure { fields } => return print_fields(f, fields, budget),
        Contents::Subarray { sizes, subsizes, starts, order, .. } => {
            write!(f, "subarray({}, {}, {}, {order:?}, ", Listed(sizes), Listed(subsizes), Listed(starts))?;
        }
        Contents::Darray { size, rank, gsizes, distributions, psizes, order, .. } => {
            let (gsizes, distributions, psizes) = (Listed(gsizes), Listed(distributions), Listed(psizes));
            write!(f, "darray({size}, {rank}, {gsizes}, {distributions}, {psizes}, {order:?}, ")?;
        }
        Contents::Resized { lower_bound, extent, .. } => write!(f, "resized({lower_bound}, {extent}, ")?,
    }
    ty.contents().types().try_for_each(|inner| print(f, inner, budget))?;
    f.write_char(')')
}

fn print_fields(
    f: &mut fmt::Formatter<'_>,
    fields: &[(usize, i64, Datatype)],
    budget: &mut usize,
) -> fmt::Result {
    f.write_str("structure([")?;
    for (i, (blocklength, displacement, ty)) in fields.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { ", " })?;
        if *budget == 0 {
            f.write_char('…')?;
            break;
        }
        write!(f, "({blocklength}, {displacement}, ")?;
        print(f, ty, budget)?;
        f.write_char(')')?;
    }
    f.write_str("])")
}

/// A list of which the first items are printed.
struct Listed<'a, T>(&'a [T]);

impl<T: fmt::Debug> fmt::Display for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (i, item) in self.0.iter().take(LISTED).enumerate() {
            write!(f, "{}{item:?}", if i == 0 { "" } else { ", " })?;
        }
        match self.0.len().saturating_sub(LISTED) {
            0 => f.write_char(']'),
            more => write!(f, ", … {more} more]"),
        }
    }
}

impl PartialEq for Datatype {
    fn eq(&self, other: &Self) -> bool {
        equal(self, other, &mut HashSet::new())
    }
}

impl Eq for Datatype {}

/// Whether both were made in the same way. `known` are pairs that were found equal: types that share others
/// would otherwise be compared again and again.
fn equal(a: &Datatype, b: &Datatype, known: &mut HashSet<(usize, usize)>) -> bool {
    let key = (Arc::as_ptr(&a.0).addr(), Arc::as_ptr(&b.0).addr());
    if key.0 == key.1 || known.contains(&key) {
        return true;
    }
    let same = arguments_equal(a.contents(), b.contents())
        && a.contents().types().zip(b.contents().types()).all(|(a, b)| equal(a, b, known));
    if same {
        known.insert(key);
    }
    same
}

/// Whether constructors and arguments are the same, but for the types.
fn arguments_equal(a: &Contents, b: &Contents) -> bool {
    use Contents::*;
    match (a, b) {
        (Basic(a), Basic(b)) => a == b,
        (Dup(_), Dup(_)) | (Long, Long) | (UnsignedLong, UnsignedLong) => true,
        (Contiguous { count: a, .. }, Contiguous { count: b, .. }) => a == b,
        (
            Vector { count: a, blocklength: b, stride: c, .. },
            Vector { count: d, blocklength: e, stride: f, .. },
        )
        | (
            Hvector { count: a, blocklength: b, stride: c, .. },
            Hvector { count: d, blocklength: e, stride: f, .. },
        ) => (a, b, c) == (d, e, f),
        (Indexed { blocks: a, .. }, Indexed { blocks: b, .. })
        | (Hindexed { blocks: a, .. }, Hindexed { blocks: b, .. }) => a == b,
        (
            IndexedBlock { blocklength: a, displacements: b, .. },
            IndexedBlock { blocklength: c, displacements: d, .. },
        )
        | (
            HindexedBlock { blocklength: a, displacements: b, .. },
            HindexedBlock { blocklength: c, displacements: d, .. },
        ) => (a, b) == (c, d),
        (Structure { fields: a }, Structure { fields: b }) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a.0, a.1) == (b.0, b.1))
        }
        (
            Subarray { sizes: a, subsizes: b, starts: c, order: d, .. },
            Subarray { sizes: e, subsizes: f, starts: g, order: h, .. },
        ) => (a, b, c, d) == (e, f, g, h),
        (
            Darray { size: a, rank: b, gsizes: c, distributions: d, psizes: e, order: f, .. },
            Darray { size: g, rank: h, gsizes: i, distributions: j, psizes: k, order: l, .. },
        ) => (a, b, c, d, e, f) == (g, h, i, j, k, l),
        (Resized { lower_bound: a, extent: b, .. }, Resized { lower_bound: c, extent: d, .. }) => {
            (a, b) == (c, d)
        }
        _ => false,
    }
}
