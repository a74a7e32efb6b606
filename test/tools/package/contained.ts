import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporary } from '../cli/support.js';

/**
 * What a container gives a process, made of the kernel's own parts where no engine of containers runs: a root of its own
 * that nobody can write to, the system's files and Node in it, processes of its own, and user 1000 without any right.
 */
export interface Contained {
  /** Folders of this machine, by where the container has them; read only. */
  readonly readOnly: Readonly<Record<string, string>>;
  /** The same, to write to. */
  readonly writable: Readonly<Record<string, string>>;
  readonly cwd: string;
}

const SCRIPT = `set -eu
root="$1" node="$2" mounts="$3" cwd="$4"
shift 4
mount --make-rprivate /
mount -t tmpfs -o size=8m,mode=755 tmpfs "$root"
for dir in usr bin sbin lib lib32 lib64; do
  if [ -L "/$dir" ]; then cp -d "/$dir" "$root/$dir"
  elif [ -d "/$dir" ]; then mkdir "$root/$dir" && mount --bind "/$dir" "$root/$dir" && mount -o remount,bind,ro "$root/$dir"; fi
done
mkdir -p "$root/etc" "$root/dev" "$root/proc" "$root/opt" "$root/var/lib" "$root/run" "$root/tmp" "$root/node"
printf 'root:x:0:0::/:/bin/sh\\nnode:x:1000:1000::/nonexistent:/bin/sh\\n' > "$root/etc/passwd"
cp /etc/hosts /etc/nsswitch.conf "$root/etc/" 2>/dev/null || true
mount -t proc proc "$root/proc"
for file in null zero urandom; do : > "$root/dev/$file" && mount --bind "/dev/$file" "$root/dev/$file"; done
: > "$root/node/node" && mount --bind "$node" "$root/node/node"
while read -r how from to; do
  [ -n "$how" ] || continue
  if [ -d "$from" ]; then mkdir -p "$root$to"; else : >> "$root$to"; fi
  mount --bind "$from" "$root$to"
  [ "$how" = rw ] || mount -o remount,bind,ro "$root$to"
done < "$mounts"
mount -o remount,ro "$root"
exec chroot "$root" setpriv --pdeathsig=KILL --reuid=1000 --regid=1000 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \\
  sh -c 'cd "$0" && exec "$@"' "$cwd" "$@"
`;

const NAMESPACES = ['--mount', '--pid', '--uts', '--ipc', '--fork', '--kill-child'];

/** Why nothing can be contained here; false where it can. */
export function cannotContain(): string | false {
  const made = spawnSync('unshare', [
    ...NAMESPACES,
    'sh',
    '-c',
    'mount --make-rprivate / && command -v setpriv',
  ]);
  return made.status === 0 ? false : 'no namespaces can be made here (that takes root, and setpriv)';
}

/** The command that runs what follows it in a container; \`node\` there is the Node of the tests. */
export function containing({ readOnly, writable, cwd }: Contained): readonly string[] {
  const place = temporary();
  chmodSync(place, 0o755);
  const lines = [
    ...Object.entries(readOnly).map(([to, from]) => `ro ${from} ${to}\n`),
    ...Object.entries(writable).map(([to, from]) => `rw ${from} ${to}\n`),
  ];
  writeFileSync(join(place, 'script'), SCRIPT);
  writeFileSync(join(place, 'mounts'), lines.join(''));
  const root = temporary();
  const args = [root, process.execPath, join(place, 'mounts'), cwd];
  return ['unshare', ...NAMESPACES, 'sh', join(place, 'script'), ...args];
}

/** Where the container has its programs. */
export const CONTAINED_PATH = '/node:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
