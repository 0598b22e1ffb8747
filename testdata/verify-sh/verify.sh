#!/bin/sh
# A second verifier of proof containers (tool-guardian/proof/v1), for whoever
# trusts neither this project nor its language. It needs sh, openssl (3.0 or
# newer), sha256sum, awk, base64, od, and reads one file:
#
#   verify.sh PROOF LOG-VKEY COSIGNER-VKEY CHAIN-VKEY CA.pem
#
# LOG-VKEY and COSIGNER-VKEY are the witness's keys, CHAIN-VKEY the chain's head
# key in force, CA.pem the root of a timestamp authority: pinned by you, never
# taken from the proof. Exit 0: everything below holds. Exit 1: it says what does
# not. It asks for at least one token, and for the keys of one log and cosigner;
# it does not judge renewals, policies and revocation lists.
set -eu
export LC_ALL=C
[ $# -eq 5 ] || { echo "usage: verify.sh PROOF LOG-VKEY COSIGNER-VKEY CHAIN-VKEY CA.pem" >&2; exit 3; }
proof=$1 log=$2 cosigner=$3 chain=$4 ca=$5
d=$(mktemp -d) && trap 'rm -rf "$d"' EXIT
die() { echo "REFUSED: $*" >&2; exit 1; }
# ---- bytes -------------------------------------------------------------------
sum() { sha256sum | cut -c1-64; } && hex() { od -An -v -tx1 | tr -d ' \n'; }
# bin turns hex on stdin into bytes, by octal escapes.
bin() {
  printf "$(awk 'BEGIN { h = "0123456789abcdef" } { for (i = 1; i < length($0); i += 2)
    printf "\\%03o", 16 * (index(h, substr($0, i, 1)) - 1) + index(h, substr($0, i + 1, 1)) - 1 }')"
}
# unbase64 FILE: decodes, and refuses what encoding would not write.
unbase64() {
  base64 -d <"$1" >"$d/decoded" 2>/dev/null || die "$2 is not base64"
  [ "$(base64 <"$d/decoded" | tr -d '\n')" = "$(cat "$1")" ] || die "$2 is not canonical base64"
}
b64hex() { printf %s "$1" >"$d/b64"; unbase64 "$d/b64" "$2"; hex <"$d/decoded"; }
decimal() { printf '%s\n' "$1" | grep -Eqx '0|[1-9][0-9]{0,17}' || die "$2 is no number"; }

# ---- Ed25519: openssl takes a raw key behind 12 fixed bytes (RFC 8410) ---------
ed25519() { # KEYHEX MESSAGE-FILE SIGHEX
  printf '302a300506032b6570032100%s' "$1" | bin >"$d/key.der" && printf %s "$3" | bin >"$d/sig"
  openssl pkeyutl -verify -pubin -inkey "$d/key.der" -keyform DER -rawin -in "$2" -sigfile "$d/sig" >/dev/null 2>&1
}

