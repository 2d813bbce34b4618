//! Datatypes as recipes: made by the library's constructors, and written out element by element here.

use transom::datatype::Order;
use transom::{DataType, Datatype, Result};

use super::Random;

#[derive(Debug, Clone)]
pub enum Recipe {
    Basic(DataType),
    Contiguous(usize, Box<Recipe>),
    Vector(usize, usize, i64, Box<Recipe>),
    Hvector(usize, usize, i64, Box<Recipe>),
    Indexed(Vec<(usize, i64)>, Box<Recipe>),
    Hindexed(Vec<(usize, i64)>, Box<Recipe>),
    Structure(Vec<(usize, i64, Recipe)>),
    /// Sizes, subsizes and starts of two dimensions; in C's order or Fortran's.
    Subarray([[usize; 2]; 3], bool, Box<Recipe>),
    Resized(i64, i64, Box<Recipe>),
}

/// So many of a recipe.
#[derive(Debug, Clone)]
pub struct Shape {
    pub count: usize,
    pub recipe: Recipe,
}

/// A type map.
struct Map {
    elements: Vec<(i64, DataType)>,
    low: i64,
    extent: i64,
    /// Whether the bounds were set, and do not follow from the elements.
    set: bool,
}

impl Map {
    /// With the bounds that follow: the extent is a multiple of the alignment (MPI-4.1 §5.1), and does not end before `end`, where
    /// the last of the types ends that it is made of.
    fn of(elements: Vec<(i64, DataType)>, end: i64) -> Self {
        let low = elements.iter().map(|(offset, _)| *offset).min().unwrap_or(0);
        // A pair ends with its index: padding behind that is no data.
        let data = |ty: &DataType| ty.fields().last().map_or(0, |(start, len)| start + len) as i64;
        let high =
            elements.iter().map(|(offset, ty)| offset + data(ty)).max().map_or(0, |high| high.max(end));
        let alignment = elements.iter().map(|(_, ty)| ty.alignment()).max().unwrap_or(1);
        let extent = ((high - low) as usize).next_multiple_of(alignment) as i64;
        Self { elements, low, extent, set: false }
    }

    /// Instances at displacements in bytes.
    fn at(&self, displacements: impl Iterator<Item = i64>) -> Self {
        let (mut elements, mut low, mut high) = (Vec::new(), i64::MAX, i64::MIN);
        for displacement in displacements {
            elements.extend(self.elements.iter().map(|(offset, ty)| (offset + displacement, *ty)));
            low = low.min(displacement + self.low);
            high = high.max(displacement + self.low + self.extent);
        }
        if self.set {
            Self { elements, low, extent: high - low, set: true }
        } else {
            Self::of(elements, high)
        }
    }

    fn blocks(&self, blocks: impl Iterator<Item = (usize, i64)>) -> Self {
        self.at(blocks.flat_map(|(len, at)| (0..len as i64).map(move |i| at + i * self.extent)))
    }
}

impl Recipe {
    fn map(&self) -> Map {
        match self {
            Self::Basic(ty) => Map::of(vec![(0, *ty)], 0),
            Self::Contiguous(count, inner) => inner.map().blocks([(*count, 0)].into_iter()),
            Self::Vector(count, len, stride, inner) => {
                let inner = inner.map();
                inner.blocks((0..*count as i64).map(|i| (*len, i * stride * inner.extent)))
            }
            Self::Hvector(count, len, stride, inner) => {
                inner.map().blocks((0..*count as i64).map(|i| (*len, i * stride)))
            }
            Self::Indexed(blocks, inner) => {
                let inner = inner.map();
                inner.blocks(blocks.iter().map(|(len, at)| (*len, at * inner.extent)))
            }
            Self::Hindexed(blocks, inner) => inner.map().blocks(blocks.iter().copied()),
            Self::Structure(fields) => {
                let parts =
                    fields.iter().map(|(len, at, inner)| inner.map().blocks([(*len, *at)].into_iter()));
                // The generator always sets the bounds of structures: those of this may be wrong.
                Map::of(parts.flat_map(|part| part.elements).collect(), 0)
            }
            Self::Subarray([sizes, subsizes, starts], c, inner) => {
                let inner = inner.map();
                let (outer, fast) = if *c { (0, 1) } else { (1, 0) };
                let row = |i: usize| {
                    (0..subsizes[fast])
                        .map(move |j| ((starts[outer] + i) * sizes[fast] + starts[fast] + j) as i64)
                };
                let map = inner.at((0..subsizes[outer]).flat_map(row).map(|index| index * inner.extent));
                Map { low: 0, extent: (sizes[0] * sizes[1]) as i64 * inner.extent, set: true, ..map }
            }
            Self::Resized(low, extent, inner) => Map { low: *low, extent: *extent, set: true, ..inner.map() },
        }
    }

    pub fn build(&self) -> Result<Datatype> {
        match self {
            Self::Basic(ty) => Ok(Datatype::basic(*ty)),
            Self::Contiguous(count, inner) => Datatype::contiguous(*count, &inner.build()?),
            Self::Vector(count, len, stride, inner) => {
                Datatype::vector(*count, *len, *stride, &inner.build()?)
            }
            Self::Hvector(count, len, stride, inner) => {
                Datatype::hvector(*count, *len, *stride, &inner.build()?)
            }
            Self::Indexed(blocks, inner) => Datatype::indexed(blocks, &inner.build()?),
            Self::Hindexed(blocks, inner) => Datatype::hindexed(blocks, &inner.build()?),
            Self::Structure(fields) => {
                let built = fields.iter().map(|(len, at, inner)| Ok((*len, *at, inner.build()?)));
                Datatype::structure(&built.collect::<Result<Vec<_>>>()?)
            }
            Self::Subarray([sizes, subsizes, starts], c, inner) => {
                let order = if *c { Order::C } else { Order::Fortran };
                Datatype::subarray(sizes, subsizes, starts, order, &inner.build()?)
            }
            Self::Resized(low, extent, inner) => inner.build()?.resized(*low, *extent),
        }
    }
}

