import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Absolute path of this package. The code runs from `dist/src`, or from `dist/package` if installed. */
export const PACKAGE_ROOT = packageOf(dirname(fileURLToPath(import.meta.url)));

function packageOf(folder: string): string {
  const above = dirname(folder);
  return above === folder || existsSync(join(folder, 'package.json')) ? folder : packageOf(above);
}

/**
 * Absolute path of the folder whose `node_modules` is used: the project that installed this package, or the clone of
 * its repository.
 */
export const INSTALLATION_ROOT = PACKAGE_ROOT.replace(/[/\\]node_modules[/\\]osl-gateway$/, '');

/** The version from `package.json`, or `unknown` if it has none. */
export function version(): string {
  const parsed: unknown = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
  if (typeof parsed !== 'object' || parsed === null || !('version' in parsed)) return 'unknown';
  return String(parsed.version);
}
