"""A distributed hash table: ranks insert words, numbers here, by compare-and-swap of a slot's key, and count them by accumulate."""

import numpy as np
from mpi4py import MPI

WORDS, SLOTS, EMPTY = 1000, 2048, 0  # each rank's
# A rank's window: keys, their counts, and at rank 0 what is found in the end.
KEYS, COUNTS, DIFFERENT, MOST, ALL = 0, SLOTS, 2 * SLOTS, 2 * SLOTS + 1, 2 * SLOTS + 2

comm = MPI.COMM_WORLD
window = MPI.Win.Allocate(ALL * 8, 8, comm=comm)
table = np.frombuffer(window, dtype=np.int64)
table[:] = EMPTY


def random_numbers(state):
    """The minimal standard generator of random numbers."""
    while True:
        state = state * 16807 % 2147483647
        yield state


def insert(number):
    """Counts a word: from its first slot on, the first that is empty or has it."""
    owner, slot = number % comm.size, number // comm.size * 7919 % SLOTS
    word, empty, one, found = (np.array([value], np.int64) for value in (number, EMPTY, 1, 0))
    while True:
        window.Compare_and_swap(word, empty, found, owner, KEYS + slot)
        window.Flush(owner)
        if found[0] in (EMPTY, number):
            window.Accumulate(one, owner, COUNTS + slot, MPI.SUM)
            window.Flush_local(owner)  # `one` is free again
            return
        slot = (slot + 1) % SLOTS


comm.Barrier()
window.Lock_all()
numbers = random_numbers(comm.rank + 1)
for _ in range(WORDS):
    insert(next(numbers) % 500 + 1)
window.Flush_all()
comm.Barrier()  # all is inserted

# Each rank looks at its own part. Of words that are as frequent the smallest is wanted.
window.Sync()
slots = np.flatnonzero(table[KEYS:COUNTS] != EMPTY)
different = np.array([len(slots)], np.int64)
most = np.array([max((table[COUNTS + slots] * 1000 + 999 - table[KEYS + slots]), default=0)], np.int64)
window.Accumulate(different, 0, DIFFERENT, MPI.SUM)
window.Accumulate(most, 0, MOST, MPI.MAX)
window.Flush(0)
comm.Barrier()
if comm.rank == 0:
    window.Sync()
    print(f"{comm.size * WORDS} words, {table[DIFFERENT]} different")
    print(f"{999 - table[MOST] % 1000} is there {table[MOST] // 1000} times")
window.Unlock_all()
window.Free()
