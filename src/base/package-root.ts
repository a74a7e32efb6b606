import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of this package, absolute; the code runs from `dist/src`. */
export const PACKAGE_ROOT = fileURLToPath(new URL('../../../', import.meta.url)).replace(/[/\\]$/, '');

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
