//! Type maps written out, straight from the definitions of the standard.

use proptest::prelude::*;
use transom_transport::DataType;

use crate::Result;
use crate::datatype::{Datatype, Distribution, Order, basic};

/// A type map: displacements and basic types, and the explicit bounds.
#[derive(Debug, Clone, Default)]
pub(super) struct Map {
    pub(super) entries: Vec<(i64, DataType)>,
    marks: Option<(i64, i64)>,
}

impl Map {
    /// Copies of `self` at `displacements`, in this order, behind what is there.
    fn place(&mut self, part: &Self, displacements: impl IntoIterator<Item = i64>) {
        for at in displacements {
            self.entries.extend(part.entries.iter().map(|(disp, ty)| (disp + at, *ty)));
            if let Some((low, high)) = part.marks {
                let (low, high) = (low + at, high + at);
                let (a, b) = self.marks.unwrap_or((low, high));
                self.marks = Some((a.min(low), b.max(high)));
            }
        }
    }

    fn copies(part: &Self, displacements: impl IntoIterator<Item = i64>) -> Self {
        let mut map = Self::default();
        map.place(part, displacements);
        map
    }

    pub(super) fn instances(&self, count: usize) -> Self {
        let extent = self.extent();
        Self::copies(self, (0..count as i64).map(|i| i * extent))
    }

    /// Offset and length of data in order, not merged.
    pub(super) fn fields(&self) -> Vec<(i64, usize)> {
        let fields = |(disp, ty): &(i64, DataType)| {
            let disp = *disp;
            basic::fields(*ty).map(move |(offset, len)| (disp + offset as i64, len))
        };
        self.entries.iter().flat_map(fields).collect()
    }

    pub(super) fn true_bounds(&self) -> Option<(i64, i64)> {
        let fields = self.fields();
        let low = fields.iter().map(|field| field.0).min()?;
        Some((low, fields.iter().map(|field| field.0 + field.1 as i64).max()?))
    }

    pub(super) fn bounds(&self) -> (i64, i64) {
        if let Some(marks) = self.marks {
            return marks;
        }
        let Some((low, mut high)) = self.true_bounds() else { return (0, 0) };
        let alignment = self.entries.iter().map(|entry| basic::alignment(entry.1)).max().unwrap_or(1);
        while (high - low) % alignment as i64 != 0 {
            high += 1;
        }
        (low, high)
    }

    pub(super) fn extent(&self) -> i64 {
        self.bounds().1 - self.bounds().0
    }

    pub(super) fn size(&self) -> usize {
        self.fields().iter().map(|field| field.1).sum()
    }

    /// Runs as long as the order allows.
    pub(super) fn runs(&self) -> Vec<(i64, usize)> {
        let mut runs: Vec<(i64, usize)> = Vec::new();
        for (offset, len) in self.fields() {
            match runs.last_mut() {
                Some(last) if last.0 + last.1 as i64 == offset => last.1 += len,
                _ => runs.push((offset, len)),
            }
        }
        runs
    }

    /// Runs of elements of one type.
    pub(super) fn elements(&self) -> Vec<(i64, usize, DataType)> {
        let mut runs: Vec<(i64, usize, DataType)> = Vec::new();
        for (offset, ty) in &self.entries {
            match runs.last_mut() {
                Some(last) if last.2 == *ty && last.0 + (last.1 * ty.size()) as i64 == *offset => last.1 += 1,
                _ => runs.push((*offset, 1, *ty)),
            }
        }
        runs
    }
}

/// How to make a type.
#[derive(Debug, Clone)]
pub(super) enum Recipe {
    Basic(DataType),
    Dup(Box<Recipe>),
    Contiguous(usize, Box<Recipe>),
    Vector(usize, usize, i64, bool, Box<Recipe>),
    Indexed(Vec<(usize, i64)>, bool, Box<Recipe>),
    IndexedBlock(usize, Vec<i64>, bool, Box<Recipe>),
    Structure(Vec<(usize, i64, Recipe)>),
    Subarray(Vec<(usize, usize, usize)>, bool, Box<Recipe>),
    Darray(Vec<(usize, Distribution, usize)>, usize, bool, Box<Recipe>),
    Resized(i64, i64, Box<Recipe>),
}

