"""A histogram whose bins are spread over the ranks. Each rank counts its samples for itself, and adds its counts to each rank's bins by
one accumulate."""

import numpy as np
from mpi4py import MPI

SAMPLES, BINS = 20000, 12

comm = MPI.COMM_WORLD


def random_numbers(state):
    """The minimal standard generator of random numbers."""
    while True:
        state = state * 16807 % 2147483647
        yield state


def first(rank):
    """The first bin of a rank."""
    return BINS * rank // comm.size


own = first(comm.rank + 1) - first(comm.rank)
window = MPI.Win.Allocate(own * 8, 8, comm=comm)
np.frombuffer(window, dtype=np.int64)[:] = 0

# The sum of three dice of 0 to 99 that have fallen 20,000 times.
counts = np.zeros(BINS, np.int64)
numbers = random_numbers(comm.rank + 1)
for _ in range(SAMPLES):
    total = sum(next(numbers) % 100 for _ in range(3))
    counts[total * BINS // 298] += 1

window.Fence(MPI.MODE_NOPRECEDE)
for target in range(comm.size):
    window.Accumulate(counts[first(target) : first(target + 1)], target, 0, MPI.SUM)
window.Fence()
if comm.rank == 0:
    for target in range(comm.size):
        window.Get(counts[first(target) : first(target + 1)], target, 0)
window.Fence(MPI.MODE_NOSUCCEED)
for number, count in enumerate(counts) if comm.rank == 0 else []:
    print(f"bin {number:2}: {count:6} {'#' * (count * 200 // (comm.size * SAMPLES))}".rstrip())
window.Free()
