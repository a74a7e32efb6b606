import { basename, relative, resolve } from 'node:path';
import { INSTALLATION_ROOT } from '../../src/base/package-root.js';

/** How the reader can call this command from the same folder: as this process was called. */
export function commandName(): string {
  const script = process.argv[1] ?? '';
  if (script === process.execPath) return quoted(script); // the single executable
  // Where it is not installed, npx would fetch whatever npm has under the name `osl`.
  const isHere = process.cwd() === INSTALLATION_ROOT;
  if (process.env['npm_command'] !== undefined) return isHere ? 'npx osl' : 'npx osl-gateway';
  if (basename(script) === 'osl') return 'osl';
  if (isHere) return 'npx osl';
  const near = relative(process.cwd(), script);
  return `node ${quoted(near.startsWith('..') ? script : near)}`;
}

/** The flag that leads other commands to this data directory; none where they look there anyway. */
export function dataDirFlag(dataDir: string): string {
  if (dataDir === resolve(process.cwd(), '.osl')) return '';
  const near = relative(process.cwd(), dataDir);
  return ` --data-dir ${quoted(near.startsWith('..') ? dataDir : near)}`;
}

/** `text` as one word of a POSIX shell. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : singleQuoted(text);
}

/** A question as one word of a shell, in the quotes that suit it. */
export function shellText(text: string): string {
  return /["$`\\!]/.test(text) ? singleQuoted(text) : `"${text}"`;
}

/** `text` in single quotes, as a POSIX shell reads it. */
export function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
