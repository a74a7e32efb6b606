import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Ajv, AnySchemaObject, CodeKeywordDefinition, Options, ValidateFunction } from 'ajv';
import { PACKAGE_ROOT } from './package-root.js';

/** Ajv options and custom keywords shared by a family of schemas. */
export interface Dialect {
  /** Part of the file names of compiled validators. The source of `keywords` is not, since a bundler changes it. */
  readonly name: string;
  readonly options: Options;
  readonly keywords: (ajv: typeof import('ajv')) => readonly CodeKeywordDefinition[];
}

/**
 * Directory of validators compiled by `npm run build`. Compiling the manifest's validator at startup would take 200 ms.
 */
const BUILT = join(PACKAGE_ROOT, 'dist', 'checks');

const require = createRequire(import.meta.url);

/** Returns the prebuilt validator of `schema`, or compiles one if there is none. */
export function checkOf<T>(schema: AnySchemaObject, dialect: Dialect): ValidateFunction<T> {
  const file = fileOf(schema, dialect);
  if (existsSync(file)) return require(file) as ValidateFunction<T>; // cast: the file's name is derived from the schema
  return compilerOf(dialect, {}).compile<T>(schema);
}

/**
 * Compiles the validator of `schema` to a file for later processes. Overwrites an existing file, since it may have been
 * compiled with older keywords.
 */
export async function buildCheck(schema: AnySchemaObject, dialect: Dialect): Promise<void> {
  const file = fileOf(schema, dialect);
  const { default: standalone } = await import('ajv/dist/standalone/index.js');
  const compiler = compilerOf(dialect, { code: { source: true } });
  const code = standalone.default(compiler, compiler.compile(schema));
  await mkdir(BUILT, { recursive: true });
  const aside = `${file}.${process.pid}`;
  await writeFile(aside, code);
  await rename(aside, file); // atomic: two builds may write it at once
}

function compilerOf({ options, keywords }: Dialect, more: Options): Ajv {
  const ajv = require('ajv') as typeof import('ajv');
  return new ajv.Ajv({ ...options, ...more, keywords: [...keywords(ajv)] });
}

/** INVARIANT: the name is a hash of the schema and its dialect, so a file of this name validates this schema. */
function fileOf(schema: AnySchemaObject, { name, options }: Dialect): string {
  const { version } = require('ajv/package.json') as { version: string };
  const hash = createHash('sha256').update(JSON.stringify([version, name, options, schema]));
  return join(BUILT, `${hash.digest('hex').slice(0, 32)}.cjs`);
}
