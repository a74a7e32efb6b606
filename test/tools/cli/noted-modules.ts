import { readFileSync } from 'node:fs';

/** Notes imports as they happen, and what was required besides when the process ends. */
const REGISTER = `
  import { appendFileSync } from 'node:fs';
  import { createRequire, register } from 'node:module';
  register(${JSON.stringify(new URL('./loaded-modules.js', import.meta.url).href)});
  process.once('exit', () => {
    const required = Object.keys(createRequire('/').cache).map((file) => 'file://' + file + '\\n');
    appendFileSync(process.env.OSL_TEST_LOADED, required.join(''));
  });`;

/** The environment in which a command notes the modules that it loads in `file`. */
export function notingModules(file: string): Readonly<Record<string, string>> {
  const options = `--import=data:text/javascript,${encodeURIComponent(REGISTER)}`;
  return { NODE_OPTIONS: options, OSL_TEST_LOADED: file };
}

/** The modules noted so far, as paths: `node_modules/commander/index.js`. */
export function modulesNoted(file: string): readonly string[] {
  const urls = readFileSync(file, 'utf8').trim().split('\n');
  return urls.filter((url) => url.startsWith('file:')).map((url) => url.slice(url.indexOf('/', 8)));
}

export function packagesIn(files: readonly string[]): ReadonlySet<string> {
  return new Set(files.flatMap((file) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []));
}
