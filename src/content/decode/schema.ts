import { createRequire } from 'node:module';
import { LRUCache } from 'lru-cache';
import { isObject } from '../../base/is-object.js';
import { InvalidArgument } from '../../model/facets/arguments.js';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Keywords allowed in a caller's schema. No patterns (they may never end), no formats, no references. */
const KEYWORDS: ReadonlySet<string> = new Set([
  ...[
    'type',
    'title',
    'description',
    'enum',
    'const',
    'properties',
    'required',
    'additionalProperties',
    'items',
  ],
  ...['anyOf', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems'],
]);
const DEEPEST = 8;
const MOST_PROPERTIES = 200;

/**
 * Checks the schema of an object against our limits.
 *
 * @throws InvalidArgument
 */
export function objectSchema(operator: string, schema: JsonSchema): JsonSchema {
  checkSchema(operator, schema, 0);
  const { type, properties } = schema;
  if (type !== 'object' || !isObject(properties) || Object.keys(properties).length === 0) {
    throw new InvalidArgument(operator, 'needs the schema of an object with `properties`');
  }
  try {
    compiledSchema(schema);
  } catch {
    throw new InvalidArgument(operator, 'got a schema that is not valid');
  }
  return schema;
}

function checkSchema(operator: string, schema: unknown, depth: number): void {
  if (!isObject(schema)) throw new InvalidArgument(operator, 'got a schema that is not valid');
  if (depth > DEEPEST) throw new InvalidArgument(operator, `takes a schema of ${DEEPEST} levels at most`);
  for (const keyword of Object.keys(schema)) {
    if (!KEYWORDS.has(keyword)) throw new InvalidArgument(operator, `takes no \`${keyword}\` in a schema`);
  }
  const { properties, items, anyOf, additionalProperties } = schema;
  if (properties !== undefined) {
    if (!isObject(properties)) throw new InvalidArgument(operator, 'got a schema that is not valid');
    const names = Object.keys(properties);
    if (names.length > MOST_PROPERTIES || names.includes('__proto__')) {
      throw new InvalidArgument(operator, 'got a schema with properties that it does not take');
    }
    for (const name of names) checkSchema(operator, properties[name], depth + 1);
  }
  if (items !== undefined) checkSchema(operator, items, depth + 1);
  if (isObject(additionalProperties)) checkSchema(operator, additionalProperties, depth + 1);
  if (Array.isArray(anyOf)) for (const one of anyOf) checkSchema(operator, one, depth + 1);
}

/** Loaded on first use: only decoders need it. */
const loadAjv = () => createRequire(import.meta.url)('ajv') as typeof import('ajv');

const MOST_COMPILED = 100;
const compiled = new LRUCache<string, (value: unknown) => boolean>({ max: MOST_COMPILED });

/** Compiled once per text of a schema; least recently used ones are dropped. */
export function compiledSchema(schema: JsonSchema): (value: unknown) => boolean {
  const key = JSON.stringify(schema);
  const known = compiled.get(key);
  if (known !== undefined) return known;
  // One Ajv per schema, since an Ajv keeps everything it has compiled.
  const validate = new (loadAjv().Ajv)({ strict: false, validateFormats: false, logger: false }).compile(
    schema,
  );
  const check = (value: unknown): boolean => validate(value) === true;
  compiled.set(key, check);
  return check;
}
