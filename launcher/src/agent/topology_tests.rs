use super::*;

/// A host of two sockets, of each two NUMA nodes of four cores of two threads.
struct Tree {
    folder: tempfile::TempDir,
    /// The name of the file that has the threads of a core.
    threads: &'static str,
}

const NEW: &str = "core_cpus_list";

impl Tree {
    fn new(threads: &'static str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), threads }
    }

    fn write(&self, path: String, text: impl ToString) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.to_string() + "\n").unwrap();
    }

    /// Processor by (core of the host, thread), as `number` numbers them, without those that are offline. The kernel's numbers of cores have
    /// gaps.
    fn with_cpus(self, number: impl Fn(usize, usize) -> usize, offline: &[usize]) -> Self {
        let mut nodes = vec![Vec::new(); 4];
        for core in 0..16 {
            let threads: Vec<usize> = (0..2).map(|thread| number(core, thread)).collect();
            let online: BTreeSet<usize> = threads.into_iter().filter(|cpu| !offline.contains(cpu)).collect();
            for cpu in &online {
                let file = |name: &str| format!("cpu/cpu{cpu}/topology/{name}");
                self.write(file(self.threads), list(&Vec::from_iter(online.clone())));
                self.write(file("physical_package_id"), core / 8);
                self.write(file("core_id"), core % 8 / 4 * 16 + core % 4);
            }
            nodes[core / 4].extend(online);
        }
        for (node, cpus) in nodes.iter_mut().enumerate() {
            cpus.sort_unstable();
            self.write(format!("node/node{node}/cpulist"), list(cpus));
        }
        // Memory without processors, and what is no node.
        self.write("node/node4/cpulist".into(), "");
        self.write("node/power/cpulist".into(), "0-99");
        self
    }

    fn read(&self, allowed: impl IntoIterator<Item = usize>) -> Topology {
        Topology::read(self.folder.path(), &Vec::from_iter(allowed))
    }
}

/// As most firmware numbers them: first the first threads of all cores.
fn threads_last(core: usize, thread: usize) -> usize {
    thread * 16 + core
}

/// As some does: sockets in turn.
fn sockets_in_turn(core: usize, thread: usize) -> usize {
    thread * 16 + core % 8 * 2 + core / 8
}

fn places(topology: &Topology, count: usize, to: Bind, by_numa: bool) -> (Unit, Vec<String>) {
    let places = topology.places(count, Binding { to, by_numa, report: false });
    (places.unit, places.cpus.iter().map(|cpus| list(cpus)).collect())
}

fn lists(topology: &Topology, count: usize, to: Bind, by_numa: bool) -> Vec<String> {
    places(topology, count, to, by_numa).1
}

#[test]
fn cores() {
    for threads in [NEW, "thread_siblings_list"] {
        let all = Tree::new(threads).with_cpus(threads_last, &[]).read(0..32);
        assert_eq!(
            places(&all, 3, Bind::Core, false),
            (Unit::Core, vec!["0,16".into(), "1,17".into(), "2,18".into()])
        );
        assert_eq!(lists(&all, 16, Bind::Core, false)[15], "15,31");
        assert_eq!(lists(&all, 6, Bind::Core, true), ["0,16", "4,20", "8,24", "12,28", "1,17", "5,21"]);
    }
}

/// A thread of its own for each where there is no core; where there is no thread, none is bound.
#[test]
fn more_ranks_than_cores() {
    let all = Tree::new(NEW).with_cpus(threads_last, &[]).read(0..32);
    let (unit, shared) = places(&all, 20, Bind::Core, false);
    assert_eq!((unit, &*shared[15], &*shared[16], &*shared[19]), (Unit::Thread, "15", "16", "19"));
    assert_eq!(lists(&all, 20, Bind::Core, true)[14..18], ["11", "15", "16", "20"]);
    let different: BTreeSet<String> = lists(&all, 32, Bind::Core, true).into_iter().collect();
    assert_eq!(different.len(), 32);
    assert_eq!(places(&all, 33, Bind::Core, false), (Unit::None, Vec::new()));
    assert_eq!(places(&all, 2, Bind::None, false), (Unit::None, Vec::new()));
}

#[test]
fn sockets_and_nodes() {
    let all = Tree::new(NEW).with_cpus(threads_last, &[]).read(0..32);
    let [low, high] = ["0-7,16-23", "8-15,24-31"];
    assert_eq!(
        places(&all, 4, Bind::Socket, false),
        (Unit::Socket, [low, low, high, high].map(Into::into).to_vec())
    );
    assert_eq!(lists(&all, 2, Bind::Socket, false), [low, high]);
    // Neighbours are in different nodes, of which two are in a socket.
    assert_eq!(lists(&all, 5, Bind::Socket, true), [low, low, high, high, low]);
    assert_eq!(lists(&all, 2, Bind::Numa, false), ["0-3,16-19", "4-7,20-23"]);
    assert_eq!(
        lists(&all, 6, Bind::Numa, false)[2..],
        ["4-7,20-23", "8-11,24-27", "8-11,24-27", "12-15,28-31"]
    );
    assert_eq!(lists(&all, 100, Bind::Numa, true)[97..], ["4-7,20-23", "8-11,24-27", "12-15,28-31"]);
}

