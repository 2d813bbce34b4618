//! Programs that people run on Transom: wordcount, heat.

#![forbid(unsafe_code)]

pub mod count;
pub mod failure;
pub mod heat;
pub mod program;
pub mod progress;
pub mod report;
pub mod table;
pub mod wordcount;
pub mod words;
