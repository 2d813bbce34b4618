//! Programs that people run on Transom: wordcount, heat.