/// Ranks that follow each other are close to each other, whatever their processors' numbers.
#[test]
fn numbers_in_another_order() {
    let all = Tree::new(NEW).with_cpus(sockets_in_turn, &[]).read(0..32);
    assert_eq!(lists(&all, 9, Bind::Core, false)[6..], ["12,28", "14,30", "1,17"]);
    assert_eq!(lists(&all, 4, Bind::Core, true), ["0,16", "8,24", "1,17", "9,25"]);
    assert_eq!(lists(&all, 1, Bind::Socket, false), ["0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30"]);
    assert_eq!(all.names(&[1, 17]), ["0", "1", "2"]);
    assert_eq!(all.names(&[8, 9]), ["16", "0-1", "1,3"]);
}

#[test]
fn processors_that_are_offline() {
    // One core of two threads, the second thread of another, and a whole node.
    let offline = [0, 16, 17, 4, 5, 6, 7, 20, 21, 22, 23];
    let some =
        Tree::new(NEW).with_cpus(threads_last, &offline).read((0..32).filter(|cpu| !offline.contains(cpu)));
    assert_eq!(lists(&some, 4, Bind::Core, false), ["1", "2,18", "3,19", "8,24"]);
    assert_eq!(lists(&some, 4, Bind::Core, true), ["1", "8,24", "12,28", "2,18"]);
    assert_eq!(lists(&some, 3, Bind::Numa, false), ["1-3,18-19", "8-11,24-27", "12-15,28-31"]);
    assert_eq!(places(&some, 12, Bind::Core, false).0, Unit::Thread);
    assert_eq!(places(&some, 22, Bind::Core, false).0, Unit::None);
}

/// A cpuset, as containers and batch systems have.
#[test]
fn processors_that_may_not_be_used() {
    let tree = Tree::new(NEW).with_cpus(threads_last, &[]);
    let some = tree.read([1, 2, 3, 13, 17]);
    assert_eq!(some.all(), [1, 2, 3, 13, 17]);
    assert_eq!(lists(&some, 4, Bind::Core, false), ["1,17", "2", "3", "13"]);
    assert_eq!(lists(&some, 5, Bind::Core, false), ["1", "2", "3", "13", "17"]);
    // Three ranks share the three cores, and one has the other socket's.
    assert_eq!(lists(&some, 4, Bind::Socket, false), ["1-3,17", "1-3,17", "1-3,17", "13"]);
    assert_eq!(lists(&some, 3, Bind::Numa, true), ["1-3,17", "13", "1-3,17"]);
    assert_eq!(some.names(&some.all()), ["1-3,17", "0-1", "0,3"]);
}

#[test]
fn a_host_that_tells_nothing() {
    let empty = tempfile::tempdir().unwrap();
    let flat = Topology::read(empty.path(), &[0, 1, 2]);
    assert_eq!(lists(&flat, 2, Bind::Core, true), ["0", "1"]);
    assert_eq!(lists(&flat, 2, Bind::Socket, false), ["0-2", "0-2"]);
    assert_eq!(lists(&flat, 1, Bind::Numa, false), ["0-2"]);
    assert_eq!(flat.names(&[0]), ["-", "-", "-"]);
    // As some virtual machines do: no NUMA nodes, and no socket's number.
    let tree = Tree::new(NEW);
    for cpu in 0..3 {
        tree.write(format!("cpu/cpu{cpu}/topology/physical_package_id"), -1);
        tree.write(format!("cpu/cpu{cpu}/topology/core_id"), cpu);
    }
    assert_eq!(lists(&tree.read(0..3), 3, Bind::Numa, true), ["0-2"; 3]);
    assert_eq!(tree.read(0..3).names(&[0, 1, 2]), ["0-2", "-", "-"]);
    // Nothing may be used: as when no processor is known.
    assert!(lists(&tree.read([]), 1, Bind::Numa, false).is_empty());
    assert!(lists(&tree.read([]), 1, Bind::Core, true).is_empty());
}

#[test]
fn lists_of_numbers() {
    for text in ["0", "0-1", "0-2", "0-2,8,10-12"] {
        assert_eq!(list(&Vec::from_iter(parse(text).unwrap())), text);
    }
    for text in ["", "\n", "3-x", "a", "-1"] {
        assert_eq!(parse(text), None, "{text:?}");
    }
    assert!(parse("0-99999999999").unwrap().len() <= (1 << 16) + 1);
}
