#!/bin/bash
# scripts.sh DIR PROGRAM: run by run.sh inside a cluster of four nodes that soon notices lost ones: batch scripts as users copy them. PROGRAM
# is bytes.c, linked to Transom.
. ci/slurm/common.sh "$1"
program=$2
export TRANSOM_TRANSPORT=shm,tcp

begin
submit launcher/slurm/single.sbatch wordcount --tsv "${files[@]}"
finish
check "sbatch single.sbatch, 1 node, 4 ranks: same counts as coreutils" completed

last=$((${#files[@]} - 1))
submit --array=0-$last --output=$out/array-%a --error=$out/array-%a.stderr launcher/slurm/array.sbatch wordcount --tsv -- "${files[@]}"
finish
each_as_alone() {
    local index
    for index in "${!files[@]}"; do
        ci/count.sh "${files[index]}" | cmp - $out/array-$index || { cat $out/array-$index.stderr; return 1; }
    done
}
check "sbatch array.sbatch: each task has the counts of its file" each_as_alone

submit launcher/slurm/hetero.sbatch wordcount --tsv "${files[@]}"
finish
check "sbatch hetero.sbatch, 1 + 2 nodes, 5 ranks: same counts as coreutils" completed
submit launcher/slurm/hetero.sbatch wordcount "${files[@]}"
finish
check "the ranks of its components are one job" grep -q '^5 ranks .*tcp: ' $out/stdout
submit launcher/slurm/hetero.sbatch sh -c '[ $PMI_RANK != 4 ] || exit 7; exec sleep 98765'
finish
check "a rank of the second component that fails: its code, its name, its node" failed_with 7 'rank 4 (pid [0-9]*) on host n3'
check "it leaves nothing" nothing_left

submit launcher/slurm/mpi.sbatch "$program" "${files[@]}"
finish
check "sbatch mpi.sbatch, 2 nodes, 4 ranks: as many bytes as there are" \
    cmp <(echo "$(cat "${files[@]}" | wc -c) bytes by 4 ranks") $out/stdout

submit launcher/slurm/requeue.sbatch sh -c '[ $PMI_RANK != 3 ] || exit 7; exec sleep 98765'
finish
check "sbatch requeue.sbatch: a program that fails: its code, its name, its node" failed_with 7 'rank 3 (pid [0-9]*) on host n2'
began_again() { scontrol show job "$job" | grep -q "Restarts=$1 "; }
check "it does not begin again" began_again 0

# A node is lost when all ranks are at work. The job has the same number when it begins again.
rm -f $out/stdout $out/stderr
submit launcher/slurm/requeue.sbatch sh -c '[ -n "${SLURM_RESTART_COUNT:-}" ] || exec sleep 98765; exec wordcount "$@"' sh --tsv "${files[@]}"
check "sbatch requeue.sbatch: four ranks run" four_run 10
ip link set node2 down
# Slurm gives a job that it begins again itself, because it has missed the node before the script has, no nodes for the next two minutes.
wait_until 240 COMPLETED
check "a node is lost: on others the job has the same counts as coreutils" completed
other_nodes() {
    local list
    list=$(scontrol show job "$job" | sed -n 's/^ *NodeList=//p')
    scontrol show hostnames "$list" | tee /dev/stderr | { [ "$(grep -cvx n2)" = 2 ]; }
}
check "they are two, and the lost one is not of them" other_nodes
check "it has begun again once" began_again 1
ip link set node2 up

echo "$passed passed, $failed failed"
[ $failed = 0 ]
