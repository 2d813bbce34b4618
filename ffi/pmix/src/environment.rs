//! What a launcher with PMIx leaves in the environment.

use std::ffi::OsString;

use crate::bindings::{NSPACE_BYTES, RANK_WILDCARD};
use crate::error::{Error, Result};

/// This process's place in a PMIx job, read from `PMIX_*` variables and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// `PMIX_NAMESPACE`: the job's name.
    pub namespace: String,
    /// `PMIX_RANK`.
    pub rank: u32,
}

impl Environment {
    /// Reads this process's environment; `None` when no launcher with PMIx started it.
    ///
    /// # Errors
    /// It is half there, or makes no sense.
    pub fn read() -> Result<Option<Self>> {
        Self::from_variables(std::env::vars_os())
    }

    /// The same from any source of variables.
    ///
    /// # Errors
    /// As of [`Environment::read`].
    pub fn from_variables(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Option<Self>> {
        let (mut namespace, mut rank, mut server) = (None, None, false);
        for (name, value) in variables {
            match name.to_str() {
                Some("PMIX_NAMESPACE") => namespace = Some(value.to_string_lossy().into_owned()),
                Some("PMIX_RANK") => rank = Some(value.to_string_lossy().into_owned()),
                // A letter or two behind it say which releases of libpmix can read the address.
                Some(name) => server |= name.starts_with("PMIX_SERVER_URI"),
                None => {}
            }
        }
        let bad =
            |variable, value: &str, reason| Error::Environment { variable, value: value.to_owned(), reason };
        match (namespace, rank) {
            // Tools of a launcher have the address of a server, and no rank.
            (_, None) => Ok(None),
            (None, Some(_)) if !server => Ok(None),
            (Some(_), Some(_)) if !server => Err(bad("PMIX_SERVER_URI", "", "is not set, and PMIX_RANK is")),
            (None, Some(_)) => Err(bad("PMIX_NAMESPACE", "", "is not set, and PMIX_RANK is")),
            (Some(namespace), Some(rank)) => {
                if namespace.is_empty() || namespace.len() >= NSPACE_BYTES || namespace.contains('\0') {
                    return Err(bad("PMIX_NAMESPACE", &namespace, "is not a name of 1 to 255 bytes"));
                }
                let number = rank.parse().ok().filter(|rank| *rank < RANK_WILDCARD);
                let rank = number.ok_or_else(|| bad("PMIX_RANK", &rank, "is not a rank"))?;
                Ok(Some(Self { namespace, rank }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Environment>> {
        Environment::from_variables(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn without_a_launcher_there_is_no_job() {
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&[("PMIX_RANK", "3")]).unwrap(), None);
        assert_eq!(
            read(&[("PMIX_SERVER_URI4", "x;tcp4://127.0.0.1:1"), ("PMIX_NAMESPACE", "job")]).unwrap(),
            None
        );
    }

    #[test]
    fn a_good_environment() {
        let found =
            read(&[("PMIX_NAMESPACE", "job@1"), ("PMIX_RANK", "2"), ("PMIX_SERVER_URI41", "x;tcp4://h:1")]);
        assert_eq!(found.unwrap(), Some(Environment { namespace: "job@1".into(), rank: 2 }));
    }

    #[test]
    fn a_bad_environment_is_named() {
        let long = "x".repeat(256);
        let table: &[(&str, &str, &str, &str)] = &[
            ("job", "x", "u", "PMIX_RANK"),
            ("job", "-1", "u", "PMIX_RANK"),
            ("job", "4294967294", "u", "PMIX_RANK"),
            ("", "0", "u", "PMIX_NAMESPACE"),
            (&long, "0", "u", "PMIX_NAMESPACE"),
        ];
        for (namespace, rank, server, wrong) in table {
            let variables =
                [("PMIX_NAMESPACE", *namespace), ("PMIX_RANK", rank), ("PMIX_SERVER_URI2", server)];
            match read(&variables) {
                Err(Error::Environment { variable, .. }) => assert_eq!(variable, *wrong),
                other => panic!("{variables:?}: {other:?}"),
            }
        }
        for (variables, wrong) in [
            ([("PMIX_NAMESPACE", "job"), ("PMIX_RANK", "0")], "PMIX_SERVER_URI"),
            ([("PMIX_SERVER_URI2", "u"), ("PMIX_RANK", "0")], "PMIX_NAMESPACE"),
        ] {
            match read(&variables) {
                Err(Error::Environment { variable, .. }) => assert_eq!(variable, wrong),
                other => panic!("{variables:?}: {other:?}"),
            }
        }
    }
}
