import { MANIFEST_SCHEMA, POLICY_SCHEMA } from '../../src/model/manifest/index.js';

export type FileKind = 'manifest' | 'policy';

export interface JsonSchemaPart {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchemaPart>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchemaPart | boolean;
  readonly propertyNames?: JsonSchemaPart;
  readonly items?: JsonSchemaPart;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly examples?: readonly unknown[];
}

const SCHEMAS: Readonly<Record<FileKind, JsonSchemaPart>> = {
  manifest: MANIFEST_SCHEMA,
  policy: POLICY_SCHEMA,
};

/** Schema of the place at `steps`; null if it is unknown. */
export function schemaAt(kind: FileKind, steps: readonly string[]): JsonSchemaPart | null {
  let part: JsonSchemaPart | undefined = SCHEMAS[kind];
  for (const step of steps) {
    if (part === undefined) return null;
    part = step === '[]' ? part.items : memberOf(part, step);
  }
  return part ?? null;
}

function memberOf(
  { properties, additionalProperties }: JsonSchemaPart,
  key: string,
): JsonSchemaPart | undefined {
  if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key];
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

export function mayBe({ type }: JsonSchemaPart, name: string): boolean {
  return type === undefined || type === name || (Array.isArray(type) && type.includes(name));
}

export function choicesOf(part: JsonSchemaPart): readonly string[] {
  if (part.enum !== undefined) return part.enum.map((choice) => (choice === 'null' ? '"null"' : `${choice}`));
  if (part.const !== undefined) return [`${part.const}`];
  if (part.type === 'boolean') return ['true', 'false'];
  return (part.examples ?? []).map(String);
}
