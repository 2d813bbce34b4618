//! How a datatype was made (MPI-4.1 §5.1.13).

use std::ffi::c_int;

use super::{Envelope, TYPES, TypeRef, get};
use crate::abi::{Aint, COMBINER_NAMED, Count, Datatype, ERR_ARG, ERR_TYPE};
use crate::failure::{Result, fail};
use crate::pointer::Pointer;

impl Envelope {
    /// As the large forms of constructors have it, if the plain ones cannot say it.
    pub(super) fn in_counts_if_large(mut self) -> Self {
        if self.ints.iter().any(|int| c_int::try_from(*int).is_err()) {
            self.counts = std::mem::take(&mut self.ints);
            self.counts.append(&mut self.addresses);
        }
        self
    }
}

/// The numbers of integers, addresses, large counts and types, and the combiner.
fn numbers(ty: Datatype) -> Result<([usize; 4], c_int)> {
    Ok(match &get(ty)?.envelope {
        None => ([0; 4], COMBINER_NAMED),
        Some(e) => ([e.ints.len(), e.addresses.len(), e.counts.len(), e.types.len()], e.combiner),
    })
}

/// `MPI_Type_get_envelope`.
pub fn type_get_envelope(
    ty: Datatype,
    ints: Pointer<c_int>,
    addresses: Pointer<c_int>,
    types: Pointer<c_int>,
    combiner: Pointer<c_int>,
) -> Result<()> {
    let ([ni, na, nc, nt], kind) = numbers(ty)?;
    if nc > 0 {
        return fail(ERR_TYPE, "the datatype has large counts: use MPI_Type_get_envelope_c");
    }
    for (place, n) in [(ints, ni), (addresses, na), (types, nt)] {
        place.set(c_int::try_from(n).unwrap_or(c_int::MAX))?;
    }
    combiner.set(kind)
}

/// `MPI_Type_get_envelope_c`.
pub fn type_get_envelope_c(
    ty: Datatype,
    ints: Pointer<Count>,
    addresses: Pointer<Count>,
    counts: Pointer<Count>,
    types: Pointer<Count>,
    combiner: Pointer<c_int>,
) -> Result<()> {
    let (numbers, kind) = numbers(ty)?;
    for (place, n) in [ints, addresses, counts, types].into_iter().zip(numbers) {
        place.set(n as Count)?;
    }
    combiner.set(kind)
}

/// Room that a caller has for `there` entries.
fn check_capacity(there: usize, most: i64) -> Result<()> {
    if most < there as i64 {
        return fail(ERR_ARG, format!("room for {most} entries, but there are {there}"));
    }
    Ok(())
}

fn give(
    ty: Datatype,
    most: [i64; 4],
    ints: Pointer<c_int>,
    addresses: Pointer<Aint>,
    counts: Option<Pointer<Count>>,
    types: Pointer<Datatype>,
) -> Result<()> {
    let object = get(ty)?;
    let Some(envelope) = &object.envelope else {
        return fail(ERR_TYPE, "a predefined datatype has no contents");
    };
    let Envelope { ints: i, addresses: a, counts: c, types: t, .. } = envelope;
    for (there, most) in [i.len(), a.len(), c.len(), t.len()].into_iter().zip(most) {
        check_capacity(there, most)?;
    }
    for (place, value) in i.iter().enumerate() {
        ints.set_at(place, c_int::try_from(*value).unwrap_or(c_int::MAX))?;
    }
    for (place, value) in a.iter().enumerate() {
        addresses.set_at(place, *value as Aint)?;
    }
    for (place, value) in c.iter().enumerate() {
        match counts {
            Some(counts) => counts.set_at(place, *value)?,
            None => return fail(ERR_TYPE, "the datatype has large counts: use MPI_Type_get_contents_c"),
        }
    }
    for (place, part) in t.iter().enumerate() {
        // The caller frees the handles of derived types.
        let handle = match part {
            TypeRef::Predefined(handle) => *handle,
            TypeRef::Derived(object) => Datatype(TYPES.insert(object.clone())?),
        };
        types.set_at(place, handle)?;
    }
    Ok(())
}

/// `MPI_Type_get_contents`.
pub fn type_get_contents(
    ty: Datatype,
    most_ints: c_int,
    most_addresses: c_int,
    most_types: c_int,
    ints: Pointer<c_int>,
    addresses: Pointer<Aint>,
    types: Pointer<Datatype>,
) -> Result<()> {
    let most = [most_ints.into(), most_addresses.into(), i64::MAX, most_types.into()];
    give(ty, most, ints, addresses, None, types)
}

/// `MPI_Type_get_contents_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn type_get_contents_c(
    ty: Datatype,
    most_ints: Count,
    most_addresses: Count,
    most_counts: Count,
    most_types: Count,
    ints: Pointer<c_int>,
    addresses: Pointer<Aint>,
    counts: Pointer<Count>,
    types: Pointer<Datatype>,
) -> Result<()> {
    let most = [most_ints, most_addresses, most_counts, most_types];
    give(ty, most, ints, addresses, Some(counts), types)
}
