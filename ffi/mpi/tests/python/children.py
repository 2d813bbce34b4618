# Windows over memory of Python's and of NumPy's, while multiprocessing and subprocess make processes of all kinds: a child sees what was
# there, and changes nothing here.
import multiprocessing
import os
import subprocess

import numpy as np

array = None


def child(queue, number):
    before = int(array.sum())
    array[:] = 99
    queue.put((number, before))


def square(number):
    return number * number


def main():
    # Not above: what is spawned imports this file, too, and is no rank.
    from mpi4py import MPI

    global array
    comm = MPI.COMM_WORLD
    right = (comm.rank + 1) % comm.size
    array = np.ones(100_003, dtype="i8")
    own = bytearray(5000)
    wins = [MPI.Win.Create(array, 8, comm=comm), MPI.Win.Create(own, 1, comm=comm)]
    for win in wins:
        assert (win.Get_info().Get("transom_created_as") == "share") == (comm.size > 1)
    expected = array.size
    for turn in range(5):
        comm.Barrier()
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        children = [context.Process(target=child, args=(queue, number)) for number in range(3)]
        for process in children:
            process.start()
        assert sorted(queue.get() for _ in children) == [(number, expected) for number in range(3)]
        for process in children:
            process.join()
            assert process.exitcode == 0, process.exitcode
        for method in ["fork", "spawn"] if turn == 0 else ["fork"]:
            with multiprocessing.get_context(method).Pool(2) as pool:
                assert pool.map(square, range(100)) == [number * number for number in range(100)]
        assert subprocess.run(["sh", "-c", "exit 5"]).returncode == 5
        assert os.system("exit 6") == 6 << 8
        comm.Barrier()
        for win, kind in zip(wins, (MPI.INT64_T, MPI.INT8_T)):
            value = np.array([7], kind.typechar)
            win.Lock(right, MPI.LOCK_SHARED)
            win.Put(value, right, (turn + 3, 1, kind))
            win.Unlock(right)
        comm.Barrier()
        assert array[turn + 3] == 7 and own[turn + 3] == 7 and array[turn + 4] == 1, array[:10]
        expected += 6
    for win in wins:
        win.Free()
    print("all well")


if __name__ == "__main__":
    main()
