import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Ajv, AnySchemaObject, CodeKeywordDefinition, Options, ValidateFunction } from 'ajv';
import { PACKAGE_ROOT } from './package-root.js';

/** A kind of schemas: what its checks tell, and the keywords that only it has. */
export interface Dialect {
  readonly options: Options;
  /** INVARIANT: uses nothing but what it is given, as its own text stands for it in the names of what is built. */
  readonly keywords: (ajv: typeof import('ajv')) => readonly CodeKeywordDefinition[];
}

/** Folder of the checks that `npm run build` compiled: compiling that of a manifest takes a fifth of a second. */
const BUILT = join(PACKAGE_ROOT, 'dist', 'checks');

const require = createRequire(import.meta.url);

/** The check of `schema`: as it was built, or compiled now where it was not. */
export function checkOf<T>(schema: AnySchemaObject, dialect: Dialect): ValidateFunction<T> {
  const file = fileOf(schema, dialect);
  if (existsSync(file)) return require(file) as ValidateFunction<T>; // as `buildCheck` wrote it
  return compilerOf(dialect, {}).compile<T>(schema);
}

/** Writes the check of `schema` for later processes, unless it is there. */
export async function buildCheck(schema: AnySchemaObject, dialect: Dialect): Promise<void> {
  const file = fileOf(schema, dialect);
  if (existsSync(file)) return;
  const { default: standalone } = await import('ajv/dist/standalone/index.js');
  const compiler = compilerOf(dialect, { code: { source: true } });
  const code = standalone.default(compiler, compiler.compile(schema));
  await mkdir(BUILT, { recursive: true });
  const aside = `${file}.${process.pid}`;
  await writeFile(aside, code);
  await rename(aside, file); // whole or not at all; two builds may do the same at once
}

/** Loaded only here: what was built needs none of it. */
function compilerOf({ options, keywords }: Dialect, more: Options): Ajv {
  const ajv = require('ajv') as typeof import('ajv');
  return new ajv.Ajv({ ...options, ...more, keywords: [...keywords(ajv)] });
}

/** INVARIANT: the name has all that the check is made of, so what is found under it checks this schema and no other. */
function fileOf(schema: AnySchemaObject, { options, keywords }: Dialect): string {
  const { version } = require('ajv/package.json') as { version: string }; // npm's own file
  const hash = createHash('sha256').update(JSON.stringify([version, options, String(keywords), schema]));
  return join(BUILT, `${hash.digest('hex').slice(0, 32)}.cjs`);
}