# ---- C2SP signed-note: text, empty line, lines `— name base64(id ‖ signature)` --
# signed NOTE VKEY TYPE WHAT: every line by that key verifies, and there is one.
signed() {
  name=${2%%+*} rest=${2#*+} && id=${rest%%+*} && keyhex=$(b64hex "${rest#*+}" 'a vkey')
  [ ${#keyhex} -eq 66 ] && [ "${keyhex%"${keyhex#??}"}" = "$3" ] || die "$2 is not a key of type $3"
  [ "$({ printf '%s\n' "$name"; printf %s "$keyhex" | bin; } | sum | cut -c1-8)" = "$id" ] || die "$2 has a wrong key id"
  sed '/^$/,$d' "$1" >"$d/text" && sed '1,/^$/d' "$1" >"$d/lines"
  grep -Evqx '— [^ +]+ [A-Za-z0-9+/]+=*' "$d/lines" && die "$4: a line that is no signature"
  found=0
  for b in $(awk -v n="$name" '$1 == "—" && $2 == n { print $3 }' "$d/lines"); do
    sig=$(b64hex "$b" "$4: a signature")
    [ "${sig%"${sig#????????}"}" = "$id" ] || continue
    sig=${sig#????????} && cp "$d/text" "$d/message"
    if [ "$3" = 04 ]; then # cosignature/v1: eight bytes of time come first
      t=${sig%"${sig#????????????????}"} && sig=${sig#????????????????}
      { printf 'cosignature/v1\ntime %d\n' "0x$t"; cat "$d/text"; } >"$d/message"
    fi
    [ ${#sig} -eq 128 ] && ed25519 "${keyhex#??}" "$d/message" "$sig" || die "$4: the signature of $name does not verify"
    found=1
  done
  [ $found = 1 ] || die "$4: no signature of $name"
}

# ---- RFC 6962 trees, C2SP tlog-proof -------------------------------------------
node() { printf '01%s%s' "$1" "$2" | bin | sum; }
# included PROOF LEAF WHAT: LEAF lies at $index of the tree whose checkpoint is
# left in $d/checkpoint (RFC 9162, 2.1.3.2).
included() {
  [ "$(sed -n 1p "$1")" = 'c2sp.org/tlog-proof@v1' ] || die "$3: no tlog-proof"
  index=$(sed -n '2s/^index //p' "$1") && decimal "$index" "$3: the index"
  sed '1,/^$/d' "$1" >"$d/checkpoint"
  size=$(sed -n 2p "$d/checkpoint") && decimal "$size" "$3: the size"
  [ -z "$(sed -n 4p "$d/checkpoint")" ] || die "$3: a checkpoint has three lines"
  root=$(b64hex "$(sed -n 3p "$d/checkpoint")" "$3: the root")
  [ "$index" -lt "$size" ] || die "$3: index $index is not below size $size"
  fn=$index sn=$((size - 1)) r=$({ printf '\000'; cat "$2"; } | sum)
  for p in $(sed '1,2d;/^$/,$d' "$1"); do
    p=$(b64hex "$p" "$3: a hash")
    [ $sn -gt 0 ] && [ ${#p} -eq 64 ] || die "$3: a hash too many, or a short one"
    if [ $((fn % 2)) -eq 1 ] || [ "$fn" -eq "$sn" ]; then
      r=$(node "$p" "$r")
      while [ $((fn % 2)) -eq 0 ] && [ "$fn" -gt 0 ]; do fn=$((fn / 2)) sn=$((sn / 2)); done
    else
      r=$(node "$r" "$p")
    fi
    fn=$((fn / 2)) sn=$((sn / 2))
  done
  [ "$sn" -eq 0 ] && [ "$r" = "$root" ] || die "$3: not included at index $index of size $size"
}

# ---- receipts: DSSE with one signature, in-toto statement inside ----------------
# member NAME <payload: the raw value of predicate.NAME, from compact JSON.
member() {
  awk -v want="$1" '{ s = s $0 "\n" } END { n = length(s); for (i = 1; i <= n; i++) { c = substr(s, i, 1)
    if (q) { if (c == "\\") i++; else if (c == "\"") { q = 0
        if (substr(s, i + 1, 1) == ":") { key[d] = substr(s, b, i - b); if (d == 2 && key[1] == "predicate" && key[2] == want) v = i + 2 } } }
    else if (c == "\"") { q = 1; b = i + 1 }
    else if (c == "{" || c == "[") d++
    else if (c == "}" || c == "]" || c == ",") { if (v && d == 2) { print substr(s, v, i - v); exit }; if (c != ",") d-- } } }'
}
text() { member "$1" <"$d/payload" | sed 's/^"//;s/"$//'; }
# sealed LINE KEYHEX WHAT: the template, the key id, the signature over the PAE.
# The payload is left in $d/payload. KEYHEX "own": the receiptKey it brings.
sealed() {
  type=application/vnd.in-toto+json
  [ "$(tr -cd '\n' <"$1" | wc -c)" -eq 0 ] && grep -Eqx '\{"payload":"[A-Za-z0-9+/]+=*","payloadType":"application/vnd\.in-toto\+json","signatures":\[\{"keyid":"[0-9a-f]{64}","sig":"[A-Za-z0-9+/]{86}=="}]}' "$1" ||
    die "$3: not the envelope's template"
  sed 's/^{"payload":"//;s/".*//' "$1" | tr -d '\n' >"$d/b64" && unbase64 "$d/b64" "$3: the payload" && cp "$d/decoded" "$d/payload"
  key=$2 && [ "$key" != own ] || key=$(b64hex "$(text receiptKey)" "$3: receiptKey")
  keyid=$(sed 's/.*"keyid":"//;s/".*//' "$1") sig=$(b64hex "$(sed 's/.*"sig":"//;s/".*//' "$1")" "$3: the signature")
  [ "$(printf %s "$key" | bin | sum)" = "$keyid" ] || die "$3: signed by another key than the one in force"
  { printf 'DSSEv1 %d %s %d ' ${#type} $type "$(wc -c <"$d/payload")"; cat "$d/payload"; } >"$d/pae"
  ed25519 "$key" "$d/pae" "$sig" || die "$3: the signature does not verify"
  [ "$(text origin)" = "$origin" ] || die "$3: of another chain"
}

# ---- 1. the container: `name length`, bytes, newline; known sections in order ---
[ "$(sed -n 1p "$proof")" = 'tool-guardian/proof/v1' ] || die 'not a tool-guardian/proof/v1'
at=24 end=$(wc -c <"$proof")
while [ "$at" -le "$end" ]; do
  head=$(tail -c +$at "$proof" | sed -n 1p)
  name=${head%% *} len=${head#* }
  case $name in '' | *[!a-z0-9_/-]*) die "a section with the name '$name'" ;; esac
  decimal "$len" "the length of $name"
  at=$((at + ${#head} + 1))
  tail -c +$at "$proof" | head -c "$len" >"$d/$(echo "$name" | tr / .)"
  at=$((at + len)) && [ "$(tail -c +$at "$proof" | head -c 1 | hex)" = 0a ] || die "section $name is not as long as it says"
  at=$((at + 1)) && echo "$name" >>"$d/names"
done
awk 'BEGIN { split("receipt head key-line key-line-proof leaf-bytes leaf key-bytes key time blob renew-bytes renew renew-time before-note before-token opening", k, " ")
    split("1 2 3 3 4 5 6 6 7 8 9 9 9 10 11 12", r, " "); for (i in k) { rank[k[i]] = r[i]; sub_[k[i]] = i }
    split("args_sent args_received result_received result_delivered principal approver", f, " "); for (i in f) field[f[i]] = i }
  { split($0, p, "/"); n = p[1] == "opening" ? field[p[2]] : p[2]; place = rank[p[1]] * 1e6 + n * 100 + sub_[p[1]]
    if (!rank[p[1]] || place <= before || (p[1] == "opening" && !n)) exit 1
    if (rank[p[1]] != 12 && p[2] != "" && p[2] != last[p[1]] + 1) exit 1
    last[p[1]] = p[2]; before = place }' "$d/names" || die 'a section is unknown, twice, or out of order'
for s in receipt head key-line.1 leaf-bytes leaf key-bytes.1 time.1; do [ -f "$d/$s" ] || die "section $s is missing"; done

# ---- 2. the chain: key lines, receipt, head --------------------------------------
origin=${chain%%+*} key=own n=1
sed '1,/^$/d' "$d/head" >"$d/head-note"
while [ -f "$d/key-line.$n" ]; do # the genesis under its own key, each rotation under the one before
  sealed "$d/key-line.$n" "$key" "key line $n" && keyseq=$(text seq) && next=$(b64hex "$(text receiptKey)" receiptKey)
  included "$d/key-line-proof.$n" "$d/key-line.$n" "key line $n"
  [ "$index" = "$keyseq" ] && cmp -s "$d/checkpoint" "$d/head-note" || die "key line $n: proved elsewhere"
  [ $n -gt 1 ] || case "$keyseq,$(text kind)" in 0,genesis | 0,successor) ;; *) die 'the first key line is no genesis' ;; esac
  key=$next n=$((n + 1))
done
sealed "$d/receipt" "$key" receipt && seq=$(text seq) kind=$(text kind)
[ "$(text keySeq)" = "$keyseq" ] || die 'receipt: its keySeq is not the last key line'
included "$d/head" "$d/receipt" receipt
[ "$index" = "$seq" ] || die "receipt: seq $seq, proved at $index"
[ "$(sed -n 1p "$d/head-note")" = "$origin" ] || die 'head: of another chain'
signed "$d/head-note" "$chain" 01 head && signed "$d/head-note" "$cosigner" 04 head
echo "  receipt $seq ($kind) of $origin is signed, and lies in the head of size $size that its chain signed and $name cosigned"

# ---- 3. the witness log: head leaf, key leaves, checkpoint ------------------------
[ "$(sed -n 1p "$d/leaf-bytes")" = tool-guardian/head/v1 ] && [ "$(sed -n 2p "$d/leaf-bytes")" = "origin $origin" ] || die 'leaf: not a head of this chain'
sed '1,/^$/d' "$d/leaf-bytes" >"$d/leaf-note"
[ "$(sed -n 1,3p "$d/leaf-note")" = "$(sed -n 1,3p "$d/head-note")" ] || die 'leaf: it holds another head'
signed "$d/leaf-note" "$chain" 01 leaf && signed "$d/leaf-note" "$cosigner" 04 leaf
included "$d/leaf" "$d/leaf-bytes" leaf && cp "$d/checkpoint" "$d/log-note" && logsize=$size leafindex=$index
[ "$(sed -n 1p "$d/log-note")" = "${log%%+*}" ] || die 'leaf: of another log'
signed "$d/log-note" "$log" 01 'log checkpoint'
n=1 && while [ -f "$d/key-bytes.$n" ]; do
  included "$d/key.$n" "$d/key-bytes.$n" "key leaf $n" && cmp -s "$d/checkpoint" "$d/log-note" || die "key leaf $n: proved elsewhere"
  [ "$(sed -n 2p "$d/key-bytes.$n")" = "origin $origin" ] || die "key leaf $n: of another chain"
  newest=$n n=$((n + 1))
done
grep -qxF "new $chain" "$d/key-bytes.$newest" && [ "$(sed -n 4p "$d/leaf-bytes")" = "keys $index" ] || die 'the pinned chain key is not the one in force at the leaf'
echo "  leaf $leafindex of the log ${log%%+*} at size $logsize holds that head, under the chain's key of leaf $index"

# ---- 4. time: tokens over the note with the log's one line -------------------------
{ sed '/^$/,$d' "$d/log-note"; echo; grep "^— ${log%%+*} " "$d/log-note"; } >"$d/stamped"
n=1 && while [ -f "$d/time.$n" ]; do
  sed '1,/^$/d' "$d/time.$n" | tr -d '\n' >"$d/b64" && unbase64 "$d/b64" "token $n" && cp "$d/decoded" "$d/token"
  made=$(openssl ts -reply -token_in -in "$d/token" -text 2>/dev/null | sed -n 's/^Time stamp: //p')
  made=$(date -u -d "$made" +%s 2>/dev/null) || die "token $n cannot be read"
  openssl ts -verify -token_in -in "$d/token" -data "$d/stamped" -CAfile "$ca" -attime "$made" >/dev/null 2>&1 || die "token $n does not verify"
  echo "  token $n of $(sed -n 1p "$d/time.$n"): the log was so at $(date -u -d "@$made" +%FT%TZ)" && n=$((n + 1))
done
for b in "$d"/blob.*; do # validation data must be named by a token
  [ ! -f "$b" ] || cat "$d"/time.* | grep -Eqx "blob $(sum <"$b") (crl|ocsp|cert)" || die 'a blob that no token names'
done

# ---- 5. what the receipt names: openings, lower bound -------------------------------
sealed "$d/receipt" "$key" receipt
for o in "$d"/opening.*; do
  [ -f "$o" ] || continue
  field=${o##*opening.} && grep -qF "{\"name\":\"$field\",\"digest\":{\"sha256\":\"$(sum <"$o")\"}}" "$d/payload" || die "the opening of $field is not what the receipt commits to"
  [ "$(sed -n 1,2p "$o" | tr '\n' ' ')" = "tool-guardian/open/v1 $field " ] || die "the opening of $field is malformed"
  echo "  the opening of $field is what the receipt commits to"
done
if [ -f "$d/before-note" ] || [ -f "$d/before-token" ]; then
  cp "$d/before-token" "$d/b64" && unbase64 "$d/b64" before-token && signed "$d/before-note" "$log" 01 before-note
  member notBefore <"$d/payload" | grep -F "\"token\":\"$(base64 -d <"$d/b64" | sum)\"" | grep -qF "\"checkpoint\":\"$(sum <"$d/before-note")\"" || die 'not the token and note that notBefore names'
fi
echo "OK receipt $seq of $origin"