impl Recipe {
    pub(super) fn datatype(&self) -> Result<Datatype> {
        let order = |fortran: &bool| if *fortran { Order::Fortran } else { Order::C };
        match self {
            Self::Basic(ty) => Ok(Datatype::basic(*ty)),
            Self::Dup(inner) => inner.datatype()?.dup(),
            Self::Contiguous(count, inner) => Datatype::contiguous(*count, &inner.datatype()?),
            Self::Vector(count, len, stride, false, inner) => {
                Datatype::vector(*count, *len, *stride, &inner.datatype()?)
            }
            Self::Vector(count, len, stride, true, inner) => {
                Datatype::hvector(*count, *len, *stride, &inner.datatype()?)
            }
            Self::Indexed(blocks, false, inner) => Datatype::indexed(blocks, &inner.datatype()?),
            Self::Indexed(blocks, true, inner) => Datatype::hindexed(blocks, &inner.datatype()?),
            Self::IndexedBlock(len, at, false, inner) => {
                Datatype::indexed_block(*len, at, &inner.datatype()?)
            }
            Self::IndexedBlock(len, at, true, inner) => {
                Datatype::hindexed_block(*len, at, &inner.datatype()?)
            }
            Self::Structure(fields) => {
                let field = |(len, at, ty): &(usize, i64, Self)| Ok((*len, *at, ty.datatype()?));
                Datatype::structure(&fields.iter().map(field).collect::<Result<Vec<_>>>()?)
            }
            Self::Subarray(dims, fortran, inner) => {
                let sizes: Vec<_> = dims.iter().map(|dim| dim.0).collect();
                let subsizes: Vec<_> = dims.iter().map(|dim| dim.1).collect();
                let starts: Vec<_> = dims.iter().map(|dim| dim.2).collect();
                Datatype::subarray(&sizes, &subsizes, &starts, order(fortran), &inner.datatype()?)
            }
            Self::Darray(dims, rank, fortran, inner) => {
                let gsizes: Vec<_> = dims.iter().map(|dim| dim.0).collect();
                let distributions: Vec<_> = dims.iter().map(|dim| dim.1).collect();
                let psizes: Vec<_> = dims.iter().map(|dim| dim.2).collect();
                let size = psizes.iter().product();
                let inner = inner.datatype()?;
                Datatype::darray(size, *rank, &gsizes, &distributions, &psizes, order(fortran), &inner)
            }
            Self::Resized(lower_bound, extent, inner) => inner.datatype()?.resized(*lower_bound, *extent),
        }
    }

    pub(super) fn map(&self) -> Map {
        let blocks = |blocks: &[(usize, i64)], bytes: bool, inner: &Self| {
            let inner = inner.map();
            let unit = if bytes { 1 } else { inner.extent() };
            let mut map = Map::default();
            blocks.iter().for_each(|(len, at)| map.place(&inner.instances(*len), [at * unit]));
            map
        };
        match self {
            Self::Basic(ty) => Map { entries: vec![(0, *ty)], marks: None },
            Self::Dup(inner) => inner.map(),
            Self::Contiguous(count, inner) => inner.map().instances(*count),
            Self::Vector(count, len, stride, bytes, inner) => {
                let list: Vec<_> = (0..*count as i64).map(|i| (*len, i * stride)).collect();
                blocks(&list, *bytes, inner)
            }
            Self::Indexed(list, bytes, inner) => blocks(list, *bytes, inner),
            Self::IndexedBlock(len, at, bytes, inner) => {
                let list: Vec<_> = at.iter().map(|at| (*len, *at)).collect();
                blocks(&list, *bytes, inner)
            }
            Self::Structure(fields) => {
                let mut map = Map::default();
                fields.iter().for_each(|(len, at, inner)| map.place(&inner.map().instances(*len), [*at]));
                map
            }
            Self::Subarray(dims, fortran, inner) => {
                let owned =
                    |dim: usize, index: usize| (dims[dim].2..dims[dim].2 + dims[dim].1).contains(&index);
                let sizes: Vec<_> = dims.iter().map(|dim| dim.0).collect();
                array(&inner.map(), &sizes, *fortran, owned)
            }
            Self::Darray(dims, rank, fortran, inner) => {
                let mut coordinates = vec![0; dims.len()];
                let mut rest = *rank;
                for dim in (0..dims.len()).rev() {
                    coordinates[dim] = rest % dims[dim].2;
                    rest /= dims[dim].2;
                }
                let owned = |dim: usize, index: usize| {
                    let (size, distribution, width) = dims[dim];
                    let block = match distribution {
                        Distribution::None => size,
                        Distribution::Block(len) => len.unwrap_or(size.div_ceil(width)),
                        Distribution::Cyclic(len) => len.unwrap_or(1),
                    };
                    index / block % width == coordinates[dim]
                };
                let sizes: Vec<_> = dims.iter().map(|dim| dim.0).collect();
                array(&inner.map(), &sizes, *fortran, owned)
            }
            Self::Resized(lower_bound, extent, inner) => {
                Map { marks: Some((*lower_bound, lower_bound + extent)), ..inner.map() }
            }
        }
    }
}

