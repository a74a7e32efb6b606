import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../../../release/run.js';

/** Folder kept between runs: the base image, npm's cache, and the engine's images and volumes. */
export const CACHE = process.env['OSL_TEST_IMAGE_CACHE'] ?? join(tmpdir(), 'osl-image-drill');

const has = (command: string): boolean => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;

/** Why a drill cannot run here; false if it can. */
export function lacking(...commands: readonly string[]): string | false {
  if (process.platform !== 'linux' || process.arch !== 'x64' || process.getuid?.() !== 0)
    return 'it takes root on Linux with x64';
  const absent = commands.filter((command) => !has(command));
  return absent.length === 0 ? false : `not installed: ${absent.join(', ')}`;
}

/**
 * Global flags: images and volumes of our own folder, and no supervisor. `overlay` where the kernel has it; `vfs`
 * copies every layer.
 */
function flags(): readonly string[] {
  mkdirSync(CACHE, { recursive: true });
  const overlay = spawnSync('grep', ['-qw', 'overlay', '/proc/filesystems']).status === 0;
  return [
    ...['--root', join(CACHE, 'storage'), '--runroot', join(CACHE, 'run')],
    ...['--storage-driver', overlay ? 'overlay' : 'vfs', '--cgroup-manager', 'cgroupfs', '--runtime', 'runc'],
  ];
}

const LIMITS = ['--ulimit', 'nofile=4096:4096', '--ulimit', 'nproc=4096:4096'];

/** Runs Podman and returns its standard output. @throws Error with its standard error if it fails */
export const podman = (...args: readonly string[]): Promise<string> =>
  run(CACHE, 'podman', ...flags(), ...args);

const npmSetting = (name: string): string =>
  execFileSync('npm', ['config', 'get', name], { encoding: 'utf8', cwd: tmpdir() }).trim();

/**
 * What npm needs during a build beside the Dockerfile: the caller's own settings and certificate authorities, mounted
 * for the build only, so that they are not in the image.
 */
function npmOfCaller(): readonly string[] {
  mkdirSync(join(CACHE, 'npm'), { recursive: true });
  const authorities = process.env['NODE_EXTRA_CA_CERTS'] ?? npmSetting('cafile');
  const mounts = [
    [join(CACHE, 'npm'), '/root/.npm'],
    [npmSetting('userconfig'), '/root/.npmrc:ro'],
    [npmSetting('globalconfig'), '/usr/local/etc/npmrc:ro'],
    [authorities, `${authorities}:ro`],
  ] as const;
  return mounts.flatMap(([from, to]) => (existsSync(from) ? ['--volume', `${from}:${to}`] : []));
}

/** Builds the Dockerfile of `context` with what is on this machine. */
export async function buildImage(context: string, tag: string): Promise<void> {
  const how = ['--format', 'docker', '--isolation', 'chroot', '--pull-never', '--network', 'host'];
  await podman('build', ...how, ...LIMITS, ...npmOfCaller(), '--tag', tag, context);
}

export interface ContainerOptions {
  readonly image: string;
  readonly volume: string;
  /** Host folder mounted at /etc/osl. */
  readonly config: string;
  readonly env: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly memoryMib?: number;
}

/** A container run as docs/operations.md describes: read-only, without capabilities, only its volume writable. */
export class Container {
  readonly name: string;

  private constructor(name: string) {
    this.name = name;
  }

  static async start(name: string, options: ContainerOptions): Promise<Container> {
    const { image, volume, config, env, args = [], memoryMib = 1_024 } = options;
    await podman(
      ...['run', '--detach', '--name', name, '--no-healthcheck', ...LIMITS, '--network', 'host'],
      ...['--read-only', '--read-only-tmpfs=false', '--cap-drop', 'ALL'],
      ...['--security-opt', 'no-new-privileges', '--memory', `${memoryMib}m`],
      ...['--volume', `${volume}:/var/lib/osl`, '--volume', `${config}:/etc/osl:ro`],
      ...Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
      ...[image, ...args],
    );
    return new Container(name);
  }

  exec(...command: readonly string[]): Promise<string> {
    return podman('exec', this.name, ...command);
  }

  /** Standard output and error so far. */
  async log(): Promise<string> {
    return run(CACHE, 'sh', '-c', '"$0" "$@" 2>&1', 'podman', ...flags(), 'logs', this.name);
  }

  async #state(): Promise<{ readonly Pid: number; readonly ExitCode: number; readonly Running: boolean }> {
    return JSON.parse(await podman('inspect', '--format', '{{json .State}}', this.name));
  }

  /** True while its first process runs. */
  async isRunning(): Promise<boolean> {
    return (await this.#state()).Running;
  }

  /** The first process, as this machine numbers it. */
  async pid(): Promise<number> {
    return (await this.#state()).Pid;
  }

  /** Sends the image's stop signal and returns the exit status: 137 if it had to be killed after `seconds`. */
  async stop(seconds: number): Promise<number> {
    await podman('stop', '--time', String(seconds), this.name);
    return (await this.#state()).ExitCode;
  }

  async remove(): Promise<void> {
    await podman('rm', '--force', this.name);
  }
}
