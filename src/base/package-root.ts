import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of this package, absolute; the code runs from `dist/src`, and from `dist/package` where it is installed. */
export const PACKAGE_ROOT = packageOf(dirname(fileURLToPath(import.meta.url)));

/** The nearest folder above with a `package.json`. */
function packageOf(folder: string): string {
  const above = dirname(folder);
  return above === folder || existsSync(join(folder, 'package.json')) ? folder : packageOf(above);
}

/**
 * The folder whose `node_modules` this package runs with, absolute: that of the project that installed it, or its own
 * where it was cloned.
 */
export const INSTALLATION_ROOT = PACKAGE_ROOT.replace(/[/\\]node_modules[/\\]osl-gateway$/, '');

/** Of `package.json`, or `unknown`. */
export function version(): string {
  const parsed: unknown = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
  if (typeof parsed !== 'object' || parsed === null || !('version' in parsed)) return 'unknown';
  return String(parsed.version);
}
