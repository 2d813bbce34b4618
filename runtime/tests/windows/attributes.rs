//! Attributes, hints, names, and errors that say what to do.

use transom::{Class, Flavour, Info, Job, LockKind, MemoryModel, Result, WindowOptions};

pub fn attributes(job: &Job) -> Result<()> {
    for model in [MemoryModel::Unified, MemoryModel::Separate] {
        let options = WindowOptions::unit(2).model(model);
        let created = vec![0u32; job.rank() + 1];
        let address = created.as_ptr() as usize;
        let window = job.create_with(created, &options)?;
        assert_eq!((window.flavour(), window.model()), (Flavour::Create, model));
        assert_eq!(
            (window.base(), window.bytes(), window.len()),
            (address, 4 * (job.rank() + 1), job.rank() + 1)
        );
        assert_eq!((window.displacement_unit(), window.displacement_unit_at(job.size())), (2, None));
        assert_eq!(window.name(), "");
        window.set_name("temperature, °C");
        assert_eq!(window.name(), "temperature, °C");
        window.free()?;
        let window = job.allocate_with::<u64>(3, &options)?;
        assert_eq!((window.flavour(), window.model(), window.bytes()), (Flavour::Allocate, model, 24));
        assert_ne!(window.base(), 0);
        window.free()?;
        let window = job.dynamic_with::<u64>(&options)?;
        assert_eq!((window.flavour(), window.model()), (Flavour::Dynamic, model));
        assert_eq!((window.base(), window.bytes(), window.displacement_unit()), (0, 0, 1));
        window.free()?;
    }
    Ok(())
}

pub fn hints(job: &Job) -> Result<()> {
    let options = WindowOptions::default()
        .with("accumulate_ordering", "rar,waw")
        .with("accumulate_ops", "same_op")
        .with("same_size", "true")
        .with("same_disp_unit", "true")
        .with("somebody_elses", "value");
    let window = job.allocate_with::<u8>(5, &options)?;
    let info: Info = window.info();
    assert_eq!(info.get("accumulate_ops"), Some("same_op"));
    assert_eq!(info.get("same_size"), Some("true"));
    assert_eq!(info.get("no_locks"), Some("false"));
    assert_eq!(info.get("transom_memory_model"), Some("unified"));
    assert_eq!(info.get("somebody_elses"), None);
    window.free()?;
    let ranges = |rank: usize| (16 << rank).to_string();
    let own = WindowOptions::default().with("mpi_accumulate_granularity", &ranges(job.rank()));
    let window = job.allocate_with::<u8>(job.rank(), &own)?;
    assert_eq!(window.info().get("mpi_accumulate_granularity"), Some(&*ranges(job.size() - 1)));
    window.free()?;
    if job.size() > 1 {
        let error = job.allocate_with::<u8>(job.rank(), &options).unwrap_err();
        assert_eq!(error.class(), Class::Size);
        assert!(error.message().contains("same_size"), "{error}");
        let different =
            WindowOptions::default().with("no_locks", if job.rank() == 0 { "true" } else { "false" });
        let error = job.allocate_with::<u8>(1, &different).unwrap_err();
        assert_eq!(error.class(), Class::Info);
        assert!(error.message().contains("differ"), "{error}");
    }
    let error = job.allocate_with::<u8>(1, &WindowOptions::default().with("no_locks", "maybe")).unwrap_err();
    assert_eq!(error.class(), Class::Info);
    assert!(error.message().contains("no_locks") && error.message().contains("true"), "{error}");
    job.barrier()
}

/// Errors of windows name what is wrong and the remedy.
pub fn errors(job: &Job) -> Result<()> {
    let window = job.allocate::<u32>(2)?;
    let number = window.explicit().unlock(0).unwrap_err().window();
    assert!(number.is_some());
    let error = window.attach(vec![1]).unwrap_err();
    assert_eq!((error.class(), error.operation(), error.window()), (Class::RmaFlavour, "attach", number));
    assert!(error.message().contains("Communicator::dynamic"), "{error}");
    assert_eq!(window.detach(8).unwrap_err().class(), Class::RmaFlavour);
    let overlapping = window.overlapping(0..3, &WindowOptions::default()).unwrap_err();
    assert_eq!(overlapping.class(), Class::RmaRange);
    // A window that is in use is not freed: the epoch is closed first. Nobody waits.
    window.lock(LockKind::Shared, job.rank(), |_| {
        assert_eq!(window.explicit().fence(transom::Assert::NONE).unwrap_err().class(), Class::RmaSync);
        Ok(())
    })?;
    window.free()?;

    let dynamic = job.dynamic::<u32>()?;
    let error = dynamic.attach(Vec::new()).unwrap_err();
    assert_eq!(error.class(), Class::RmaAttach);
    assert!(error.message().contains("attach elements"), "{error}");
    for error in [dynamic.detach(64).unwrap_err(), dynamic.with_attached(64, |_| Ok(())).unwrap_err()] {
        assert_eq!(error.class(), Class::RmaAttach);
        assert!(error.message().contains("0x40") && error.message().contains("Window::attach"), "{error}");
    }
    let address = dynamic.attach(vec![1])?;
    dynamic.with_attached(address, |_| {
        let error = dynamic.detach(address).unwrap_err();
        assert_eq!(error.class(), Class::RmaAttach);
        assert!(error.message().contains("with_attached"), "{error}");
        Ok(())
    })?;
    let error = dynamic.overlapping(0..0, &WindowOptions::default()).unwrap_err();
    assert_eq!(error.class(), Class::Window);
    dynamic.detach(address)?;
    dynamic.free()?;

    let window = job.create(vec![0u32; 2])?;
    let other = window.overlapping(1..2, &WindowOptions::default())?;
    let error = window.reclaim().unwrap_err();
    assert_eq!(error.class(), Class::Window);
    assert!(error.message().contains("free that one first"), "{error}");
    other.free()
}
