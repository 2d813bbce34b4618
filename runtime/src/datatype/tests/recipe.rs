//! Random types: what makes a datatype makes its type map, too.

use proptest::prelude::*;
use transom_transport::DataType;

use super::reference::{Map, array};
use crate::Result;
use crate::datatype::{Datatype, Distribution, Order};

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
            Self::Basic(ty) => Map { entries: vec![(0, *ty)], ..Map::default() },
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
        let few = proptest::collection::vec((0..4_usize, -6..10_i64), 0..6);
        // Too many to be copied into the list around them.
        let many = proptest::collection::vec((1..3_usize, -60..90_i64), 17..40);
        let pairs = prop_oneof![3 => few, 1 => many];
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
