import { MODEL_NAME_PATTERN, NAME_PATTERN } from '../name.js';

/** Parts of the schemas of manifests and policies. Editors show the descriptions; diagnostics use them as hints. */

export const DRAFT = 'http://json-schema.org/draft-07/schema#';

export const TEXT = { type: 'string', minLength: 1, maxLength: 4000 } as const;

export const DEPRECATED = {
  ...TEXT,
  description: 'Reason for deprecation, and what to use instead. The object can still be queried.',
} as const;

export const NAME_RULE = {
  type: 'string',
  pattern: NAME_PATTERN,
  description:
    'A name is a letter or underscore, then letters, digits and underscores, 63 at most; two underscores at its start are reserved.',
} as const;

/** Schema of names in the semantic model. Queries quote such a name where SQL requires it. */
export const MODEL_RULE = {
  type: 'string',
  pattern: MODEL_NAME_PATTERN,
  description:
    'A name is a letter of any script or an underscore, then letters, digits, underscores and single blanks between them, 63 bytes of composed (NFC) UTF-8 at most; two underscores at its start are reserved.',
} as const;

/** Name of an upstream table or column. It is quoted in generated SQL, so nearly any character is allowed. */
export const PHYSICAL_NAME = {
  type: 'string',
  pattern: '^[^\\u0000]{1,63}$',
  description: 'A column of the upstream table: 63 characters at most.',
} as const;

/** An object whose names are chosen by the author and whose members all have one shape. */
export function named<K, V>(names: K, member: V, description: string) {
  return { type: 'object', propertyNames: names, additionalProperties: member, description } as const;
}

export function closed<P, R extends keyof P & string>(
  properties: P,
  required: readonly R[],
  description: string,
) {
  return { type: 'object', properties, required, additionalProperties: false, description } as const;
}

export function list<I>(items: I, description: string) {
  return { type: 'array', items, uniqueItems: true, description } as const;
}

export function some<I>(items: I, description: string) {
  return { ...list(items, description), minItems: 1 } as const;
}

export function text(description: string) {
  return { ...TEXT, description } as const;
}

export function ruledName(description: string) {
  return { ...NAME_RULE, description } as const;
}

export function modelName(description: string) {
  return { ...MODEL_RULE, description } as const;
}

export function flag(description: string) {
  return { type: 'boolean', description } as const;
}

export function choice<V>(values: readonly V[], description: string) {
  return { enum: values, description } as const;
}

/** Schema of an integer; both bounds are inclusive. */
export function integer(minimum: number, maximum: number, description: string) {
  return { type: 'integer', minimum, maximum, description } as const;
}
