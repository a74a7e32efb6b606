import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One change of a compiled file: `from` occurs in it once. */
export interface Patch {
  /** Below `compiler/dist/` or `dist/`, such as `compiler/dist/govern/scan.js`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const PARTS = ['src', 'cli', 'wire', 'policy', 'audit', 'interchange', 'catalog', 'checks', 'data'];

/** A copy of the built gateway, whose compiled files can be changed. */
export class GatewayCopy {
  readonly #root = mkdtempSync(join(tmpdir(), 'leakbench-holes-'));

  constructor(checkout: string) {
    for (const part of [...PARTS.map((name) => `dist/${name}`), 'bin', 'compiler/dist'])
      if (existsSync(join(checkout, part)))
        cpSync(join(checkout, part), join(this.#root, part), { recursive: true });
    for (const file of ['package.json', 'compiler/package.json'])
      cpSync(join(checkout, file), join(this.#root, file));
    mkdirSync(join(this.#root, 'node_modules'));
    for (const name of readdirSync(join(checkout, 'node_modules')))
      symlinkSync(
        name === 'osl-compiler' ? join(this.#root, 'compiler') : join(checkout, 'node_modules', name),
        join(this.#root, 'node_modules', name),
      );
  }

  /** Command that starts the copy. */
  get command(): string {
    return `${process.execPath} ${join(this.#root, 'bin', 'osl.js')}`;
  }

  /** Runs `work` while the patches are in place. */
  async patched<T>(patches: readonly Patch[], work: () => Promise<T>): Promise<T> {
    const before = new Map<string, string>();
    try {
      for (const { file, from, to } of patches) {
        const path = join(this.#root, file);
        const text = readFileSync(path, 'utf8');
        if (!before.has(path)) before.set(path, text);
        if (text.split(from).length !== 2) throw new Error(`${file} has not exactly one: ${from}`);
        writeFileSync(
          path,
          text.replace(from, () => to),
        );
      }
      return await work();
    } finally {
      for (const [path, text] of before) writeFileSync(path, text);
    }
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}
