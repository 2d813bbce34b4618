//! Random types against their type maps.

use proptest::prelude::*;
use transom_transport::DataType;

use super::recipe::{Recipe, recipe};
use super::{numbers, runs};
use crate::Datatype;
use crate::datatype::basic::Leaf;
use crate::datatype::scalar::Scalar;
use crate::datatype::{ElementRun, basic, zip_runs};

/// A type, its map, and a number of instances.
fn typed() -> impl Strategy<Value = (Recipe, usize)> {
    let small = recipe().prop_filter("small", |recipe| recipe.map().entries.len() < 2000);
    (small, 0..4_usize)
}

/// A buffer around `count` instances, and the index of its address.
fn buffer(ty: &Datatype, count: usize) -> (Vec<u8>, usize) {
    let (low, high) = ty.element_span(count).unwrap().unwrap_or((0, 0));
    let origin = low.min(0).unsigned_abs() as usize + 3;
    let len = origin + high.max(0) as usize + 5;
    ((0..len).map(|i| (i * 7 + i / 256) as u8).collect(), origin)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn layouts_are_those_of_the_type_map((recipe, count) in typed()) {
        let (ty, map) = (recipe.datatype().unwrap(), recipe.map());
        let (low, high) = map.true_bounds().unwrap_or((0, 0));
        prop_assert_eq!(numbers(&ty), (map.size(), map.bounds().0, map.extent(), low, high - low), "{}", ty);
        prop_assert_eq!(ty.basic_count(), map.entries.len());
        let first = map.entries.first().map(|entry| entry.1);
        let uniform = map.entries.iter().all(|entry| Some(entry.1) == first);
        prop_assert_eq!(ty.element(), first.filter(|_| uniform));

        let all = map.instances(count);
        prop_assert_eq!(runs(&ty, count), all.runs(), "{} x {}", count, ty);
        let elements: Vec<_> =
            ty.elements(count).unwrap().map(|ElementRun { offset, count, ty }| (offset, count, ty)).collect();
        prop_assert_eq!(elements, all.elements(), "{} x {}", count, ty);
        prop_assert_eq!(ty.span(count).unwrap(), all.true_bounds());
        let contiguous = map.runs().len() == 1 && map.extent() == map.size() as i64;
        prop_assert_eq!(ty.is_contiguous(), contiguous, "{}", ty);
        if let Some(run) = ty.single_run(count).unwrap() {
            prop_assert_eq!(vec![(run.offset, run.bytes)], all.runs());
        }
        prop_assert_eq!(&ty, &recipe.datatype().unwrap());
    }

    #[test]
    fn cursors_skip_and_stop_anywhere(
        (recipe, count) in typed(),
        steps in proptest::collection::vec((any::<bool>(), 0..60_usize), 1..40),
    ) {
        let (ty, map) = (recipe.datatype().unwrap(), recipe.map().instances(count));
        let bytes: Vec<i64> =
            map.runs().iter().flat_map(|(offset, len)| *offset..*offset + *len as i64).collect();
        let mut cursor = ty.cursor(count).unwrap();
        for (skip, step) in steps {
            let at = cursor.position();
            prop_assert_eq!(at + cursor.remaining(), bytes.len());
            if skip {
                cursor.skip(step);
                prop_assert_eq!(cursor.position(), bytes.len().min(at + step));
            } else if let Some(run) = cursor.next(step) {
                prop_assert!(run.bytes > 0 && run.bytes <= step);
                let expected = &bytes[at..at + run.bytes];
                prop_assert_eq!((run.offset..run.offset + run.bytes as i64).collect::<Vec<_>>(), expected);
                prop_assert_eq!(cursor.position(), at + run.bytes);
            } else {
                prop_assert!(step == 0 || at == bytes.len());
            }
        }
    }

    #[test]
    fn packing_is_in_the_order_of_the_map(
        (recipe, count) in typed(), cut in 0..400_usize, more in 0..90_usize,
    ) {
        let (ty, map) = (recipe.datatype().unwrap(), recipe.map().instances(count));
        let (source, origin) = buffer(&ty, count);
        let index = |offset: i64| (origin as i64 + offset) as usize;
        let data = |(at, len): &(i64, usize)| source[index(*at)..][..*len].to_vec();
        let expected: Vec<u8> = map.fields().iter().flat_map(data).collect();
        let mut packed = vec![1, 2];
        ty.pack(count, &source, origin, &mut packed).unwrap();
        prop_assert_eq!(&packed[2..], &expected[..]);

        let mut part = vec![0; more];
        let got = ty.pack_part(count, cut, &source, origin, &mut part).unwrap();
        let behind = expected.get(cut..).unwrap_or(&[]);
        prop_assert_eq!(&part[..got], &behind[..more.min(behind.len())]);

        // Overlapping data is erroneous to receive: what was written last is there.
        let mut wanted = vec![0xee; source.len()];
        let mut rest = &expected[..];
        for (at, len) in map.fields() {
            wanted[index(at)..][..len].copy_from_slice(&rest[..len]);
            rest = &rest[len..];
        }
        let (mut target, mut position) = (vec![0xee; source.len()], 2);
        ty.unpack(count, &packed, &mut position, &mut target, origin).unwrap();
        prop_assert_eq!(position, packed.len());
        prop_assert_eq!(&target, &wanted);

        let mut parts = vec![0xee; source.len()];
        let cut = cut.min(expected.len());
        ty.unpack_part(count, 0, &expected[..cut], &mut parts, origin).unwrap();
        ty.unpack_part(count, cut, &expected[cut..], &mut parts, origin).unwrap();
        prop_assert_eq!(&parts, &wanted);
    }

    #[test]
    fn external32_comes_back((recipe, count) in typed()) {
        let ty = recipe.datatype().unwrap();
        let (source, origin) = buffer(&ty, count);
        let (mut plain, mut external) = (Vec::new(), Vec::new());
        ty.pack(count, &source, origin, &mut plain).unwrap();
        let scalars = recipe.map().instances(count).entries.into_iter().flat_map(|(_, ty)| Leaf::Of(ty).scalars());
        let same = scalars.clone().all(|(_, scalar)| matches!(scalar, Scalar::Same(_)));
        let bytes: usize = scalars.map(|(_, scalar)| scalar.external_size()).sum();
        prop_assert_eq!(bytes, ty.pack_external_size(count).unwrap());
        let converted = ty.pack_external(count, &source, origin, &mut external);
        if !same {
            // Not every value fits, and not every pattern of bits is a value.
            prop_assert!(converted.is_ok() && external.len() == bytes || external.is_empty());
            return Ok(());
        }
        converted.unwrap();
        prop_assert_eq!(external.len(), bytes);
        let (mut a, mut b) = (vec![0; source.len()], vec![0; source.len()]);
        ty.unpack(count, &plain, &mut 0, &mut a, origin).unwrap();
        ty.unpack_external(count, &external, &mut 0, &mut b, origin).unwrap();
        prop_assert_eq!(a, b);
    }

    #[test]
    fn zipped_layouts_cover_both((a, count_a) in typed(), (b, count_b) in typed()) {
        // As many of each as makes the sizes equal.
        let (ty_a, ty_b) = (a.datatype().unwrap(), b.datatype().unwrap());
        let ty_a = Datatype::contiguous(count_a, &ty_a).unwrap();
        let ty_b = Datatype::contiguous(count_b, &ty_b).unwrap();
        let (count_a, count_b) = (ty_b.size().min(40), ty_a.size().min(40));
        if ty_a.size() * count_a != ty_b.size() * count_b {
            prop_assert!(zip_runs(count_a, &ty_a, count_b, &ty_b).is_err());
            return Ok(());
        }
        let bytes = |ty: &Datatype, count| -> Vec<i64> {
            runs(ty, count).into_iter().flat_map(|(offset, len)| offset..offset + len as i64).collect()
        };
        let expected: Vec<_> = bytes(&ty_a, count_a).into_iter().zip(bytes(&ty_b, count_b)).collect();
        let pieces: Vec<_> = zip_runs(count_a, &ty_a, count_b, &ty_b).unwrap().collect();
        let unrolled: Vec<_> =
            pieces.iter().flat_map(|(a, b, len)| (0..*len as i64).map(move |i| (a + i, b + i))).collect();
        prop_assert_eq!(unrolled, expected);
        for pair in pieces.windows(2) {
            let len = pair[0].2 as i64;
            prop_assert!((pair[0].0 + len, pair[0].1 + len) != (pair[1].0, pair[1].1), "not minimal");
        }
    }

    #[test]
    fn signatures_are_sequences((a, count_a) in typed(), (b, count_b) in typed()) {
        let sequence = |recipe: &Recipe, count: usize| -> Vec<DataType> {
            recipe.map().instances(count).entries.iter().map(|entry| entry.1).collect()
        };
        let same = sequence(&a, count_a) == sequence(&b, count_b);
        let (ty_a, ty_b) = (a.datatype().unwrap(), b.datatype().unwrap());
        prop_assert_eq!(Datatype::matches(count_a, &ty_a, count_b, &ty_b), same);
        // Every basic element on its own.
        let field = |(at, ty): &(i64, DataType)| (1, *at * 3, Datatype::basic(*ty));
        let apart: Vec<_> = a.map().instances(count_a).entries.iter().map(field).collect();
        let apart = Datatype::structure(&apart).unwrap();
        prop_assert!(Datatype::matches(count_a, &ty_a, 1, &apart));
    }

    #[test]
    fn elements_are_counted((recipe, count) in typed(), bytes in 0..3000_usize) {
        let (ty, map) = (recipe.datatype().unwrap(), recipe.map());
        let bytes = if ty.size() == 0 { bytes } else { bytes.min(ty.size() * (count + 1)) };
        let (mut rest, mut elements) = (bytes, 0);
        for (_, ty) in map.instances(count + 1).entries {
            let size = basic::packed_size(ty);
            if rest < size {
                if basic::first_part(ty) == Some(rest) {
                    (rest, elements) = (0, elements + 1);
                }
                break;
            }
            rest -= size;
            elements += basic::parts(ty);
        }
        prop_assert_eq!(ty.get_elements(bytes), (rest == 0).then_some(elements));
        let whole = if ty.size() == 0 { (bytes == 0).then_some(0) } else {
            (bytes % ty.size() == 0).then(|| bytes / ty.size())
        };
        prop_assert_eq!(ty.get_count(bytes), whole);
    }
}