/// The elements of an array that are owned in each dimension, in the order of memory.
fn array(inner: &Map, sizes: &[usize], fortran: bool, owned: impl Fn(usize, usize) -> bool) -> Map {
    let total: usize = sizes.iter().product();
    let mut map = Map::default();
    for element in 0..total {
        let mut rest = element;
        let mut mine = true;
        let mut dimension = |dim: usize| {
            mine &= owned(dim, rest % sizes[dim]);
            rest /= sizes[dim];
        };
        if fortran {
            (0..sizes.len()).for_each(&mut dimension);
        } else {
            (0..sizes.len()).rev().for_each(&mut dimension);
        }
        if mine {
            map.place(inner, [element as i64 * inner.extent()]);
        }
    }
    Map { marks: Some((0, total as i64 * inner.extent())), ..map }
}

fn distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        proptest::option::of(1..4_usize).prop_map(Distribution::Cyclic),
        Just(Distribution::Block(None)),
        (5..7_usize).prop_map(|len| Distribution::Block(Some(len))),
    ]
}

/// Types up to three constructors deep, with a few hundred elements at most.
pub(super) fn recipe() -> impl Strategy<Value = Recipe> {
    let leaf = proptest::sample::select(&DataType::ALL[..]).prop_map(Recipe::Basic);
    leaf.prop_recursive(3, 12, 3, |inner| {
        let one = inner.clone().prop_map(Box::new);
        let dim = (1..5_usize)
            .prop_flat_map(|size| (Just(size), 1..=size))
            .prop_flat_map(|(size, len)| (Just(size), Just(len), 0..=size - len));
        let dealt = (1..6_usize, distribution(), 1..3_usize);
        let dealt = prop_oneof![dealt, (1..6_usize).prop_map(|size| (size, Distribution::None, 1))];
        let dealt = proptest::collection::vec(dealt, 1..3).prop_flat_map(|dims| {
            let size: usize = dims.iter().map(|dim| dim.2).product();
            (Just(dims), 0..size)
        });
        let pairs = proptest::collection::vec((0..4_usize, -6..10_i64), 0..6);
        let bytes = any::<bool>();
        prop_oneof![
            one.clone().prop_map(Recipe::Dup),
            (0..5_usize, one.clone()).prop_map(|(count, ty)| Recipe::Contiguous(count, ty)),
            (0..5_usize, 0..4_usize, -5..9_i64, bytes, one.clone())
                .prop_map(|(a, b, c, d, ty)| Recipe::Vector(a, b, c, d, ty)),
            (pairs, bytes, one.clone()).prop_map(|(a, b, ty)| Recipe::Indexed(a, b, ty)),
            (0..3_usize, proptest::collection::vec(-6..10_i64, 0..6), bytes, one.clone())
                .prop_map(|(a, b, c, ty)| Recipe::IndexedBlock(a, b, c, ty)),
            proptest::collection::vec((0..3_usize, -40..60_i64, inner), 0..4).prop_map(Recipe::Structure),
            (proptest::collection::vec(dim, 1..4), bytes, one.clone())
                .prop_map(|(a, b, ty)| Recipe::Subarray(a, b, ty)),
            (dealt, bytes, one.clone()).prop_map(|((a, b), c, ty)| Recipe::Darray(a, b, c, ty)),
            (-20..20_i64, -20..60_i64, one).prop_map(|(a, b, ty)| Recipe::Resized(a, b, ty)),
        ]
    })
}
