#!/bin/sh
# ssh-keygen for a machine that has none: `sh tests/bench/carry_ssh_keygen.sh FOLDER` copies this machine's with its
# libraries and its loader, so that nothing of the other machine's C library is used. There, put FOLDER first on PATH.
# FOLDER is not for git. A processor of the same kind is needed.
set -eu
folder=${1:?name a folder}
program=$(command -v ssh-keygen)
mkdir -p "$folder/lib"
cp "$program" "$folder/ssh-keygen.bin"
ldd "$program" | while read -r name arrow path _; do
  case "$name" in
    /*) cp -L "$name" "$folder/lib/loader" ;;
    *) [ "$arrow" != "=>" ] || [ ! -f "$path" ] || cp -L "$path" "$folder/lib/$name" ;;
  esac
done
cat > "$folder/ssh-keygen" <<'END'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/lib/loader" --library-path "$here/lib" "$here/ssh-keygen.bin" "$@"
END
chmod 755 "$folder/ssh-keygen" "$folder/ssh-keygen.bin" "$folder/lib/loader"
"$folder/ssh-keygen" -q -t ed25519 -N "" -C test -f "$folder/key"
echo a page > "$folder/page"
"$folder/ssh-keygen" -q -Y sign -n test -f "$folder/key" "$folder/page"
"$folder/ssh-keygen" -Y check-novalidate -n test -s "$folder/page.sig" < "$folder/page"
rm "$folder/key" "$folder/key.pub" "$folder/page" "$folder/page.sig"
du -sh "$folder"
