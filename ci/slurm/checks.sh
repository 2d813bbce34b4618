#!/bin/bash
# checks.sh DIR: run by run.sh inside the cluster. One line a check.
. ci/slurm/common.sh "$1"

begin
submit launcher/slurm/transom.sbatch wordcount --tsv "${files[@]}"
finish
check "sbatch transom.sbatch, 2 nodes, 4 ranks: same counts as coreutils" completed
check "it leaves nothing" nothing_left

submit launcher/slurm/transom.sbatch wordcount "${files[@]}"
finish
check "its ranks are on both nodes and talk over tcp" grep -q 'tcp: ' $out/stdout

TRANSOM_TRANSPORT=shm,ofi submit launcher/slurm/transom.sbatch wordcount "${files[@]}"
finish
check "over ofi if they are told so" grep -q 'ofi: ' $out/stdout

TRANSOM_TRANSPORT=shm submit launcher/slurm/transom.sbatch wordcount --tsv "${files[@]}"
finish
check "shared memory alone does not reach the other node" \
    failed_with 1 'ranks are on several hosts, and TRANSOM_TRANSPORT names no network: verbs, ofi or tcp'

submit launcher/slurm/transom.sbatch sh -c '[ $PMI_RANK != 3 ] || exit 7; exec sleep 98765'
finish
check "a rank that fails: its code, its name, its node" failed_with 7 'rank 3 (pid [0-9]*) on host n2'
check "it leaves nothing" nothing_left

submit launcher/slurm/transom.sbatch sleep 98765
check "four ranks run" four_run 10
scancel "$job"
finish
check "scancel ends a job" test "$(state)" = CANCELLED
check "it leaves nothing" nothing_left

srun --quiet --mpi=pmi2 -K -N2 -n4 timeout 240 wordcount --tsv "${files[@]}" >$out/stdout 2>$out/stderr </dev/null
check "srun --mpi=pmi2: same counts as coreutils" cmp $out/expected $out/stdout
srun --quiet --mpi=pmi2 -K -N2 -n4 timeout 240 wordcount "${files[@]}" >$out/stdout 2>$out/stderr </dev/null
check "its ranks talk over tcp" grep -q 'tcp: ' $out/stdout
has_pmix=
if srun --mpi=list 2>&1 | grep -qw pmix && [ -n "$(ls /usr/lib/*/pmix2/lib/libpmix.so 2>/dev/null)" ]; then
    has_pmix=yes
    for ranks in 4 32; do
        srun --quiet --mpi=pmix -K -N2 -n$ranks -O timeout 240 wordcount --tsv "${files[@]}" >$out/stdout 2>$out/stderr </dev/null
        check "srun --mpi=pmix, $ranks ranks: same counts as coreutils" cmp $out/expected $out/stdout
    done
    srun --quiet --mpi=pmix -K -N2 -n4 timeout 240 wordcount "${files[@]}" >$out/stdout 2>$out/stderr </dev/null
    check "its ranks talk over tcp" grep -q '^4 ranks .*tcp: ' $out/stdout
    TRANSOM_TRANSPORT=shm srun --quiet --mpi=pmix -K -N2 -n4 timeout 240 wordcount --tsv "${files[@]}" >$out/stdout 2>$out/stderr </dev/null
    check "without a network they say why they cannot" grep -q 'TRANSOM_TRANSPORT names no network' $out/stderr
    check "it leaves nothing" nothing_left
else
    echo "skipped: srun --mpi=pmix (needs Slurm's plugin and libpmix2)"
fi
srun --quiet --mpi=none -K -N2 -n4 timeout 240 wordcount --tsv "${files[@]}" >$out/stdout 2>$out/stderr </dev/null
check "srun --mpi=none: told what to type" grep -q 'number [0-3] of 4, .* Type `srun --mpi=pmi2 PROGRAM`' $out/stderr
TRANSOM_TRANSPORT=shm srun --quiet --mpi=pmi2 -K -N2 -n4 timeout 240 wordcount --tsv "${files[@]}" >$out/stdout 2>$out/stderr </dev/null
check "without a network they say why they cannot" grep -q 'TRANSOM_TRANSPORT names no network' $out/stderr
# Four ranks that have counted and stay, by one way to start them; then their end by scancel, and that of others by a rank's failure.
ends_under_srun() {
    local count='wordcount --tsv "$@" >/dev/null;'
    srun --quiet --mpi=$1 -K -N2 -n4 --job-name=endless sh -c "$count exec sleep 98765" sh "${files[@]}" >$out/stdout 2>$out/stderr </dev/null &
    check "four ranks run under srun --mpi=$1" four_run 20
    scancel --name=endless
    wait $!
    check "scancel leaves nothing" nothing_left
    srun --mpi=$1 -K -N2 -n4 timeout 240 sh -c "$count [ \$SLURM_PROCID != 3 ] || exit 7; exec sleep 98765" sh "${files[@]}" >$out/stdout 2>$out/stderr </dev/null
    check "a rank that fails ends the others" test $? != 0
    check "its number, its node, its code" grep -q 'error: n2: task 3: Exited with exit code 7' $out/stderr
    check "it leaves nothing" nothing_left
}
ends_under_srun pmi2
[ -z "$has_pmix" ] || ends_under_srun pmix

# Last, since Slurm does not notice for long that nothing comes from a node any more.
submit launcher/slurm/transom.sbatch sleep 98765
check "four ranks run" four_run 10
begin
ip link set node2 down
# Slurm calls the job COMPLETING until it hears of the node again.
wait_until 30 COMPLETING
check "a node without power ends the job, and is named" failed_with 1 'host n2 has given no sign of life for 10 s .*its 2 ranks are lost'
ip link set node2 up
check "what is left of it there has ended, too" gone '(^|/)(sleep 98765|transom (run|agent|exec-rank))' 15

echo "$passed passed, $failed failed"
[ $failed = 0 ]
