"""A queue of work: tasks of different lengths, of which each rank takes the next when it is done with one. The numbers 1 to 3,000
are halved if even, else tripled and increased, until they are 1: which takes the most steps?"""

import numpy as np
from mpi4py import MPI

TASKS = 3000
# Rank 0's words: how many tasks are taken, the steps of all, the longest; and behind them the steps of each task.
TAKEN, TOTAL, LONGEST, STEPS = range(4)


def work(number):
    steps = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


comm = MPI.COMM_WORLD
window = MPI.Win.Allocate(8 * (STEPS + TASKS) if comm.rank == 0 else 0, 8, comm=comm)
words = np.frombuffer(window, dtype=np.int64)
words[:] = 0
comm.Barrier()

window.Lock_all()
one, task, steps, order = (np.array([value], np.int64) for value in (1, 0, 0, 0))
while True:
    window.Fetch_and_op(one, task, 0, TAKEN, MPI.SUM)
    window.Flush(0)
    if task[0] >= TASKS:
        break
    steps[0] = work(int(task[0]) + 1)
    order[0] = steps[0] * 10000 + task[0] + 1
    window.Put(steps, 0, STEPS + task[0])
    window.Accumulate(steps, 0, TOTAL, MPI.SUM)
    window.Accumulate(order, 0, LONGEST, MPI.MAX)
    window.Flush_local(0)  # `steps` and `order` are free again
window.Unlock_all()

comm.Barrier()
if comm.rank == 0:
    window.Lock(0, MPI.LOCK_SHARED)
    print(f"{TASKS} numbers took {words[TOTAL]} steps")
    print(f"27 took {words[STEPS + 26]}, the most took {words[LONGEST] % 10000}: {words[LONGEST] // 10000}")
    window.Unlock(0)
window.Free()
