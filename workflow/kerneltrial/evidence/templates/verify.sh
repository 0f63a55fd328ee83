#!/bin/sh
# Checks this bundle with coreutils and ssh-keygen alone. It runs nothing that came with the bundle but itself; read it.
#
#   sh verify.sh ALLOWED_SIGNERS [YYYYMMDD]
#
# ALLOWED_SIGNERS is an OpenSSH file of public keys that YOU got from the people, not from this bundle. The day is the
# one on which the keys must have been valid; today where it is left out.
set -eu
export LC_ALL=C TZ=UTC

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: sh verify.sh ALLOWED_SIGNERS [YYYYMMDD]" >&2
  exit 2
fi
if [ ! -f "$1" ]; then
  echo "$1: there is no such file of keys; usage: sh verify.sh ALLOWED_SIGNERS [YYYYMMDD]" >&2
  exit 2
fi
keys=$(CDPATH= cd -- "$(dirname -- "$1")" && pwd -P)/$(basename -- "$1")
when=${2:+-Overify-time=$2}
CDPATH= cd -- "$(dirname -- "$0")"
here=$(pwd -P)
case $keys in
"$here"/*)
  echo "FAILED: the keys lie in the bundle; bring your own" >&2
  exit 1
  ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
failed=0

say() { printf '%-12s %s\n' "$1" "$2" | plain; }

# Names come from the bundle: nothing in them steers the terminal.
plain() { tr -c '\12\40-\176' '?'; }

# Lines that hold such names are set in, so that none looks like one of this script.
quote() { plain | sed 's/^/    /'; }

# who FILE SIGNATURE NAMESPACE: checks a signature by the reader's own keys
who() {
  if [ ! -f "$2" ]; then
    if [ "$3" = kerneltrial-seal ]; then
      say "FAILED" "$3: not signed, so anyone may have made these bytes"
      failed=1
    else
      say "none" "$3: not signed"
    fi
    return
  fi
  for name in $(ssh-keygen -Y find-principals $when -s "$2" -f "$keys" 2>/dev/null | tr ',' ' '); do
    if ssh-keygen -Y verify $when -n "$3" -I "$name" -s "$2" -f "$keys" <"$1" >"$scratch/said" 2>/dev/null; then
      say "ok" "$3: $(cat "$scratch/said")"
      return
    fi
  done
  say "FAILED" "$3: no key of yours made this signature of these bytes, or it had expired"
  failed=1
}

# What is read must be files that end: no pipe, no device, no link to one.
if [ -n "$(find . ! -type f ! -type d | head -n 1)" ]; then
  find . ! -type f ! -type d | quote
  say "FAILED" "bytes: no plain file, so nothing was read"
  echo "Do not believe this bundle."
  exit 1
fi

# Names are compared before anything is hashed: SHA256SUMS could name what never ends, such as /dev/zero.
find . ! -type d | sed 's|^\./||' | grep -v -x -e SHA256SUMS -e SHA256SUMS.sig | sort >"$scratch/here"
sed 's/^[0-9a-f]*  //' SHA256SUMS | sort >"$scratch/named"
if grep -q -v '^[0-9a-f]\{64\}  [^/]' SHA256SUMS; then
  say "FAILED" "bytes: SHA256SUMS holds lines that are no digest and name, so no file was read"
  failed=1
elif ! cmp -s "$scratch/here" "$scratch/named" || [ -n "$(uniq -d "$scratch/named")" ]; then
  comm -3 "$scratch/here" "$scratch/named" | quote
  say "FAILED" "bytes: the files here are not those that SHA256SUMS names, so none was read"
  failed=1
else
  say "ok" "bytes: nothing extra, nothing missing"
  if sha256sum --quiet -c SHA256SUMS >"$scratch/sums" 2>&1; then
    say "ok" "bytes: $(wc -l <SHA256SUMS) files have the digests in SHA256SUMS"
  else
    quote <"$scratch/sums"
    say "FAILED" "bytes: a file was changed"
    failed=1
  fi
fi

for folder in results/*/cache results/*/private results/*/logs results/*/aside; do
  if [ -e "$folder" ]; then
    say "FAILED" "bytes: $folder is no part of evidence"
    failed=1
  fi
done

signed=$(echo results/*/signed)
who SHA256SUMS SHA256SUMS.sig kerneltrial-seal
who "$signed/lock-page.txt" "$signed/lock-page.txt.lock.sig" kerneltrial-lock
who "$signed/lock-page.txt" "$signed/lock-page.txt.receipt.sig" kerneltrial-receipt

if [ "$failed" = 0 ]; then
  echo "The bytes are whole. What they say was not looked into: for that run \`kerneltrial verify\` (see VERIFY.md)."
else
  echo "Do not believe this bundle."
fi
exit "$failed"