impl Shape {
    pub fn row(count: usize, ty: DataType) -> Self {
        Self { count, recipe: Recipe::Basic(ty) }
    }

    /// Offset and type of each element, in order.
    pub fn elements(&self) -> Vec<(i64, DataType)> {
        if let Recipe::Basic(ty) = self.recipe {
            return (0..self.count).map(|i| ((i * ty.size()) as i64, ty)).collect();
        }
        let map = self.recipe.map();
        (0..self.count as i64)
            .flat_map(|i| map.elements.iter().map(move |(offset, ty)| (offset + i * map.extent, *ty)))
            .collect()
    }

    /// The first byte and the end, padding included.
    pub fn span(&self) -> (usize, usize) {
        let elements = self.elements();
        let low = elements.iter().map(|(offset, _)| *offset).min().unwrap_or(0);
        let high = elements.iter().map(|(offset, ty)| offset + ty.size() as i64).max().unwrap_or(0);
        (low as usize, high as usize)
    }

    /// `n` elements of one type. Gaps are multiples of `grain` bytes, which divides the type's size.
    pub fn uniform(random: &mut Random, ty: DataType, n: usize, grain: usize) -> Self {
        let count = random.divisor(n);
        Self { count, recipe: tree(random, ty, n / count, grain, 3) }
    }

    /// `n` times these types.
    pub fn mixed(random: &mut Random, types: &[DataType], n: usize) -> Self {
        let fields = types.iter().map(|ty| (1, Recipe::Basic(*ty))).collect();
        let recipe = structure(random, fields, 1);
        let count = random.divisor(n);
        if count == n {
            return Self { count, recipe };
        }
        Self { count, recipe: Recipe::Contiguous(n / count, Box::new(recipe)) }
    }
}

/// A random layout of `n` elements.
fn tree(random: &mut Random, ty: DataType, n: usize, grain: usize, depth: usize) -> Recipe {
    if depth == 0 || (n == 1 && !random.one_in(3)) {
        return if n == 1 { Recipe::Basic(ty) } else { Recipe::Contiguous(n, Box::new(Recipe::Basic(ty))) };
    }
    let per = random.divisor(n);
    let many = n / per;
    let form = random.below(8);
    if form == 5 {
        let first = 1 + random.below(many);
        let parts = [first, many - first].into_iter().filter(|len| *len > 0);
        let fields = parts.map(|len| (len, tree(random, ty, per, grain, depth - 1))).collect();
        return structure(random, fields, grain);
    }
    let inner = tree(random, ty, per, grain, depth - 1);
    let extent = inner.map().extent;
    let boxed = Box::new(inner);
    let len = random.divisor(many);
    let blocks = many / len;
    match form {
        0 => Recipe::Contiguous(many, boxed),
        1 => Recipe::Vector(blocks, len, (len + random.below(3)) as i64, boxed),
        2 => {
            let stride = len as i64 * extent + (random.below(6) * grain) as i64;
            Recipe::Hvector(blocks, len, stride, boxed)
        }
        3 => Recipe::Indexed(scattered(random, many, 1, 1), boxed),
        4 => Recipe::Hindexed(scattered(random, many, extent, grain), boxed),
        6 => {
            let sizes = [blocks + random.below(2), len + random.below(2)];
            let starts = [random.below(sizes[0] - blocks + 1), random.below(sizes[1] - len + 1)];
            Recipe::Subarray([sizes, [blocks, len], starts], random.one_in(2), boxed)
        }
        _ => {
            let low = -((random.below(3) * grain) as i64);
            let whole = Recipe::Contiguous(many, boxed);
            let (from, to) = Shape { count: 1, recipe: whole.clone() }.span();
            let extent = (to - from + random.below(4) * grain) as i64;
            Recipe::Resized(low, extent, Box::new(whole))
        }
    }
}

/// Blocks of `many` altogether that do not overlap, in any order.
fn scattered(random: &mut Random, many: usize, extent: i64, grain: usize) -> Vec<(usize, i64)> {
    let (mut blocks, mut left, mut at) = (Vec::new(), many, 0);
    while left > 0 {
        let len = 1 + random.below(left);
        at += (random.below(3) * grain) as i64;
        blocks.push((len, at));
        at += len as i64 * extent;
        left -= len;
    }
    random.shuffle(&mut blocks);
    blocks
}

/// A structure of these fields, in order of the list, with gaps between.
fn structure(random: &mut Random, fields: Vec<(usize, Recipe)>, grain: usize) -> Recipe {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    if grain > 1 || random.one_in(2) {
        random.shuffle(&mut order);
    }
    let mut places = vec![0; fields.len()];
    let mut at = 0;
    for i in order {
        let (len, recipe) = &fields[i];
        let (from, to) =
            Shape { count: 1, recipe: Recipe::Contiguous(*len, Box::new(recipe.clone())) }.span();
        at += random.below(3) * grain;
        places[i] = at as i64;
        at += to;
        debug_assert!(from <= to);
    }
    let fields = fields.into_iter().zip(places).map(|((len, recipe), at)| (len, at, recipe)).collect();
    let extent = (at + random.below(3) * grain) as i64;
    Recipe::Resized(0, extent, Box::new(Recipe::Structure(fields)))
}
