import { createRequire } from 'node:module';
import { ContentError } from '../../content-error.js';

/** Packages that hold a model's weights, and which an operator installs beside the gateway. */

const { resolve } = createRequire(import.meta.url);

/** @throws ContentError `notInstalled` */
export function packagePath(name: string, file: string): string {
  try {
    return resolve(`${name}/${file}`);
  } catch {
    throw notInstalled([name]);
  }
}

export function versionIn(packageJson: string): string {
  const { version } = JSON.parse(packageJson) as { version: string }; // every package has one
  return version;
}

export function notInstalled(names: readonly string[]): ContentError {
  return new ContentError(
    'notInstalled',
    `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} not installed`,
    `install ${names.length === 1 ? 'it' : 'them'} with \`npm install ${names.join(' ')}\`, or use another embedding model`,
  );
}
