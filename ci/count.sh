#!/bin/bash
# count.sh FILE…: the words of files, counted by coreutils, in the form of `wordcount --tsv`.
set -euo pipefail
export LC_ALL=C
cat "$@" | tr -cs 'A-Za-z' '\n' | tr 'A-Z' 'a-z' | sort | uniq -c | awk 'NF == 2 { print $1 "\t" $2 }' |
    sort -t "$(printf '\t')" -k1,1nr -k2,2
