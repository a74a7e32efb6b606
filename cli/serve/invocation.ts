import { basename, relative, resolve } from 'node:path';
import { INSTALLATION_ROOT } from '../../src/base/package-root.js';

/** Returns the command that runs this program from the current folder, in the way it was started. */
export function commandName(): string {
  const script = process.argv[1] ?? '';
  if (script === process.execPath) return quoted(script); // running as a single executable
  // If the program is not installed, npx would fetch whichever npm package is called `osl`.
  const isHere = process.cwd() === INSTALLATION_ROOT;
  if (process.env['npm_command'] !== undefined) return isHere ? 'npx osl' : 'npx osl-gateway';
  if (basename(script) === 'osl') return 'osl';
  if (isHere) return 'npx osl';
  return `node ${quoted(shortPath(script))}`;
}

/**
 * Returns `path` relative to the current folder if it is inside, unless that is `/`, where supervisors start a server.
 */
function shortPath(path: string): string {
  const near = relative(process.cwd(), path);
  return process.cwd() === '/' || near.startsWith('..') ? path : near;
}

/** Returns the flag that lets other commands find this data directory; empty if the directory is the default. */
export function dataDirFlag(dataDir: string): string {
  if (dataDir === resolve(process.cwd(), '.osl')) return '';
  return ` --data-dir ${quoted(shortPath(dataDir))}`;
}

export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : singleQuoted(text);
}

export function shellText(text: string): string {
  return /["$`\\!]/.test(text) ? singleQuoted(text) : `"${text}"`;
}

export function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
