/** Bundling by Vite of the compiler, the manifest loader and the policy compiler for the playground's worker. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { UserConfig } from 'vitepress';
import { playgroundExamples } from '../build/playground-examples.js';

type ViteConfig = NonNullable<UserConfig['vite']>;

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BROWSER = join(ROOT, 'site', '.vitepress', 'browser');
/** Modules of Node, and the one of ours that needs files, with what stands for them in a browser. */
const REPLACED = new Map([
  ['node:crypto', 'crypto.ts'],
  ['node:net', 'net.ts'],
  [join(ROOT, 'src', 'base', 'checks.ts'), 'checks.ts'],
]);

/** Parser of Postgres in WebAssembly, beside the worker's script, where its loader looks for it. */
const WASM = 'libpg-query.wasm';

const product = {
  name: 'product-in-browser',
  enforce: 'pre',
  async resolveId(source, importer, options) {
    const replaced = REPLACED.get(source);
    if (replaced !== undefined && !importer?.includes('node_modules')) return join(BROWSER, replaced);
    if (!source.endsWith('/checks.js')) return null;
    const resolved = await this.resolve(source, importer, { ...options, skipSelf: true });
    const ours = resolved === null ? undefined : REPLACED.get(resolved.id);
    return ours === undefined ? resolved : join(BROWSER, ours);
  },
  generateBundle() {
    const parser = dirname(createRequire(join(ROOT, 'compiler', 'package.json')).resolve('libpg-query'));
    this.emitFile({ type: 'asset', fileName: `assets/${WASM}`, source: readFileSync(join(parser, WASM)) });
  },
};

export const playground: ViteConfig = {
  define: { PLAYGROUND_EXAMPLES: JSON.stringify(playgroundExamples(ROOT)) },
  resolve: {
    alias: [
      { find: /^osl-compiler$/, replacement: join(ROOT, 'compiler', 'src', 'index.ts') },
      { find: /^osl-compiler\/errors$/, replacement: join(ROOT, 'compiler', 'src', 'errors', 'errors.ts') },
    ],
  },
  worker: { format: 'es', plugins: () => [product] },
};
