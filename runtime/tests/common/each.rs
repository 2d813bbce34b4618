//! Windows of both memory models.

use transom::{Job, MemoryModel, Result, Window, WindowOptions};

/// Runs `program` with windows of `len` zeroed elements, allocated and created, in both memory models.
pub fn each(job: &Job, len: usize, program: impl Fn(&Window<u64>) -> Result<()>) -> Result<()> {
    for model in [MemoryModel::Unified, MemoryModel::Separate] {
        let options = WindowOptions::default().model(model);
        for window in [job.allocate_with(len, &options)?, job.create_with(vec![0; len], &options)?] {
            assert_eq!(window.model(), model);
            program(&window)?;
            window.free()?;
        }
    }
    Ok(())
}
